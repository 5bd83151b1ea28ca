"""What a drafter is built from."""

from dataclasses import dataclass, field

from outrider.drafters.options import DraftOptions
from outrider.errors import UsageError
from outrider.models.dflash.network import DFlash


@dataclass(frozen=True, slots=True)
class Setting:
    """The place a drafter will work in.

    Attributes:
        slots: sequences at once.
        max_len: longest sequence, prompt and output together.
        network: the draft model, already on its target, if one was given.
        options: what the user said.
    """

    slots: int
    max_len: int
    network: DFlash | None = None
    options: DraftOptions = field(default_factory=DraftOptions)

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
