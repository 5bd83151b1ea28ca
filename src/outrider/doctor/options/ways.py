"""The table of ways forward, most promising first. A number stands only where the evidence has what it follows from."""

import re
import shlex
from collections.abc import Iterator

from outrider.adapters.start.deployment import WHOLE_BLOCK, Draft
from outrider.doctor.evidence import Evidence
from outrider.doctor.observation import Observation
from outrider.doctor.observation.reading import Reading
from outrider.doctor.options import measured
from outrider.doctor.options.drafting import BETTER, draft_lengths, draft_of
from outrider.doctor.options.fix import fix
from outrider.doctor.options.launch import launch
from outrider.doctor.verdict import Finding, Verdict, Way

ENGINE_SIDE = (
    "swa_ignored", "causal_flag", "layer_id_offset", "context_kv_dropped", "prefix_cache", "cuda_graph_or_kernel",
    "hybrid_state_rollback", "config_rejected", "version_defect", "draft_weights_missing", "memory_or_kv_pressure",
    "lm_head_or_embedding_not_shared", "position_or_rope", "mask_token", "wrong_layer_ids",
)  # fmt: skip
DRAFTER_SIDE = ("undertrained_drafter", "target_mismatch", "tokenizer_or_vocab_mismatch")
NAMES = {"vllm": "vLLM", "sglang": "SGLang", "llama.cpp": "llama.cpp"}
HAVE_MTP = re.compile(r"qwen3\.[568]|qwen3-next|deepseek-(v3|r1)|glm-4\.[567]|mimo", re.IGNORECASE)
MTP_KEYS = ("mtp_num_hidden_layers", "num_nextn_predict_layers")
MTP_TOKENS = 3
UNFINISHED = re.compile(r"under training|in training|unfinished|preview|early|in progress|still train", re.IGNORECASE)
WORKS = 2.0  # acceptance length from which a tree has something to build on
CERTAIN = 0.1  # findings below are not acted on


def ways(evidence: Evidence, verdict: Verdict) -> list[Way]:
    """Return the ways forward."""
    o = Observation(evidence)
    left = [one for one in verdict.findings if one.standing != "refuted" and one.confidence >= CERTAIN]
    found: list[Way] = [way for one in left[:2] if (way := fix(o, one)) is not None]
    found += draft_lengths(o)
    found += [*_version(o, left), *_engines(o, left)]
    if left:
        found += _mtp(o)
    found += _tree(o, left)
    found += [*_training(o, left), *_waiting(o, left)]
    if left:
        found += _off(o)
    return found


def _version(o: Observation, left: list[Finding]) -> Iterator[Way]:
    name = o.evidence.engine.name
    if name not in NAMES or not left or left[0].cause not in ENGINE_SIDE or o.evidence.engine.version is None:
        return
    reading = measured.of(o, "version") or measured.of(o, "engine_version")
    upgrade = {"vllm": "pip install --upgrade vllm", "sglang": "pip install --upgrade sglang"}.get(name)
    yield Way(
        name=f"Another version of {NAMES[name]} than {o.evidence.engine.version}",
        tokens_per_round=measured.point(reading.tau) if reading else None,
        tokens_per_second=measured.point(reading.speed) if reading else None,
        effort="hours",
        risk="New versions have new defects: measure again before and after, with the same prompts.",
        command=upgrade,
    )


def _engines(o: Observation, left: list[Finding]) -> Iterator[Way]:
    """Another engine: all that measured better, else the first that runs the method."""
    here = o.evidence.engine.name
    told = [(name, measured.of(o, "engine", name)) for name in NAMES if name != here]
    worth = [pair for pair in told if pair[1] is not None and _beats(pair[1], o)]
    if not worth and left and left[0].cause in ENGINE_SIDE and here in NAMES:
        worth = [pair for pair in told if pair[1] is None][:1]
    draft = draft_of(o, o.facts.drafted or o.facts.trained_depth or len(o.reading.positions) or MTP_TOKENS)
    for name, reading in worth:
        command = None if draft is None else launch(o.evidence, draft, engine=name)
        if command is not None or reading is not None:
            yield Way(
                name=f"The same pair in {NAMES[name]}",
                tokens_per_round=measured.point(reading.tau) if reading else None,
                tokens_per_second=measured.point(reading.speed) if reading else None,
                effort="hours",
                risk="Measured in this evidence." if reading else "Not measured; outrider inspect says what it needs.",
                command=command,
            )


def _beats(reading: Reading, o: Observation) -> bool:
    pairs = ((reading.speed, o.reading.speed), (reading.tau, o.reading.tau))
    return any(there is not None and here is not None and there > BETTER * here for there, here in pairs)


def _mtp(o: Observation) -> Iterator[Way]:
    evidence = o.evidence
    heads = any(o.facts.target.get(key) for key in MTP_KEYS) or HAVE_MTP.search(evidence.target.name or "")
    reading = measured.of(o, "method", "mtp")
    if evidence.method == "mtp" or not (heads or reading):
        return
    yield Way(
        name="The target's own MTP heads instead",
        tokens_per_round=measured.point(reading.tau) if reading else None,
        tokens_per_second=measured.point(reading.speed) if reading else None,
        effort="minutes",
        risk="Quantised checkpoints may lack the heads: look for tensors named mtp.",
        command=launch(evidence, Draft("mtp", None, MTP_TOKENS)),
    )


def _tree(o: Observation, left: list[Finding]) -> Iterator[Way]:
    evidence = o.evidence
    reading = measured.of(o, "method", "ddtree")
    works = (o.reading.tau or 0) >= WORKS and not any(one.standing == "confirmed" for one in left)
    if evidence.method not in WHOLE_BLOCK or (reading is None and (not works or o.facts.hybrid)):
        return
    target, drafter = (shlex.quote(name or word) for name, word in _names(evidence))
    yield Way(
        name="A tree of drafts (DDTree) with the same drafter",
        tokens_per_round=measured.point(reading.tau) if reading else None,
        tokens_per_second=measured.point(reading.speed) if reading else None,
        effort="hours",
        risk="Keeps more tokens a round and verifies more nodes: it pays where rounds are bound by memory.",
        command=f"outrider compare {target} --drafter dflash,ddtree --draft-model {drafter}",
    )


def _names(evidence: Evidence) -> tuple[tuple[str | None, str], tuple[str | None, str]]:
    return (evidence.target.name, "TARGET"), (evidence.drafter.name, "DRAFTER")


def _training(o: Observation, left: list[Finding]) -> Iterator[Way]:
    if not any(one.cause in DRAFTER_SIDE for one in left) or o.evidence.method not in WHOLE_BLOCK:
        return
    target = shlex.quote(o.evidence.target.name or "TARGET")
    command = (
        f"outrider train data {target} --prompts PROMPTS --out data && outrider train dflash {target} data --out run"
    )
    yield Way(
        name="Train a drafter on this target's own answers",
        effort="days",
        risk="Needs a GPU; outrider train report says whether it has converged.",
        command=None if o.facts.hybrid else command,  # hybrid targets are not run here
    )


def _waiting(o: Observation, left: list[Finding]) -> Iterator[Way]:
    said, name = o.evidence.drafter.training, o.evidence.drafter.name
    if left and said and UNFINISHED.search(said):
        yield Way(
            name="Wait for the drafter's training to end",
            effort="days",
            risk="When that will be is not in the evidence.",
            command=f"hf download {shlex.quote(name)}" if name and "/" in name else None,
        )


def _off(o: Observation) -> Iterator[Way]:
    if o.evidence.method is not None or o.reading.measured:
        yield Way(
            name="Speculation off",
            tokens_per_round=(1.0, 1.0),
            tokens_per_second=measured.point(o.reading.baseline),
            effort="minutes",
            risk="None for the text; it is the speed to compare everything with.",
            command=launch(o.evidence, None),
        )
