"""``--trace`` and ``outrider trace``: what is written, what is read from it, and what is refused."""

import json
import signal
import subprocess
import sys

import pytest
from pydantic import ValidationError

from outrider.commands import trace as command
from outrider.commands.trace_tree import draw, heading
from outrider.errors import UsageError
from outrider.results import Comparison, GenerationResult
from outrider.traces.format import TraceRow
from outrider.traces.reader import TraceReader
from outrider.traces.summary import spine, summarise

FAST = ("--ignore-eos", "--max-tokens", "40", "--drafter", "ngram")
PROMPT = "abc abc abc abc"


def row(**changes):
    """A tree of six nodes, of which 3 and 5 were accepted: 0 has 1 and 3, 1 has 2, 3 has 4 and 5, 5 has 6."""
    fields = {
        "drafter": "x",
        "prompt": 0,
        "round": 1,
        "position": 9,
        "anchor": 50,
        "tokens": (51, 52, 53, 54, 55, 56),
        "parents": (0, 1, 0, 3, 3, 5),
        "reach": (0.5, 0.25, 0.25, 0.2, 0.05, 0.01),
        "target": (0.25, 0.1, 0.75, 0.3, 0.6, 0.2),
        "sampled": False,
        "path": (3, 5),
        "bonus": 57,
        "kept": 3,
        "seconds": 0.5,
    }
    return TraceRow(**fields | changes)


@pytest.fixture
def traced(run, tiny, tmp_path):
    """A trace of one text, and the record that generate printed beside it."""
    path = tmp_path / "one.jsonl"
    seen = run("generate", tiny, PROMPT, *FAST, "--trace", path, "--json")
    return path, GenerationResult.model_validate_json(seen.out)


@pytest.fixture
def compared(run, tiny, tmp_path):
    path = tmp_path / "two.jsonl"
    seen = run("compare", tiny, PROMPT, "the end of the", *FAST, "--trace", path, "--json")
    return path, Comparison.model_validate_json(seen.out)


def test_a_trace_is_a_header_and_a_line_a_round(traced, tiny):
    path, record = traced
    header, *rows = map(json.loads, path.read_text().splitlines())
    assert (header["format"], header["version"]) == ("outrider-trace", 1)
    assert (header["model"], header["dtype"], header["drafters"]) == (str(tiny), "float32", ["ngram"])
    assert header["draft"]["budget"] == "auto"
    assert header["sampling"]["max_tokens"] == 40
    assert header["provenance"]["outrider"] == record.provenance.outrider
    assert [found["round"] for found in rows] == list(range(1, record.rounds + 1))
    assert {(found["drafter"], found["prompt"]) for found in rows} == {("ngram", 0)}


def test_the_rows_tell_the_text_and_its_depths_again(traced):
    path, record = traced
    told = []
    for found in TraceReader(path).rows():
        tokens = [*((found.tokens[node - 1], found.depths[node]) for node in found.path), (found.bonus, 0)]
        assert found.position == record.prompt_tokens + len(told)
        told += tokens[: found.kept]
    assert told == [(token.id, token.depth) for token in record.tokens]


def test_the_numbers_are_those_that_generate_gave(run, traced):
    path, record = traced
    report = command.TraceReport.model_validate_json(run("trace", path, "--json").out)
    found = report.drafters[0]
    assert (found.rounds, found.acceptance_length) == (record.rounds, record.acceptance_length)
    assert found.position_rates == record.position_rates
    assert found.acceptance_rate == record.acceptance_rate
    assert sum(depth.offered for depth in found.depths) == found.drafted
    assert not report.truncated
    assert report.rounds == []


def test_a_comparison_traces_every_drafter_and_prompt_without_the_warm_up(run, compared):
    path, record = compared
    report = command.TraceReport.model_validate_json(run("trace", path, "--json").out)
    assert report.header.drafters == ["none", "ngram"]
    assert [found.drafter for found in report.drafters] == ["none", "ngram"]
    assert [found.rounds for found in report.drafters] == [method.rounds for method in record.methods]
    assert [found.prompts for found in report.drafters] == [2, 2]


def test_a_prompt_and_a_round_choose_what_is_shown(run, compared):
    path, _ = compared
    report = command.TraceReport.model_validate_json(run("trace", path, "--prompt", 2, "--round", 3, "--json").out)
    assert {(found.prompt, found.round) for found in report.rounds} == {(1, 3)}
    assert {found.drafter for found in report.rounds} == {"none", "ngram"}
    assert [found.prompts for found in report.drafters] == [1, 1]


def test_people_see_rates_a_table_by_depth_and_the_tree_that_accepted_most(run, traced):
    path, _ = traced
    seen = run("trace", path)
    best = max(TraceReader(path).rows(), key=lambda found: len(found.path))
    for part in ("acceptance length", "u_1", "came true", "left the spine", f"round {best.round} at", "(anchor)"):
        assert part in seen.out
    assert seen.out.count("accepted\n") == len(best.path)


def test_tokens_are_texts_where_the_model_is_at_hand_and_ids_elsewhere(run, traced, tiny):
    path, _ = traced
    anchor = next(TraceReader(path).rows()).anchor
    assert "'c' (anchor)" in run("trace", path, "--round", 1).out
    path.write_text(path.read_text().replace(str(tiny), "/gone"))
    assert f"\n{anchor} (anchor)" in run("trace", path, "--round", 1).out


def test_a_trace_is_whole_after_ctrl_c(run, tiny, tmp_path, monkeypatch):
    path = tmp_path / "cut.jsonl"
    shown = []

    def show(piece):
        shown.append(piece)
        if len(shown) == 5:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("outrider.commands.generate.shower", lambda: show)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert run("generate", tiny, "abc", *FAST, "--trace", path).code == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert path.read_text().endswith("}\n")
    assert sum(found.kept for found in TraceReader(path).rows()) >= 5


@pytest.mark.parametrize("command", ["generate", "compare"])
def test_a_file_that_cannot_be_written_is_said_before_the_model_is_looked_for(run, tmp_path, command):
    line = run(command, "no-such-model", "hi", "--trace", tmp_path / "absent" / "t").check_one_line_error()
    assert "No such file" in line
    assert "Is a directory" in run(command, "no-such-model", "hi", "--trace", tmp_path).check_one_line_error()


def test_a_file_that_was_only_tried_is_left_as_it_was(run, tmp_path):
    (tmp_path / "old").write_text("kept")
    for name in ("old", "new"):
        run("generate", "no-such-model", "hi", "--trace", tmp_path / name)
    assert (tmp_path / "old").read_text() == "kept"
    assert not (tmp_path / "new").exists()


@pytest.mark.skipif("not __import__('os').path.exists('/dev/full')", reason="a device of Linux")
def test_a_full_disk_is_said_before_anything_is_decoded(run, tiny):
    seen = run("generate", tiny, "hi", "--trace", "/dev/full")
    assert "No space left" in seen.check_one_line_error()
    assert seen.out == ""


def test_a_disk_that_fills_up_later_ends_the_run_in_one_line(run, tiny, tmp_path, monkeypatch):
    from outrider.traces import writer

    class Full:
        lines = 0

        def write(self, text):
            self.lines += 1
            if self.lines > 3:
                raise OSError(28, "No space left on device")

        def close(self):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(writer, "_open", lambda path: Full())
    line = run("generate", tiny, "hi", *FAST, "--json", "--trace", tmp_path / "t").check_one_line_error()
    assert "No space left" in line


def test_a_last_line_that_was_cut_is_reported_and_the_rest_used(run, traced):
    path, record = traced
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    seen = run("trace", path, "--json")
    report = command.TraceReport.model_validate_json(seen.out)
    assert report.truncated
    assert report.drafters[0].rounds == record.rounds - 1
    assert "last line is cut short" in seen.err
    path.write_bytes(whole[:-1])  # only the end of the line is missing: nothing is lost
    assert not json.loads(run("trace", path, "--json").out)["truncated"]


def test_a_trace_without_rounds_is_shown_as_such(run, traced):
    path, _ = traced
    path.write_text(path.read_text().splitlines()[0] + "\n")
    assert "no rounds" in run("trace", path).out


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda lines: ["not json", *lines[1:]], "is no trace"),
        (lambda lines: ['{"version": 1}', *lines[1:]], "is no trace"),
        (lambda lines: [], "is no trace"),
        (lambda lines: [lines[0].replace('"version":1', '"version":2'), *lines[1:]], "version 2"),
        (lambda lines: [lines[0].replace('"model":', '"modell":'), *lines[1:]], "line 1"),
        (lambda lines: [lines[0], "{", *lines[1:]], "line 2"),
        (lambda lines: [lines[0], "\udc80", *lines[1:]], "line 2"),
        (lambda lines: [*lines, '{"drafter": "x"}'], "line "),
    ],
)
def test_a_file_that_is_no_trace_is_refused_by_its_line(run, traced, change, part):
    path, _ = traced
    lines = change(path.read_text().splitlines())
    path.write_bytes("".join(line + "\n" for line in lines).encode(errors="surrogateescape"))
    assert part in run("trace", path).check_one_line_error()


def test_a_missing_file_a_missing_prompt_and_a_missing_round_are_named(run, compared, tmp_path):
    path, _ = compared
    assert "nowhere" in run("trace", tmp_path / "nowhere").check_one_line_error()
    assert "prompts: 1, 2" in run("trace", path, "--prompt", 3).check_one_line_error()
    assert "rounds 1 to 40 of prompt 2" in run("trace", path, "--prompt", 2, "--round", 41).check_one_line_error()


@pytest.mark.parametrize(
    "changes",
    [
        {"parents": (0, 1, 0, 3, 3)},
        {"reach": ()},
        {"target": (0.5,)},
        {"parents": (0, 2, 0, 3, 3, 5)},
        {"path": (3, 2)},
        {"path": (3, 7)},
        {"path": (5,)},
        {"kept": 0},
    ],
)
def test_a_row_that_is_no_tree_or_no_path_is_refused(changes):
    with pytest.raises(ValidationError):
        row(**changes)


def test_nodes_are_counted_by_depth_as_offered_reached_and_accepted():
    found = summarise([row(), row(round=2, path=(), kept=1)])[0]
    counts = [(d.depth, d.offered, d.reached, d.accepted) for d in found.depths]
    assert counts == [(1, 4, 4, 1), (2, 6, 2, 1), (3, 2, 1, 0)]
    assert found.depths[0].drafter == pytest.approx((0.5 + 0.25) / 2)
    assert found.depths[0].frequency == pytest.approx(1 / 4)
    assert found.depths[1].target == pytest.approx((0.3 + 0.6) / 2)
    assert found.depths[1].conditional == pytest.approx(1 / 2)
    assert found.left_spine == 1.0
    assert (found.acceptance_length, found.position_rates) == (2.0, [0.5, 0.5, 0.0])


def test_the_spine_goes_through_first_children():
    assert spine(row()) == {1, 2}
    assert summarise([row(), row(path=(1, 2), kept=3), row(path=(), kept=1)])[0].left_spine == 0.5


def test_tokens_behind_the_end_of_a_text_are_no_accepted_drafts():
    assert row(kept=1).counts.accepted == 1
    assert summarise([row(kept=1)])[0].acceptance_length == 2.0


def test_what_is_unknown_does_not_count_in_a_mean():
    found = summarise([row(reach=None, target=(None,) * 6)])[0]
    assert [(depth.drafter, depth.target) for depth in found.depths] == [(None, None)] * 3


def test_a_drawn_tree_marks_the_path_and_what_the_target_decided(capsys):
    from outrider.commands.screen import stdout

    stdout().print(draw(row(), str))
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.endswith("accepted")] == [
        "└── 53  target 0.75, drafter 0.25, reach 0.25, accepted",
        "    └── 55  target 0.6, drafter 0.2, reach 0.05, accepted",
    ]
    assert lines[-1] == "        └── 57  decided by the target"
    assert len(lines) == 8
    stdout().print(draw(row(kept=1), str))
    assert "the text ended with token 1" in capsys.readouterr().out
    assert "prompt 1, round 1 at position 9: 6 nodes, 2 accepted" in str(heading(row()))


def test_numbers_that_are_none_are_written_as_null(tmp_path):
    from outrider.engine.tracing import RoundRecord

    record = RoundRecord(
        sequence_id=0, round=1, position=1, anchor=1, tokens=(5,), parents=(0,), reach=(0.123456789,),
        target=(float("nan"),), sampled=True, path=(), bonus=2, kept=1, seconds=0.1234567891,
    )  # fmt: skip
    found = TraceRow.of(record, drafter="x", prompt=0)
    assert (found.target, found.reach, found.seconds) == ((None,), (0.123457,), 0.123457)


def test_a_reader_says_which_file_it_could_not_read(tmp_path):
    with pytest.raises(UsageError, match=r"nowhere: No such file"):
        TraceReader(tmp_path / "nowhere")


def test_a_trace_is_read_without_torch(traced):
    code = (
        "import sys\nsys.modules['torch'] = None\nfrom outrider.cli import run\n"
        f"sys.exit(run(['trace', {str(traced[0])!r}, '--round', '1']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "'c' (anchor)" in done.stdout


def test_a_file_that_is_no_trace_is_not_replaced(run, tiny, tmp_path):
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"prompt": "abc"}\n')
    line = run("compare", tiny, "--prompts", prompts, *FAST, "--trace", prompts).check_one_line_error()
    assert f"--trace {prompts}: the file exists and is no trace of this version" in line
    assert prompts.read_text() == '{"prompt": "abc"}\n'


def test_an_older_trace_and_an_empty_file_are_replaced(run, tiny, traced):
    path, _ = traced
    for _ in range(2):
        assert run("generate", tiny, PROMPT, *FAST, "--trace", path).code == 0
        assert len(path.read_text().splitlines()) > 1
        path.write_text("")
