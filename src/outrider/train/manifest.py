"""What a data folder says of itself: ``manifest.json``. Knows neither models nor how texts were made.

It is rewritten as a whole after each shard, so a reader never sees half of it.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Literal

from pydantic import Field, NonNegativeInt, ValidationError

from outrider.checkpoint.cache import is_full
from outrider.errors import UsageError
from outrider.provenance import Provenance
from outrider.results import Record

NAME = "manifest.json"


class Target(Record):
    """The model whose texts these are."""

    name: str
    files: dict[str, str] = Field(description="Fingerprints of its files, by name.")
    vocab_size: NonNegativeInt = Field(description="Of the tokenizer.")


class Settings(Record):
    """What decides which texts are written; a folder goes on only under the same settings."""

    temperatures: list[tuple[float, float]] = Field(description="Temperature and share of the texts.")
    top_k: NonNegativeInt
    top_p: float
    max_tokens: NonNegativeInt = Field(description="Of a response.")
    max_len: NonNegativeInt = Field(description="Of prompt and response together.")
    max_repeats: NonNegativeInt = Field(
        description="A response is cut where an 8-gram comes again after so many; 0 off."
    )
    thinking: bool | None
    seed: NonNegativeInt
    weights: dict[str, float] = Field(description="By source; 1 where none is given.")
    prompts: str = Field(description="SHA-256 of all prompts and where they came from.")
    server: str | None
    dtype: str
    shard_samples: NonNegativeInt


class Shard(Record):
    """One file of samples."""

    file: str
    samples: NonNegativeInt
    tokens: NonNegativeInt
    response_tokens: NonNegativeInt


class SourceCounts(Record):
    """One kind of prompts; a sample's source is the place in the list of these."""

    name: str
    prompts: NonNegativeInt
    samples: NonNegativeInt = 0
    response_tokens: NonNegativeInt = 0


class Fates(Record):
    """How responses ended, and which were not kept."""

    ended: NonNegativeInt = Field(0, description="With a stop token.")
    full: NonNegativeInt = Field(0, description="At the limit of tokens.")
    looping: NonNegativeInt = Field(0, description="Cut where they began to loop (max_repeats).")
    empty: NonNegativeInt = Field(0, description="Dropped: nothing but a stop token.")
    refused: NonNegativeInt = Field(0, description="Dropped: the server's answer was no use.")

    def plus(self, other: "Fates") -> "Fates":
        """Add up."""
        return Fates(**{name: getattr(self, name) + getattr(other, name) for name in Fates.model_fields})


class PromptCounts(Record):
    """What became of the rows that were read."""

    rows: NonNegativeInt = 0
    broken: NonNegativeInt = 0
    duplicates: NonNegativeInt = 0
    too_long: NonNegativeInt = 0


class Manifest(Record):
    """A data folder: whose texts, made how, and how many."""

    schema_version: Literal[1] = 1
    target: Target
    settings: Settings
    rows: PromptCounts
    sources: list[SourceCounts]
    fates: Fates = Fates()
    shards: list[Shard] = Field(default_factory=list)
    next: NonNegativeInt = Field(0, description="Number of the first work item that is not answered yet.")
    complete: bool = Field(False, description="Whether the run that wrote it came to its end.")
    provenance: Provenance

    @property
    def samples(self) -> int:
        """Of all shards."""
        return sum(shard.samples for shard in self.shards)

    @property
    def response_tokens(self) -> int:
        """Of all shards."""
        return sum(shard.response_tokens for shard in self.shards)


def read_manifest(folder: Path) -> Manifest:
    """Read a folder's manifest.

    Raises:
        UsageError: there is none, or it is none of this version's.
    """
    path = folder / NAME
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise UsageError(
            f"{folder} holds no training data: there is no {NAME}. Make some with outrider train data."
        ) from None
    except OSError as error:
        raise UsageError(f"Cannot read {path}: {error.strerror or error}.") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise UsageError(
            f"{path} is not a manifest of training data as this version writes it: {where}: {first['msg']}."
        ) from None


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Put the manifest in place of the one before, all of it or nothing.

    Raises:
        UsageError: it cannot be written.
    """
    store(folder / NAME, manifest.model_dump_json(indent=1).encode() + b"\n")


def store(path: Path, data: bytes) -> None:
    """Write a file that appears under its name only when it is whole and on the disk.

    Raises:
        UsageError: the disk is full or the folder cannot be written; nothing is left behind.
    """
    temporary = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise UsageError(_unwritten(path, len(data), error)) from error


def _unwritten(path: Path, size: int, error: OSError) -> str:
    if is_full(error):
        return (
            f"The disk that holds {path.parent} is full: {path.name} needs {size / 1e6:.1f} MB and was not written. "
            "Shards written before are complete; free some space and run the same command again to go on."
        )
    return f"Cannot write {path}: {error.strerror or error}. Name another place with --out."
