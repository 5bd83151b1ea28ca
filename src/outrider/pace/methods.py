"""Ways of drafting with their sizes, as a command names them: ``plain``, ``mtp:3``, ``dflash:15``, ``ddtree:63``."""

from dataclasses import dataclass
from typing import Literal

from outrider.errors import UsageError

Name = Literal["plain", "mtp", "dflash", "ddtree"]
DEFAULTS: dict[Name, int] = {"plain": 0, "mtp": 3, "dflash": 15, "ddtree": 63}


@dataclass(frozen=True, slots=True)
class Method:
    """One way.

    Attributes:
        name: which.
        size: guesses of a chain, nodes of a tree without the root; 0 for plain decoding.
    """

    name: Name
    size: int

    @property
    def nodes(self) -> int:
        """Nodes that the target runs a round, the root counted."""
        return 1 + self.size

    def __str__(self) -> str:
        return f"{self.name}:{self.size}" if self.size else self.name


def parse(text: str) -> Method:
    """Read ``name`` or ``name:size``.

    Raises:
        UsageError: neither.
    """
    name, colon, number = text.strip().partition(":")
    known = {str(known): known for known in DEFAULTS}
    if name not in known or (colon and (name == "plain" or not number.isdecimal() or int(number) < 1)):
        raise UsageError(
            f"Method {text!r}: expected plain, mtp:K, dflash:K or ddtree:N with a whole number of at least 1, "
            "e.g. mtp:3 or ddtree:63."
        )
    chosen = known[name]
    return Method(chosen, int(number) if number else DEFAULTS[chosen])
