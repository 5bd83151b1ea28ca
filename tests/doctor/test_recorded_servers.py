"""Real servers, recorded: what they printed is served again, and examined with the drafter's files as they were.

The recordings are of vLLM 0.32.0 (CPU build) and llama.cpp b11549, SmolLM2-135M-Instruct and the shipped drafter with
one thing wrong in its files (``benchmarks/wrong_drafters.py``). ``benchmarks.wrong_configs --record`` makes them.
"""

import json
from pathlib import Path

import pytest
from benchmarks.wrong_drafters import write
from doctor.engine_stub import serving

from outrider.doctor.examine import examine
from outrider.doctor.intake import gather, server

RECORDED = Path(__file__).parents[1] / "adapters" / "recorded"
PAGES = {"version": "/version", "models": "/v1/models", "props": "/props", "slots": "/slots"}


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(server, "BETWEEN", 0.01)


def pages(folder):
    found = {"/metrics": (folder / "metrics_after.txt").read_text("utf-8")}
    named = {address: folder / f"{name}.json" for name, address in PAGES.items()}
    return found | {address: path.read_text("utf-8") for address, path in named.items() if path.exists()}


@pytest.fixture
def seen(tmp_path):
    def of(case, wrong=None, *, log=True):
        folder = RECORDED / case
        drafter = None if wrong is None else str(write(wrong, tmp_path / "drafter"))
        with serving(pages(folder)) as (url, _):
            known = gather(url=url, logs=[folder / "server.log"] if log else [], drafter=drafter, target="smollm2-135m")
        return known.evidence, examine(known.evidence, known.warnings)

    return of


@pytest.mark.parametrize("log", [True, False])
@pytest.mark.parametrize("engine", ["vllm-0.32.0", "llamacpp-11549"])
def test_a_mask_token_that_is_a_word_is_named(seen, engine, log):
    _, verdict = seen(f"{engine}/dflash-mask-wrong", "mask token: a word", log=log)
    assert verdict.findings[0].cause == "mask_token"
    assert verdict.findings[0].confidence > 0.8


def test_a_drafter_without_training_is_among_the_first_two_and_its_files_are_whole(seen):
    _, verdict = seen("vllm-0.32.0/dflash-untrained", "untrained")
    assert "undertrained_drafter" in [one.cause for one in verdict.findings[:2]]
    missing = next(one for one in verdict.findings if one.cause == "draft_weights_missing")
    assert "the tensors of every layer are in its file" in missing.against


def test_without_training_on_llamacpp_one_slot_is_no_defect_of_many(seen):
    evidence, verdict = seen("llamacpp-11549/dflash-untrained", "untrained")
    assert evidence.counters.accepted == 0
    assert "undertrained_drafter" in [one.cause for one in verdict.findings[:3]]
    assert not any("slots-in-parallel" in told for one in verdict.findings for told in one.evidence)


@pytest.mark.parametrize(
    ("case", "wrong"),
    [
        ("vllm-0.32.0/dflash", "right"),
        ("vllm-0.32.0/dflash", "taps: reversed"),  # vLLM sorts them: the server is the healthy one
        ("vllm-0.32.0/dflash-taps-plus-one", "taps: one late"),  # a tenth of the length: not to be seen from outside
        ("vllm-0.32.0/dflash-taps-others", "taps: others"),
        ("vllm-0.32.0/dflash-windows-removed", "windows removed"),
        ("llamacpp-11549/dflash-right", "right"),
        ("llamacpp-11549/dflash-taps-plus-one", "taps: one late"),
        ("llamacpp-11549/dflash-taps-others", "taps: others"),
        ("llamacpp-11549/dflash-windows-removed", "windows removed"),
        ("vllm-0.32.0/ngram", None),
        ("vllm-0.32.0/plain", None),
    ],
)
def test_where_nothing_can_be_seen_nothing_is_claimed(seen, case, wrong):
    _, verdict = seen(case, wrong)
    assert all(one.confidence < 0.45 for one in verdict.findings)  # far from likely


def test_a_log_that_says_no_key_is_set_speaks_of_no_weights(seen):
    _, verdict = seen("llamacpp-11549/plain")
    assert all(one.confidence < 0.45 for one in verdict.findings)  # far from likely


def summaries(key):
    found = {path.parent: json.loads(path.read_text("utf-8")) for path in sorted(RECORDED.glob("*/*/summary.json"))}
    return [(f"{path.parent.name}/{path.name}", client) for path, client in found.items() if key in client]


@pytest.mark.parametrize(("case", "client"), summaries("answers"))
def test_rounds_and_accepted_tokens_make_the_text_that_the_client_got(seen, case, client):
    evidence, _ = seen(case)
    counters, written = evidence.counters, sum(answer["output_tokens"] for answer in client["answers"])
    firsts = len(client["answers"])  # the first token of an answer is no round's
    assert client["same"]
    assert counters.accepted + counters.rounds + firsts == pytest.approx(written, rel=0.02)
    assert sum(counters.accepted_per_position) == counters.accepted


@pytest.mark.parametrize(("case", "client"), summaries("drafted"))
def test_the_numbers_are_those_of_the_client(seen, case, client):
    evidence, _ = seen(case)
    if not client.get("drafts"):
        assert evidence.counters.rounds is None
        return
    assert evidence.counters.rounds == client["drafts"]
    assert evidence.counters.accepted == client["accepted"]
    assert list(evidence.counters.accepted_per_position) == client["accepted_per_position"]


def test_a_log_that_breaks_off_counts_what_it_has_printed():
    known = gather(logs=[RECORDED / "llamacpp-11549" / "dflash" / "server.log"])
    counters = known.evidence.counters
    assert (known.evidence.engine.name, known.evidence.method) == ("llama.cpp", "dflash")
    assert (counters.drafted, counters.accepted) == (1889, 395)  # eight requests; the ninth has no line of its own
    assert counters.rounds == pytest.approx(275, abs=3)
    assert all(one.confidence < 0.4 for one in examine(known.evidence, known.warnings).findings)
