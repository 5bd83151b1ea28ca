"""Text to token ids and back, the same for a Hugging Face folder and a GGUF file.

Wraps the ``tokenizers`` library. It does not know where the vocabulary came from, nor what a chat
is; ``load_tokenizer`` picks the reader by the kind of the checkpoint.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from outrider.errors import CheckpointError, UsageError

if TYPE_CHECKING:
    import tokenizers


class SourceLike(Protocol):
    """Where a checkpoint lies."""

    @property
    def path(self) -> Path:
        """The folder or the GGUF file."""

    @property
    def kind(self) -> str:
        """``"folder"`` or ``"gguf"``."""


class CheckpointLike(Protocol):
    """What a tokenizer needs of a checkpoint."""

    @property
    def source(self) -> SourceLike:
        """Where it lies."""

    @property
    def config(self) -> Mapping[str, Any]:
        """The keys of ``config.json``."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata of a GGUF file; empty for a folder."""

    @property
    def generation_config(self) -> Mapping[str, Any]:
        """The keys of ``generation_config.json``."""


class Tokenizer:
    """Turns text into token ids and back, and knows where a text ends."""

    def __init__(
        self,
        backend: "tokenizers.Tokenizer",
        *,
        stop_ids: Iterable[int] = (),
        bos_token: str | None = None,
        eos_token: str | None = None,
        chat_template: str | None = None,
    ) -> None:
        self._backend = backend
        self.stop_ids = frozenset(stop_ids)
        self.bos_token = bos_token
        self.eos_token = eos_token
        self.chat_template = chat_template

    @property
    def vocab_size(self) -> int:
        """Number of tokens, added ones included; a model's padded head may be larger."""
        return self._backend.get_vocab_size(with_added_tokens=True)

    def encode(self, text: str, *, add_special: bool) -> list[int]:
        """Return the ids of ``text``; special tokens written out in it are recognised.

        Args:
            text: any text.
            add_special: add what the model adds around a plain text, such as a begin token. A text
                rendered by a chat template already holds it.
        """
        try:
            return self._backend.encode(text, add_special_tokens=add_special).ids
        except (TypeError, UnicodeEncodeError):
            raise UsageError(_unencodable(text)) from None

    def encode_many(self, texts: Sequence[str], *, add_special: bool) -> list[list[int]]:
        """Return the ids of each text, worked out on all cores; see ``encode``."""
        try:
            encodings = self._backend.encode_batch_fast(list(texts), add_special_tokens=add_special)
        except (TypeError, UnicodeEncodeError):
            return [self.encode(text, add_special=add_special) for text in texts]  # names the one that is wrong
        return [encoding.ids for encoding in encodings]

    def decode(self, ids: Sequence[int], *, skip_special: bool = True) -> str:
        """Return the text of ``ids``; bytes that are no UTF-8 become replacement characters."""
        return self._backend.decode(ids, skip_special_tokens=skip_special)

    def save(self, path: Path) -> None:
        """Write it as the tokenizers library's own file, ``tokenizer.json``."""
        self._backend.save(str(path))

    def token_id(self, piece: str) -> int | None:
        """Return the id of a piece of the vocabulary, ``None`` where it has no such piece."""
        return self._backend.token_to_id(piece)

    def piece(self, token_id: int) -> str | None:
        """Return a token as the vocabulary writes it, ``None`` for an id without one."""
        return self._backend.id_to_token(token_id)

    def token_text(self, token_id: int) -> str:
        """Return the text of one token alone, special or not."""
        return self.decode([token_id], skip_special=False)

    def is_special(self, token_id: int) -> bool:
        """Say whether ``decode`` leaves this token out when it skips special ones."""
        return token_id in self._special_ids

    @cached_property
    def _special_ids(self) -> frozenset[int]:
        added = self._backend.get_added_tokens_decoder()
        return frozenset(token_id for token_id, token in added.items() if token.special)


def load_tokenizer(checkpoint: CheckpointLike) -> Tokenizer:
    """Read the tokenizer of a checkpoint.

    Raises:
        CheckpointError: its files are missing, damaged or contradictory.
        UnsupportedError: a kind of tokenizer that is not read exactly.
    """
    if checkpoint.source.kind == "gguf":
        from outrider.text.gguf_tokenizer import load_gguf_tokenizer

        return load_gguf_tokenizer(checkpoint)
    from outrider.text.folder_tokenizer import load_folder_tokenizer

    return load_folder_tokenizer(checkpoint)


def configured_stop_ids(checkpoint: CheckpointLike) -> set[int]:
    """Return the end tokens that the configs name: ``eos_token_id`` as an id or a list of ids."""
    path = checkpoint.source.path
    text_config = checkpoint.config.get("text_config")
    places: list[tuple[str, Any]] = [
        ("the generation config", checkpoint.generation_config),
        ("the config", checkpoint.config),
        ("the config's text_config", text_config),
    ]
    found: set[int] = set()
    for place, values in places:
        if isinstance(values, Mapping):
            found |= _ids(values.get("eos_token_id"), f"{place} of {path}")
    return found


def _ids(value: Any, where: str) -> set[int]:
    values = value if isinstance(value, list) else [] if value is None else [value]
    # bool is an int in Python, and a flag here is a mistake.
    if any(isinstance(item, bool) or not isinstance(item, int) or item < 0 for item in values):
        raise CheckpointError(f"eos_token_id in {where} is {value!r}; expected a token id or a list of token ids.")
    return set(values)


def _unencodable(text: str) -> str:
    if not isinstance(text, str):
        return f"Expected text to tokenize, found {type(text).__name__}."
    position = next((i for i, char in enumerate(text) if "\ud800" <= char <= "\udfff"), 0)
    return (
        f"The text is not valid Unicode: a lone surrogate {text[position]!a} at character "
        f"{position}. Read the input as UTF-8, or remove it."
    )
