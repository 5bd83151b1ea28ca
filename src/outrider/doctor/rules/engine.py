"""Rules on the engine: memory, kernels, recurrent state, precision, refused settings, defects of a version."""

# ruff: noqa: PLR2004  a threshold stands in the sentence that it decides

import re
from collections.abc import Iterator

from outrider.doctor.observation import Observation
from outrider.doctor.rules.shape import failure, falls_with, healthy_acceptance, moved
from outrider.doctor.rules.signal import Signal
from outrider.doctor.rules.words import said

_FULL = 0.95
_FAULT = (
    r"illegal (memory|instruction)|device-side assert|segfault|segmentation fault|misaligned|(cuda|hip) error|xid \d"
)
_LOADING = r"weights?|tensors?|keyerror|checkpoint|safetensors|gguf"


def memory_or_kv_pressure(o: Observation) -> Iterator[Signal]:
    """Out of memory, preemption, a smaller KV cache."""
    yield from said("memory_or_kv_pressure", o)
    share = o.facts.settings.get("gpu_memory_utilization") or o.facts.settings.get("mem_fraction_static")
    if isinstance(share, int | float) and share >= _FULL:
        yield Signal(f"{share:.0%} of the memory is given away at start", 1.0, "setting")
    yield from _slow_when_long(o)
    if o.reading.collapsed and not o.words.has(r"preempt|evict|kv usage"):
        yield Signal("pressure costs speed, not acceptance", -1.5, "curve")


def _slow_when_long(o: Observation) -> Iterator[Signal]:
    prompt, gain = o.evidence.traffic.prompt_tokens, o.reading.speedup
    if prompt is not None and prompt >= 32_000 and gain is not None and gain < 1:
        yield Signal(
            f"slower than plain decoding at {prompt:.0f} tokens, where the drafter reads a cache of its own",
            1.6,
            "speed",
        )
    for contrast in o.at("context"):
        if contrast.speed is not None and not 0.4 < contrast.speed < 2.5 and contrast.accepted is None:
            yield Signal(f"{contrast.speed:.2g} times the speed at {contrast.told}", 1.2, "contrast")
            return


def cuda_graph_or_kernel(o: Observation) -> Iterator[Signal]:
    """A kernel, an attention back end or graph capture is at fault."""
    yield from said("cuda_graph_or_kernel", o)
    yield from moved(o, "graphs", 3.2, "graphs decide")
    yield from moved(o, "backend", 2.6, "the device or back end decides")
    load = r"concurren|batch|num_seqs|np|parallel"
    yield from falls_with(o, "concurrency", load, 1.8, "acceptance falls with requests in flight")
    if o.words.has(_FAULT, "error"):
        yield Signal("a kernel faults", 1.8, "error")
    if "enforce-eager" in o.facts.command or o.facts.settings.get("enforce_eager") is True:
        yield Signal("graphs are off", -1.2, "setting")
    if o.reading.nothing_accepted:
        yield Signal("exactly nothing is accepted", 0.5, "curve")
    if o.corrupt:
        yield Signal("the text is wrong, which a kernel can do", 0.7, "output")
    if failure(o) and not o.words.has(_FAULT + r"|triton|kernel|graph|nan|assert", "error", "log"):
        yield Signal("the error is not of a kernel", -1.5, "error")


def hybrid_state_rollback(o: Observation) -> Iterator[Signal]:
    """Recurrent state is not rolled back after rejected tokens."""
    yield from said("hybrid_state_rollback", o)
    hybrid = o.facts.hybrid
    if hybrid is False:
        yield Signal("the target has no recurrent layers", -4.0, "file")
    if o.corrupt:
        weight = 2.4 if hybrid else 0.3
        yield Signal("the text is wrong" + (" on a target with recurrent state" if hybrid else ""), weight, "output")
    elif o.evidence.output.corrupt is False or (
        o.reading.measured and not o.words.has(r"garb|corrupt|loop|wrong|repeat")
    ):
        yield Signal("nothing is said of wrong text", -1.2, "output")
    for signal in moved(o, "prefix", 1.0, "prefix caching matters"):
        if hybrid and signal.weight > 0:
            yield signal
    if hybrid and "mamba" in " ".join(o.facts.settings) and o.facts.prefix_caching:
        yield Signal("recurrent state is cached by prefix", 0.9, "setting")
    if o.reading.nothing_accepted and not o.corrupt:
        yield Signal("a stale state still agrees now and then", -0.8, "curve")


def dtype_or_quantisation(o: Observation) -> Iterator[Signal]:
    """Precision of drafter, target or KV cache."""
    yield from said("dtype_or_quantisation", o)
    yield from moved(o, "precision", 3.6, "precision decides")
    parts = o.facts.low_bits
    for part, weight in (("cache", 1.0), ("drafter", 0.9), ("target", 0.3)):
        if part in parts:
            yield Signal(f"{part} in {parts[part]}", weight, "file")
    if o.words.has(r"m1\b|m2\b|emulat|float16|fp16", "notes", "log") and o.evidence.engine.name == "mlx":
        yield Signal("chips or casts that lack bf16", 1.4, "setting")
    if not parts and not o.at("precision"):
        yield Signal("nothing is said to run below bf16", -0.9, "file")
    if healthy_acceptance(o) and not o.at("precision"):
        yield Signal("acceptance is as expected", -0.8, "curve")


def config_rejected(o: Observation) -> Iterator[Signal]:
    """A setting or file is refused, or read in another format."""
    yield from said("config_rejected", o)
    if failure(o):
        yield Signal("it stops with an error instead of drafting badly", 1.0, "output")
        if o.words.has(_FAULT + r"|out of memory", "error"):
            yield Signal("the error is of the device", -2.5, "error")
    elif o.reading.measured:
        yield Signal("it runs and drafts", -1.8, "curve")
    if o.corrupt:
        yield Signal("a refused setting changes no text", -1.5, "output")


def version_defect(o: Observation) -> Iterator[Signal]:
    """A defect of this version that another does not have and that no other class names."""
    yield from said("version_defect", o)
    yield from moved(o, "engine", 2.2, "another engine or version does otherwise")
    for contrast in o.at("engine"):
        if contrast.speed is not None and not 0.75 < contrast.speed < 1.33:
            yield Signal(f"{contrast.speed:.2g} times the speed at {contrast.told}", 1.0, "contrast")
            break
    if o.evidence.engine.fork:
        yield Signal("a fork: it stands between two versions", 0.4, "version")
    if re.search(r"dev|rc\d|main|nightly|branch", (o.evidence.engine.version or "").lower()):
        yield Signal("a build between releases", 0.2, "version")
    if failure(o) and o.words.has(r"assert|typeerror|attributeerror|indexerror|panic", "error"):
        yield Signal("an internal check fails", 1.0, "error")
    if failure(o) and o.words.has(_LOADING, "error"):
        yield Signal("the error is of the files", -0.4, "error")


def other(o: Observation) -> Iterator[Signal]:
    """None of these."""
    yield from said("other", o)
    e = o.evidence
    if not (o.reading.measured or o.contrasts or e.error or e.log or e.drafter.config or o.reading.speed):
        yield Signal("nothing is given that a rule reads", 0.8, "file")
