"""Where training accuracy and served acceptance part ways, and what the probes say of why. Free of torch.

A drafter whose guesses are right on held-out text and wrong in the engine was taught something other than what is
served (F1, F2, F3, F8 below, as ``train report`` names them), or the engine runs it wrongly. All of these leave texts
correct and acceptance near 1, or a token lower than it should be.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CAUSES = {
    "labels_shifted": ("F1", "slots are taught the token one place further on than the one they are asked for"),
    "anchor_seen": ("F2", "blocks see the target's features of their own anchor, which do not exist when drafting"),
    "all_causal": ("F3", "layers are taught with causal blocks, and the config says otherwise"),
    "none_causal": ("F3", "layers are taught with blocks that see themselves whole, and the config says otherwise"),
    "mask_token": ("F8", "masked slots are taught with another token than the config's"),
}
APART = 0.03  # of the loss as taught: equal lessons give equal losses to the last bit, so little is enough
NEAR = 0.5  # of that gap a probe closes to be named
FEW = 0.05  # accuracy of the first slot below which there is nothing to compare yet
ENOUGH = 0.3  # accuracy of the first slot from which acceptance is expected of an engine
SERVED_LESS = (
    0.5  # of the accuracy of slot 1 on held-out text; a working engine reaches more, though rounds begin at hard places
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One way in which training and serving part.

    Attributes:
        code: F1, F2, F3, F8, or ``parted`` where the cause is not known.
        text: one sentence.
    """

    code: str
    text: str


def parting(
    probes: Mapping[str, Mapping[str, Any]], marginal_accuracy: Sequence[float], position_rates: Sequence[float]
) -> tuple[Finding, ...]:
    """Compare what is taught with what is served.

    Args:
        probes: loss and accuracy of each lesson on the same held-out text.
        marginal_accuracy: of each slot, as trained, on held-out text.
        position_rates: u_1, u_2, ... in the engine.
    """
    if not marginal_accuracy or marginal_accuracy[0] < FEW:
        return ()
    taught, served = probes["as_trained"]["loss"], probes["served"]["loss"]
    if served - taught > APART * taught:
        return (_named(probes, taught, served),)
    first = position_rates[0] if position_rates else 0.0
    if marginal_accuracy[0] >= ENOUGH and first < SERVED_LESS * marginal_accuracy[0]:
        return (
            Finding(
                "parted",
                f"the first slot is right in {marginal_accuracy[0]:.0%} of held-out text and accepted in {first:.0%} "
                "of rounds, though it is taught as it is served: held-out prompts differ from held-out text, or the "
                "engine runs the drafter wrongly",
            ),
        )
    return ()


def _named(probes: Mapping[str, Mapping[str, Any]], taught: float, served: float) -> Finding:
    others = {name: probe["loss"] for name, probe in probes.items() if name not in ("as_trained", "served")}
    name = min(others, key=others.__getitem__, default="")
    gap = f"held-out loss {taught:.2f} as taught, {served:.2f} as served"
    if not name or served - others[name] < NEAR * (served - taught):
        return Finding("parted", f"what is taught is not what is served ({gap}), and no probe says why")
    code, cause = CAUSES["mask_token" if name.startswith("mask_token_") else name]
    return Finding(code, f"{cause} ({gap}, {others[name]:.2f} with {name.replace('_', ' ')})")
