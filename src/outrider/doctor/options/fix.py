"""The fix in place of one finding: what it should give, and a command where one does it."""

import shlex
from collections.abc import Mapping

from outrider.doctor.observation import Observation
from outrider.doctor.options.launch import same
from outrider.doctor.verdict import Cause, Finding, Way

WITHOUT_PREFIX_CACHE = {"vllm": "--no-enable-prefix-caching", "sglang": "--disable-radix-cache"}
WITHOUT_GRAPHS = {"vllm": "--enforce-eager", "sglang": "--disable-cuda-graph"}
FLAGS: Mapping[Cause, Mapping[str, str]] = {
    "context_kv_dropped": WITHOUT_PREFIX_CACHE,
    "hybrid_state_rollback": WITHOUT_PREFIX_CACHE,
    "cuda_graph_or_kernel": WITHOUT_GRAPHS,
}
BY_EXPERIMENT = (
    "wrong_layer_ids",
    "mask_token",
    "causal_flag",
    "swa_ignored",
    "position_or_rope",
)  # of repair; it runs no hybrid targets


def fix(o: Observation, finding: Finding) -> Way | None:
    """Return the way; None where the finding names no remedy."""
    if not finding.remedy:
        return None
    per_round = _per_round(o, finding)
    return Way(
        name=f"Fix {finding.cause.replace('_', ' ')} in place",
        tokens_per_round=per_round,
        tokens_per_second=_per_second(o, per_round),
        effort="minutes" if finding.cause in FLAGS else "hours",
        risk=f"Helps only if {finding.code} is the cause ({finding.confidence:.0%}).",
        command=_command(o, finding),
    )


def _per_round(o: Observation, finding: Finding) -> tuple[float, float] | None:
    """Return the observed length without what the cause costs, and never above what was expected."""
    effect, tau = finding.effect.tokens_per_round, o.reading.tau
    if effect is None or tau is None or o.reading.conflicts:
        return None
    most = o.expected if o.expected is not None and o.expected > tau else tau - min(effect)
    low, high = sorted(min(most, max(tau, tau - cost)) for cost in effect)
    return low, high


def _per_second(o: Observation, per_round: tuple[float, float] | None) -> tuple[float, float] | None:
    """Return the speed at the same cost of a round: the draft stays as long as it is."""
    speed, tau = o.reading.speed, o.reading.tau
    if speed is None or tau is None or per_round is None:
        return None
    return speed * per_round[0] / tau, speed * per_round[1] / tau


def _command(o: Observation, finding: Finding) -> str | None:
    evidence = o.evidence
    flags = FLAGS.get(finding.cause, {}).get(evidence.engine.name or "")
    if flags:
        return same(evidence, flags=flags)
    tried = evidence.method == "dflash" and evidence.drafter.made_config and not o.facts.hybrid
    if finding.cause in BY_EXPERIMENT and tried:
        drafter, target = evidence.drafter.name or "DRAFTER", evidence.target.name or "TARGET"
        return f"outrider repair {shlex.quote(drafter)} --target {shlex.quote(target)}"
    return None
