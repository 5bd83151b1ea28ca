"""Is what is taught what is served? The same held-out text under lessons that differ in one thing each.

The lesson that the weights fit best is the one they were taught. Where that is not the one that is served, the probe
that fits names the fault (see ``parting``). Anchors are no part of it: the log counts where they stand.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

from outrider.models.dflash.config import DFlashConfig, LayerMask
from outrider.train.lesson import Lesson

AS_TRAINED, SERVED = "as_trained", "served"
SHIFTED, LEAKING = "labels_shifted", "anchor_seen"
ALL_CAUSAL, NONE_CAUSAL = "all_causal", "none_causal"
MASK_TOKEN = "mask_token_"  # noqa: S105 -- a prefix, no secret


def probes(config: DFlashConfig, taught: Lesson, suspects: Collection[int]) -> dict[str, Lesson]:
    """Return the lessons to try, by name.

    Args:
        config: what is served.
        taught: what the trainer does.
        suspects: tokens that are taken for the mask token by mistake.
    """
    served = Lesson.served(config)
    # All on the same blocks, so that nothing but the lesson makes a difference.
    tried = {AS_TRAINED: replace(taught, draw=served.draw), SERVED: served}
    tried[SHIFTED] = replace(served, label_shift=1)
    tried[LEAKING] = replace(served, context_end=1)
    tried |= dict(_causalities(served))
    if not config.mask_embedding:
        tried |= {
            f"{MASK_TOKEN}{token}": replace(served, mask_token=token)
            for token in sorted(suspects)
            if token != served.mask_token
        }
    return tried


def _causalities(served: Lesson) -> Iterator[tuple[str, Lesson]]:
    for name, causal in ((ALL_CAUSAL, True), (NONE_CAUSAL, False)):
        layers = tuple(LayerMask(mask.window, causal) for mask in served.layers)
        if layers != served.layers:
            yield name, replace(served, layers=layers)
