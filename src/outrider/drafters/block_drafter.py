"""What drafters over blocks have in common: a draft network on the target, whose blocks bound what is proposed."""

from typing import Generic, Self, TypeVar

from outrider.drafters.blocks import Blocks
from outrider.drafters.network_drafter import NetworkDrafter
from outrider.drafters.setting import Setting
from outrider.errors import UsageError
from outrider.models.dflash.network import DFlash, Draft

Guesses = TypeVar("Guesses")


class BlockDrafter(NetworkDrafter[Guesses, Draft], Generic[Guesses]):
    """A drafter over a draft network.

    Args:
        network: the draft model on its target.
        setting: slots, lengths, options.
    """

    def __init__(self, network: DFlash, setting: Setting) -> None:
        self._blocks = Blocks(network, setting)
        super().__init__(self._blocks, setting.options)
        self._network = network
        self._depth = setting.options.tokens or network.config.max_tokens
        self.taps = network.config.taps

    @classmethod
    def build(cls, setting: Setting) -> Self:
        """Build it over the draft model of the setting.

        Raises:
            UsageError: there is none, or more draft tokens are wanted than a block gives.
        """
        network = setting.needed_network(cls.name)
        most, wanted = network.config.max_tokens, setting.options.tokens
        if wanted is not None and wanted > most:
            raise UsageError(
                f"Draft tokens: {wanted} wanted, but a block of {network.config.block_size} gives at most {most}."
            )
        return cls(network, setting)
