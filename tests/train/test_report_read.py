"""Logs of other trainers, written as they print them, are understood; what is not is said."""

import json

import pytest
from train.synthetic import run_lines, write_lines

from outrider.errors import UsageError
from outrider.train.report.columns import understand
from outrider.train.report.read import read_run

# SpecForge 0.1: one line a log interval, between the redrawn lines of a progress bar.
SPECFORGE = (
    "Using mask_token_id: 151669\n"
    "Total training steps: 60000\n"
    "\rTraining Epoch 0:   0%|          | 99/10000 [01:39<2:45:10,  1.00s/it, loss=9.1000, acc=0.0210, iter_time=0.98s]"
    "\nTrain - Step 100 [100/60000?], Loss: 8.9000, Acc: 0.0290\n"
    "\rTraining Epoch 0:   2%|2         | 199/10000 [03:19<2:43:10,  1.00s/it, loss=8.0, acc=0.04, iter_time=0.98s]\n"
    "Train - Step 200 [200/60000?], Loss: 7.8000, Acc: 0.0450\n"
    "Eval - Step 200 [200/60000?], Loss: 7.9000, Acc: 0.0400\n"
)
# speculators 0.9: records that rich wraps, the time only where it changes, the place in the code at the right.
SPECULATORS = """\
[10:31:07] INFO     train/loss=8.912, train/full_acc=0.029,              trainer.py:587
                    train/position_1_acc=0.120,
                    train/position_2_acc=0.030, train/eal=1.124,
                    profile/fetch_ms=2.100, epoch=0, lr=0.000,
                    global_step=100
           INFO     train/loss=5.100, train/full_acc=0.180,              trainer.py:587
                    train/position_1_acc=0.400,
                    train/position_2_acc=0.210, train/eal=1.484,
                    profile/fetch_ms=2.100, epoch=0, lr=0.000,
                    global_step=200
[10:41:07] INFO     val/loss_epoch=5.300, val/full_acc_epoch=0.170,      trainer.py:671
                    val/position_1_acc_epoch=0.380,
                    val/position_2_acc_epoch=0.200, val/eal_epoch=1.456,
                    epoch=0
"""
MODELOPT = """\
Step 100 Training Acc: [0.0290]
{'loss': '8.9', 'grad_norm': '1.2', 'learning_rate': '6e-04', 'epoch': '0.01', 'train_acc/parallel_0_step_0': '0.029'}
Step 200 Training Acc: [0.0960]
{'loss': '5.85', 'grad_norm': '1.1', 'learning_rate': '6e-04', 'epoch': '0.02', 'train_acc/parallel_0_step_0': '0.096'}
Step 200 AR: 1.4300
"""
NEMO = """\
epoch=0 step=305 loss=8.7851 acc=0.1181 lr=6.10169e-05
dflash2: base_loss=7.4375 selector_loss=2.3056 base_acc=0.0804 accept_len=1.156 base_accept_len=1.156
epoch=0 step=310 loss=6.7965 acc=0.1844 lr=6.2014e-05
dflash2: base_loss=4.6562 selector_loss=1.9454 base_acc=0.1987 accept_len=1.812 base_accept_len=1.828
"""


@pytest.fixture
def written(tmp_path):
    def write(name, text):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return write


def test_specforge_text_is_read_and_its_progress_bar_is_not(written):
    run = read_run([written("train.log", SPECFORGE)])
    assert [(line.step, line.loss, line.accuracy) for line in run.steps] == [(100, 8.9, 0.029), (200, 7.8, 0.045)]
    assert [(line.step, line.loss, line.accuracy) for line in run.evaluations] == [(200, 7.9, 0.04)]


def test_a_progress_bar_alone_counts_on_over_epochs(written):
    bars = [
        f"Epoch {epoch}: |#| {step}/200 [00:01, loss={9 - epoch - step / 200}]"
        for epoch in (0, 1)
        for step in (100, 200)
    ]
    run = read_run([written("train.log", "\r".join(bars))])
    assert [(line.step, line.loss) for line in run.steps] == [(100, 8.5), (200, 8.0), (300, 7.5), (400, 7.0)]


def test_speculators_text_is_joined_where_rich_has_wrapped_it(written):
    run = read_run([written("train.log", SPECULATORS)])
    assert [(line.step, line.loss, line.accuracy, line.slots, line.length) for line in run.steps] == [
        (100, 8.912, 0.029, (0.12, 0.03), 1.124),
        (200, 5.1, 0.18, (0.4, 0.21), 1.484),
    ]
    (evaluation,) = run.evaluations
    assert (evaluation.step, evaluation.loss, evaluation.slots) == (200, 5.3, (0.38, 0.2))
    assert evaluation.length == 1.456
    assert evaluation.tau is None  # counted on given texts: nothing was decoded
    assert run.facts.format == "speculators"
    assert run.facts.block_size == 3
    assert any("not understood, passed over: profile/fetch_ms" in line for line in run.understood)


def test_modelopt_text_gives_accuracy_and_decoded_lengths(written):
    run = read_run([written("log.txt", MODELOPT)])
    assert [(line.step, line.loss, line.accuracy) for line in run.steps] == [(100, 8.9, 0.029), (200, 5.85, 0.096)]
    assert [(line.step, line.tau) for line in run.evaluations] == [(200, 1.43)]
    assert run.facts.format == "ModelOpt"


def test_nemo_text_unites_the_two_lines_of_a_step(written):
    run = read_run([written("train.log", NEMO)])
    assert [(line.step, line.loss, line.length) for line in run.steps] == [(305, 8.7851, 1.156), (310, 6.7965, 1.812)]
    assert run.steps[0].learning_rate == 6.10169e-05


def test_the_state_of_transformers_trainer_is_read_from_its_folder(tmp_path):
    history = [
        {"epoch": 0.1, "loss": 8.0, "learning_rate": 1e-4, "grad_norm": 1.0, "step": 10},
        {"epoch": 0.2, "loss": 6.0, "learning_rate": 2e-4, "grad_norm": 0.9, "step": 20},
        {"epoch": 0.2, "eval_loss": 6.2, "eval_accuracy": 0.1, "eval_runtime": 3.0, "step": 20},
    ]
    for number, lines in ((9, history[:1]), (20, history)):
        folder = tmp_path / f"checkpoint-{number}"
        folder.mkdir()
        (folder / "trainer_state.json").write_text(json.dumps({"global_step": number, "log_history": lines}))
    run = read_run([tmp_path])
    assert [(line.step, line.loss) for line in run.steps] == [(10, 8.0), (20, 6.0)]
    assert [(line.step, line.loss, line.accuracy) for line in run.evaluations] == [(20, 6.2, 0.1)]


def test_an_export_of_a_wandb_chart_names_its_run_in_each_column(written):
    text = (
        '"Step","fox-7 - train/loss","fox-7 - train/loss__MIN","fox-7 - train/loss__MAX"\n'
        '"100","8.9","8.9","8.9"\n"200","","",""\n"300","5.8","5.8","5.8"\n'
    )
    run = read_run([written("chart.csv", text)])
    assert [(line.step, line.loss) for line in run.steps] == [(100, 8.9), (300, 5.8)]
    assert run.understood == (
        "chart.csv: 2 lines; training loss from fox-7 - train/loss.",
        "chart.csv: not understood, passed over: fox-7 - train/loss__MIN, fox-7 - train/loss__MAX.",
    )


def test_a_history_of_wandb_has_gaps(written):
    text = "_step,_runtime,train/loss,train/accuracy,eval/avg_loss,eval/acc_0,eval/acc_1,eval/simulated_acc_len\n"
    text += "10,1.0,8.0,3.5,,,,\n20,2.0,7.0,4.5,7.5,40.0,10.0,0.44\n"
    run = read_run([written("history.csv", text)])
    assert [(line.step, line.loss, line.accuracy) for line in run.steps] == [(10, 8.0, 0.035), (20, 7.0, 0.045)]
    (evaluation,) = run.evaluations
    assert evaluation.slots == (0.4, 0.1)  # counted from 0, in percent
    assert evaluation.length == 1.44  # without the bonus token in the log


def test_tensorboard_names_the_number_by_its_file(written):
    run = read_run([written("train_loss.csv", "Wall time,Step,Value\n1.0,10,8.0\n2.0,20,7.0\n")])
    assert [(line.step, line.loss) for line in run.steps] == [(10, 8.0), (20, 7.0)]


def test_json_may_hold_columns(written):
    text = json.dumps({"step": [1, 2], "loss": [3.0, 2.0], "title": "x"})
    run = read_run([written("run.json", text)])
    assert [(line.step, line.loss) for line in run.steps] == [(1, 3.0), (2, 2.0)]


def test_a_table_of_served_acceptance_is_added_to_a_log(written):
    table = written("served.csv", "step,tau,tau_low,tau_high,u_1,u_2\n200,1.02,1.01,1.03,0.02,0.0\n")
    run = read_run([written("train.log", SPECULATORS), table])
    (line,) = run.evaluations
    assert (line.step, line.tau, line.low, line.high, line.rates) == (200, 1.02, 1.01, 1.03, (0.02, 0.0))
    assert line.loss == 5.3


def test_lines_without_steps_are_counted(written):
    run = read_run([written("run.jsonl", '{"loss": 3.0}\n{"loss": 2.0}\n')])
    assert [(line.step, line.loss) for line in run.steps] == [(1, 3.0), (2, 2.0)]


def test_losses_that_are_no_numbers_are_kept(written):
    run = read_run([written("train.log", "step=1 loss=3.0\nstep=2 loss=nan\n")])
    assert run.steps[1].loss != run.steps[1].loss


def test_our_own_log_is_read_whole(tmp_path):
    lines = run_lines(steps=400)
    run = read_run([write_lines(tmp_path / "metrics.jsonl", lines).parent])
    assert (len(run.steps), len(run.evaluations)) == (20, 2)
    assert run.facts.block_size == 8
    assert run.facts.planned_steps == 4000
    assert run.unit == "tokens"
    assert run.steps[-1].tokens == 400 * 20_000
    assert run.evaluations[-1].slots == pytest.approx(lines[-1]["marginal_accuracy"])
    assert len(run.steps[0].phases) == 8


def test_a_line_that_a_crash_cut_off_is_left_out(tmp_path):
    path = write_lines(tmp_path / "metrics.jsonl", run_lines(steps=400))
    path.write_text(path.read_text()[:-30])
    assert len(read_run([path]).evaluations) == 1


def test_damage_before_the_end_is_named(tmp_path):
    path = write_lines(tmp_path / "metrics.jsonl", run_lines(steps=400))
    texts = path.read_text().splitlines()
    texts[3] = texts[3][:-9]
    path.write_text("\n".join(texts))
    with pytest.raises(UsageError, match="damaged in line 4"):
        read_run([path])


def test_a_later_format_is_refused(tmp_path):
    lines = run_lines(steps=40)
    lines[0]["format"] = 2
    with pytest.raises(UsageError, match="format 2; 1 is read"):
        read_run([write_lines(tmp_path / "metrics.jsonl", lines)])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("notes.txt", "all is well\n", "no loss, accuracy or acceptance length is understood"),
        ("empty.log", "", "no loss, accuracy or acceptance length is understood"),
        ("other.csv", "a,b\n1,2\n", "no loss, accuracy or acceptance length is understood"),
        ("bad.json", "[[[", "no loss, accuracy or acceptance length is understood"),
    ],
)
def test_a_file_without_numbers_that_mean_something_gives_one_line(written, name, text, message):
    with pytest.raises(UsageError, match=message) as caught:
        read_run([written(name, text)])
    assert "\n" not in str(caught.value)


def test_places_that_hold_no_log_give_one_line(tmp_path):
    with pytest.raises(UsageError, match="does not exist"):
        read_run([tmp_path / "gone"])
    with pytest.raises(UsageError, match="holds no log"):
        read_run([tmp_path])


def test_two_runs_are_not_mixed(tmp_path):
    paths = [write_lines(tmp_path / name / "metrics.jsonl", run_lines(steps=40)) for name in ("a", "b")]
    with pytest.raises(UsageError, match="two runs"):
        read_run(paths)
    (tmp_path / "table.csv").write_text("step,tau\n40,1.1\n")
    with pytest.raises(UsageError, match="a run of its own"):
        read_run([paths[0], tmp_path / "table.csv"])


@pytest.mark.parametrize(
    ("name", "what", "place", "index"),
    [
        ("train/loss", "loss", "train", None),
        ("loss", "loss", "train", None),
        ("held_out_loss", "loss", "held-out", None),
        ("eval/avg_acc", "accuracy", "held-out", None),
        ("mean_token_accuracy", "accuracy", "train", None),
        ("val/position_3_acc_epoch", "slot", "held-out", 3),
        ("position_3/accuracy", "slot", "train", 3),
        ("parallel_0_step_0_train_acc", "slot", "train", 0),
        ("train/accept_len", "length", "train", None),
        ("acceptance_length", "tau", "engine", None),
        ("train/acceptance_length", "length", "train", None),
        ("u_2", "rate", "engine", 2),
        ("num_input_tokens_seen", "tokens", "any", None),
    ],
)
def test_names_mean_what_their_trainers_mean(name, what, place, index):
    column = understand(name)
    assert column is not None
    assert (column.what, column.place, column.index) == (what, place, index)


@pytest.mark.parametrize("name", ["profile/fetch_ms", "loss__MIN", "train/ce_loss", "gpu_memory", "", "___"])
def test_other_names_are_not_guessed(name):
    assert understand(name) is None
