"""Ways forward: nothing without evidence, numbers that follow from it, commands that can be typed."""

import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.doctor.evidence import Evidence
from outrider.doctor.observation.reading import Reading
from outrider.doctor.options import ways
from outrider.doctor.options.lengths import best, lengths
from outrider.doctor.verdict import Effect, Finding, Verdict

RATES = [0.8, 0.6, 0.4, 0.2, 0.05, 0.02, 0.01, 0.0]


def evidence(**parts):
    return Evidence.model_validate({"schema": 1, **parts})


def verdict(*causes, effect=None, confidence=0.7):
    return Verdict(
        summary="x",
        findings=[
            Finding(
                code="OR999", cause=cause, standing="likely", confidence=confidence, remedy=["do this"],
                effect=Effect(tokens_per_round=effect),
            )
            for cause in causes
        ],
    )  # fmt: skip


def named(found, part):
    return next((way for way in found if part in way.name), None)


def vllm(**parts):
    base = {
        "method": "dflash",
        "engine": {"name": "vllm", "version": "0.30.0"},
        "target": {"name": "org/Target"},
        "drafter": {"name": "org/Drafter"},
        "speculation": {"num_speculative_tokens": 8},
    }
    return evidence(**(base | parts))


def test_without_evidence_there_are_no_ways():
    assert ways(evidence(), verdict()) == []


def test_without_counters_no_way_has_a_number_but_speculation_off():
    found = ways(vllm(), verdict("undertrained_drafter", effect=(-3.0, -1.0)))
    assert found
    assert {way.tokens_per_round for way in found} == {None, (1.0, 1.0)}
    assert {way.tokens_per_second for way in found} == {None}


def test_a_long_useless_tail_gives_a_shorter_draft():
    way = named(ways(vllm(counters={"accepted_per_position": RATES, "rounds": 1000}), verdict()), "Draft")
    assert way.name == "Draft 4 tokens a round"
    low, high = way.tokens_per_round
    assert low < 3.0 < high
    assert high - low < 0.3
    config = json.loads(shlex.split(way.command)[-1])
    assert config == {"method": "dflash", "model": "org/Drafter", "num_speculative_tokens": 4}


def test_a_collapsed_drafter_is_not_cured_by_a_shorter_draft():
    found = ways(vllm(counters={"accepted_per_position": [0.05, 0.0], "rounds": 1000}), verdict())
    assert named(found, "Draft") is None


def test_speeds_choose_the_length_and_bracket_its_tokens_a_second():
    counters = {"accepted_per_position": RATES, "rounds": 5000, "tokens_per_second": 60.0}
    counters |= {"baseline_tokens_per_second": 50.0, "mean_acceptance_length": 3.08}
    way = named(ways(vllm(counters=counters), verdict()), "Draft")
    low, high = way.tokens_per_second
    assert low < high
    assert high > 60.0


def test_a_length_that_was_measured_faster_is_taken_before_any_estimate():
    series = [{"when": {"num_speculative_tokens": 3}, "counters": {"tokens_per_second": 90.0}}]
    counters = {"accepted_per_position": RATES, "rounds": 1000, "tokens_per_second": 60.0}
    way = named(ways(vllm(counters=counters, series=series), verdict()), "Draft")
    assert (way.name, way.tokens_per_second) == ("Draft 3 tokens a round", (90.0, 90.0))


def test_rates_that_contradict_give_no_length():
    counters = {"accepted_per_position": [0.2, 0.6], "rounds": 1000}
    assert named(ways(vllm(counters=counters), verdict()), "Draft") is None


def test_a_fix_gives_back_what_the_cause_costs_up_to_what_was_expected():
    found = ways(
        vllm(
            counters={"mean_acceptance_length": 2.0, "tokens_per_second": 50.0},
            expected={"mean_acceptance_length": 4.0},
        ),
        verdict("swa_ignored", effect=(-3.0, -1.0)),
    )
    way = named(found, "Fix swa ignored")
    assert way.tokens_per_round == (3.0, 4.0)
    assert way.tokens_per_second == (75.0, 100.0)


def test_refuted_and_faint_findings_are_not_acted_on():
    faint = verdict("swa_ignored", confidence=0.05)
    refuted = verdict("swa_ignored")
    refuted.findings[0].standing = "refuted"
    assert ways(vllm(), faint) == ways(vllm(), refuted) == []


def test_a_wrong_recurrent_state_is_worked_around_in_the_given_command():
    command = 'vllm serve org/Target --port 8001 --speculative-config \'{"method": "mtp"}\''
    parts = {"method": "mtp", "engine": {"name": "vllm", "version": "0.26.0", "command": command}}
    way = named(ways(vllm(**parts), verdict("hybrid_state_rollback")), "Fix")
    assert shlex.split(way.command) == [*shlex.split(command), "--no-enable-prefix-caching"]


def test_an_unfinished_drafter_can_be_waited_for_or_trained():
    drafter = {"name": "org/Drafter", "training": "still under training"}
    found = ways(vllm(drafter=drafter), verdict("undertrained_drafter"))
    assert named(found, "Wait").command == "hf download org/Drafter"
    assert "outrider train dflash org/Target" in named(found, "Train").command


def test_what_outrider_cannot_run_gets_no_command_of_its_own():
    found = ways(vllm(target={"name": "org/T", "hybrid": True}), verdict("undertrained_drafter"))
    assert named(found, "Train").command is None
    assert named(found, "tree") is None


def test_a_guessed_config_is_repaired_by_experiment():
    drafter = {"name": "org/Drafter", "made_config": True}
    command = named(ways(vllm(drafter=drafter), verdict("wrong_layer_ids")), "Fix").command
    assert command == "outrider repair org/Drafter --target org/Target"


def test_heads_of_the_target_are_offered_with_the_engines_own_flags():
    parts = {"target": {"name": "org/T", "config": {"mtp_num_hidden_layers": 1}}}
    for engine, flag in (
        ("vllm", '"method": "mtp"'),
        ("sglang", "--speculative-algorithm EAGLE --speculative-num-steps 3 --speculative-eagle-topk 1"),
        ("llama.cpp", "--spec-type draft-mtp --spec-draft-n-max 3"),
    ):
        found = ways(vllm(**parts, engine={"name": engine}), verdict("undertrained_drafter"))
        assert flag in named(found, "MTP").command


def test_another_engine_that_measured_better_is_offered_with_its_numbers():
    series = [{"when": {"engine": "sglang"}, "counters": {"mean_acceptance_length": 6.0, "tokens_per_second": 80.0}}]
    found = ways(vllm(counters={"mean_acceptance_length": 2.0}, series=series), verdict("layer_id_offset"))
    way = named(found, "SGLang")
    assert (way.tokens_per_round, way.tokens_per_second) == ((6.0, 6.0), (80.0, 80.0))
    assert "--speculative-num-draft-tokens 9" in way.command


def test_a_tree_is_offered_only_on_a_drafter_that_works():
    works = vllm(counters={"mean_acceptance_length": 4.0})
    assert named(ways(works, verdict()), "tree").tokens_per_round is None
    assert named(ways(vllm(counters={"mean_acceptance_length": 1.2}), verdict()), "tree") is None


def test_speculation_off_has_the_baselines_speed_and_the_command_without_it():
    command = "FOO=1 vllm serve org/Target --speculative-config={} -tp 2 2>&1 | tee log"
    parts = {"counters": {"mean_acceptance_length": 1.1, "baseline_tokens_per_second": 40.0}}
    found = ways(vllm(**parts, engine={"name": "vllm", "command": command}), verdict("undertrained_drafter"))
    way = named(found, "off")
    assert way.tokens_per_second == (40.0, 40.0)
    assert way.command == "FOO=1 vllm serve org/Target -tp 2"


def test_only_the_draft_length_of_a_given_command_changes():
    counters = {"accepted_per_position": RATES, "rounds": 1000}
    cases = {
        "vllm": (
            """vllm serve $MODEL --speculative-config '{"model": "d", "num_speculative_tokens": 8, "x": 1}' -tp 2""",
            '"num_speculative_tokens": 4, "x": 1}',
        ),
        "sglang": ("sglang serve --speculative-num-draft-tokens 9 --tp 2", "--speculative-num-draft-tokens 5 --tp 2"),
        "llama.cpp": ("llama-server -m t.gguf --spec-draft-n-max 8 -fa on", "--spec-draft-n-max 4 -fa on"),
    }
    for engine, (command, part) in cases.items():
        given_command = vllm(counters=counters, engine={"name": engine, "command": command})
        way = named(ways(given_command, verdict()), "Draft")
        assert part in way.command
        assert "'$MODEL'" not in way.command


@pytest.mark.parametrize("command", ["vllm serve X with method dflash, 7 tokens", "my own script", 'vllm serve "X'])
def test_a_command_that_is_only_described_is_written_anew(command):
    counters = {"accepted_per_position": RATES, "rounds": 1000}
    found = ways(vllm(counters=counters, engine={"name": "vllm", "command": command}), verdict())
    assert named(found, "Draft").command.startswith("vllm serve org/Target --speculative-config")


def test_an_engine_without_known_flags_gets_ways_without_commands():
    counters = {"accepted_per_position": RATES, "rounds": 1000}
    assert named(ways(vllm(counters=counters, engine={"name": "mlx"}), verdict()), "Draft").command is None


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=16).map(lambda some: tuple(sorted(some, reverse=True))),
    st.floats(1, 1e6) | st.none(),
    st.floats(1, 1e4) | st.none(),
)
def test_lengths_rise_lie_in_their_intervals_and_never_beat_a_perfect_drafter(rates, rounds, baseline):
    reading = Reading(tau=1 + sum(rates), positions=rates, rounds=rounds, speed=50.0, baseline=baseline)
    found = lengths(reading)
    assert [one.tokens for one in found] == list(range(1, len(rates) + 1))
    for before, one in zip([None, *found], found, strict=False):
        assert 1 <= one.low <= one.per_round <= one.high + 1e-9 <= 1 + one.tokens + 1e-6
        assert before is None or one.per_round >= before.per_round
        assert one.per_second is None or 0 < one.per_second[0] <= one.per_second[1] + 1e-9
    assert best(found) is None or best(found) in found


@given(st.text(max_size=60), st.sampled_from(["vllm", "sglang", "llama.cpp"]))
def test_no_command_breaks_the_ways(command, engine):
    counters = {"accepted_per_position": RATES, "rounds": 1000}
    ways(vllm(counters=counters, engine={"name": engine, "command": command}), verdict("cuda_graph_or_kernel"))
