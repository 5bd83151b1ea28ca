"""Which token may stand in masked slots: the likeliest ones, and all that are worth trying."""

import re
from collections.abc import Iterable
from typing import Protocol

from outrider.models.dflash.config import DFlashConfig

MASK_PIECE = re.compile(r"[<\[{(|].*mask.*[>\]})|]", re.IGNORECASE)
PADDING_ROWS = 16  # of the embedding's rows beyond the tokenizer, the first so many are tried, and the last
MOST = 64
LIKELIEST = 2


class Pieces(Protocol):
    """What is asked of a tokenizer."""

    @property
    def vocab_size(self) -> int:
        """Tokens, added ones included."""
        ...

    def piece(self, token_id: int) -> str | None:
        """A token as the vocabulary writes it."""
        ...

    def is_special(self, token_id: int) -> bool:
        """Whether it is a special one."""
        ...


def mask_tokens(tokenizer: Pieces, config: DFlashConfig, given: Iterable[int]) -> list[int]:
    """Return ids to try, the likeliest first.

    Args:
        tokenizer: the target's.
        config: knows the size of the embedding table.
        given: ids that come before all others.
    """
    known, rows = tokenizer.vocab_size, config.vocab_size
    named = [token for token in range(min(known, rows)) if MASK_PIECE.fullmatch(tokenizer.piece(token) or "")]
    special = [token for token in range(min(known, rows)) if tokenizer.is_special(token)]
    beyond = range(known, min(rows, known + PADDING_ROWS))
    # Training adds a mask token to the tokenizer, where its id is the first beyond; some take the padding token.
    tokens = dict.fromkeys((*given, *named, *beyond[:1], *special[::-1], *beyond, rows - 1))
    return [token for token in tokens if 0 <= token < rows][:MOST]
