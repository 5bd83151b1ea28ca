"""Typed access to one architecture's metadata in a GGUF file.

A missing key, or one that holds something else than it should, is an error that names the key.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outrider.errors import CheckpointError, UnsupportedError


@dataclass(frozen=True, slots=True)
class Values:
    """The metadata under ``general.architecture``'s prefix."""

    path: Path
    metadata: Mapping[str, Any]

    @property
    def architecture(self) -> str:
        """The name that prefixes this model's keys."""
        return str(self.metadata.get("general.architecture", ""))

    def integer(self, key: str, *, default: int | None = None) -> int:
        """Return a whole number; a list that repeats one, block for block, counts as that."""
        value = self._one(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._wrong(key, "a whole number", value)
        return value

    def number(self, key: str, *, default: float | None = None) -> float:
        """Return a number. Stored in 32 bits, 1e-5 reads as 9.99999975e-06: that is rounded off."""
        value = self._one(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(key, "a number", value)
        return float(f"{value:.7g}")

    def text(self, key: str, *, default: str) -> str:
        """Return a string."""
        value = self._one(key, default)
        if not isinstance(value, str):
            raise self._wrong(key, "a string", value)
        return value

    def _one(self, key: str, default: Any) -> Any:
        value = self.metadata.get(f"{self.architecture}.{key}", default)
        if value is None:
            raise CheckpointError(f"{self.path} lacks {self.architecture}.{key}. Convert the model again.")
        if not isinstance(value, list):
            return value
        if len(set(value)) != 1:
            raise UnsupportedError(
                f"{self.path}: {self.architecture}.{key} differs from block to block; "
                "only models of equal blocks are run."
            )
        return value[0]

    def _wrong(self, key: str, expected: str, value: Any) -> CheckpointError:
        return CheckpointError(
            f"{self.path}: expected {self.architecture}.{key} to be {expected}, found {str(value)[:80]!r}."
        )
