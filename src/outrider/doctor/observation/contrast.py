"""The same measured under two conditions: what differed, and how acceptance, speed and cache hits moved."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from outrider.doctor.evidence import Evidence
from outrider.doctor.observation.reading import Reading, read

DIMENSIONS: Mapping[str, str] = {
    "context": r"context|prompt_(tokens|len)|input_(tokens|len)|depth|seq_?len",
    "concurrency": r"concurren|batch|num_seqs|parallel_(slots|requests)|^np$|in_flight|clients|streams|max_running",
    "graphs": r"eager|graph",
    "thinking": r"thinking|reasoning",
    "template": r"template",
    "sampling": r"temperature|top_?[kp]|min_?p|penalty|sampl|seed|rejection|greedy",
    "engine": r"^engine|version|build|commit|release|branch|fork|runner",
    "precision": r"dtype|quanti[sz]|cache.?type|precision|bits",
    "drafted": r"num_speculative|num_draft|draft_(max|tokens|len)|n_max|^k$|block_size|num_steps|budget|p_min",
    "prefix": r"prefix|radix|cached",
    "time": r"^request|uptime|hours|minutes|turn|after|elapsed|restart|requests_served|^run$|state",
    "workload": r"workload|prompts?$|data_?set|language|task|traffic|domain",
    "method": r"^method|algorithm|^mtp$|^speculation",
    "drafter": r"^draft(er|_model)?$|checkpoint|config",
    "target": r"^(target|model)",
    "backend": r"backend|machine|gpu|device|hardware|kernel|attention|platform",
    "parallel": r"tensor_parallel|pipeline|^tp$|^pp$|expert_par|data_par",
    "memory": r"gpu_memory|kv_(usage|cache_(usage|size))|mem_fraction|max_model_len",
    "async": r"async|overlap|schedul",
}  # fmt: skip
"""Patterns of the keys of ``when``, by what they vary."""

NONE = 0.005
"""Added to what is kept, so that nothing at all has a ratio: half of the last digit that engines print."""
_PRECISION = re.compile(
    r"\b(bf16|fp16|f16|fp32|f32|fp8|fp4|int4|int8|nvfp4|mxfp\d|awq|gptq|w\d+a\d+|q\d+_\w+|\d-bit|"
    r"unquanti[sz]ed|not quanti[sz]ed)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Contrast:
    """Two readings and what differed between them.

    Attributes:
        before, after: conditions, by the keys of ``when``; an empty ``before`` is the main measurement.
        base, other: the readings; ``base`` goes with ``before``.
        dimensions: what differed, by the names of ``DIMENSIONS``.
    """

    before: Mapping[str, Any]
    after: Mapping[str, Any]
    base: Reading
    other: Reading
    dimensions: frozenset[str]

    @property
    def accepted(self) -> float | None:
        """Draft tokens kept, other over base; by rate where both have one, else by length; None when unknown."""
        for name in ("rate", "tau", "first"):
            first, second = getattr(self.base, name), getattr(self.other, name)
            if first is not None and second is not None:
                drop = 1.0 if name == "tau" else 0.0
                return float((max(second - drop, 0.0) + NONE) / (max(first - drop, 0.0) + NONE))
        return None

    @property
    def length(self) -> float | None:
        """Draft tokens kept a round, other over base: unlike a rate it does not depend on the draft length."""
        first, second = self.base.tau, self.other.tau
        if first is None or second is None:
            return None
        return (max(second - 1, 0.0) + NONE) / (max(first - 1, 0.0) + NONE)

    @property
    def speed(self) -> float | None:
        """Tokens a second, other over base."""
        if self.base.speed and self.other.speed:
            return self.other.speed / self.base.speed
        return None

    @property
    def hits(self) -> float | None:
        """Prefix cache hit rate, other minus base."""
        if self.base.hits is None or self.other.hits is None:
            return None
        return self.other.hits - self.base.hits

    def number(self, pattern: str) -> tuple[float, float] | None:
        """A numeric condition on both sides, by a pattern of its key."""
        values = [_number(side, pattern) for side in (self.before, self.after)]
        return (values[0], values[1]) if values[0] is not None and values[1] is not None else None

    @property
    def told(self) -> str:
        """The condition, in words."""
        return ", ".join(f"{key} {value}" for key, value in self.after.items())


def contrasts(evidence: Evidence, base: Reading, drafted: int | None) -> tuple[Contrast, ...]:
    """The main measurement against each other one, then the others in pairs."""
    main = _conditions(evidence)
    sides = [(m.when, read(m.counters, _drafted(m.when, drafted))) for m in evidence.series]
    found = [_contrast({k: main[k] for k in when if k in main}, when, base, there) for when, there in sides]
    found += [_contrast(a, b, here, there) for (a, here), (b, there) in combinations(sides, 2)]
    return tuple(c for c in found if c.dimensions)


def dimensions(key: str, value: object) -> frozenset[str]:
    """What a key of ``when`` varies."""
    found = {name for name, pattern in DIMENSIONS.items() if re.search(pattern, key, re.IGNORECASE)}
    if found & {"drafter", "target", "method"} and _PRECISION.search(str(value)):
        found.add("precision")
    return frozenset(found)


def _contrast(before: Mapping[str, Any], after: Mapping[str, Any], base: Reading, other: Reading) -> Contrast:
    keys = [key for key in {*before, *after} if before.get(key) != after.get(key)]
    varied = [dimensions(key, after.get(key, before.get(key))) for key in keys]
    return Contrast(before, after, base, other, frozenset[str]().union(*varied))


def _conditions(evidence: Evidence) -> dict[str, Any]:
    """Conditions of the main measurement, by the names that ``when`` uses."""
    traffic = evidence.traffic
    known = {
        **evidence.engine.settings, "concurrency": traffic.concurrency, "temperature": traffic.temperature,
        "context_tokens": traffic.prompt_tokens, "prompt_tokens": traffic.prompt_tokens, "thinking": traffic.thinking,
        "chat_template": traffic.chat_template, "workload": traffic.workload, "engine": evidence.engine.name,
        "num_speculative_tokens": evidence.speculation.num_speculative_tokens, "target": evidence.target.name,
        "method": evidence.method,
    }  # fmt: skip
    return {key: value for key, value in known.items() if value is not None}


def _drafted(when: Mapping[str, Any], drafted: int | None) -> int | None:
    """Draft length of another measurement; unknown where method or drafter differ and none is named."""
    given = _number(when, r"num_speculative|n_max|^k$")
    if given is not None:
        return int(given)
    other = any({"method", "drafter"} & dimensions(key, "") for key in when)
    return None if other else drafted


def _number(side: Mapping[str, Any], pattern: str) -> float | None:
    for key, value in side.items():
        if re.search(pattern, key, re.IGNORECASE) and isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    return None
