"""What a drafter is built from."""

from collections.abc import Callable
from dataclasses import dataclass, field

from outrider.drafters.options import DraftOptions
from outrider.errors import UsageError
from outrider.models.dflash.network import DFlash
from outrider.models.mtp import MTP


@dataclass(frozen=True, slots=True)
class Setting:
    """The place a drafter will work in.

    Attributes:
        slots: sequences at once.
        max_len: longest sequence, prompt and output together.
        network: the draft model, already on its target, if one was given.
        options: what the user said.
        heads: gives the multi-token prediction heads that came with the target, or says why there are none.
    """

    slots: int
    max_len: int
    network: DFlash | None = None
    options: DraftOptions = field(default_factory=DraftOptions)
    heads: Callable[[], MTP] | None = None

    def needed_network(self, drafter: str) -> DFlash:
        """Return the draft model.

        Raises:
            UsageError: none was given.
        """
        if self.network is None:
            raise UsageError(
                f"Drafter {drafter!r} needs a draft model: give --draft-model with a folder, a GGUF file or a hub name."
            )
        return self.network

    def needed_heads(self, drafter: str) -> MTP:
        """Return the target's heads.

        Raises:
            OutriderError: there are none, or not all of them.
        """
        if self.heads is None:
            raise UsageError(
                f"Drafter {drafter!r} needs the multi-token prediction heads of a target; none were given."
            )
        return self.heads()
