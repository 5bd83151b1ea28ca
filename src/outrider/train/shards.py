"""Shards of training data: samples in, safetensors files out, and back as views of the files.

A sample is a prompt and what the target answered, as token ids. What wrote it is not known here.
Shape letters: M samples of a shard, T tokens of all of them.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from outrider.errors import UsageError
from outrider.train.manifest import Fates, Manifest, Shard, SourceCounts, read_manifest, store, write_manifest

Ints = npt.NDArray[np.int32]
KINDS = {"tokens": "I32", "starts": "I64", "response": "I32", "source": "U8", "temperature": "F32"}
_NUMPY = {"I32": np.int32, "I64": np.int64, "U8": np.uint8, "F32": np.float32}
_LENGTH_BYTES = 8


@dataclass(frozen=True, slots=True)
class Sample:
    """One prompt with its response.

    Attributes:
        tokens: ids of both.
        response: index of the response's first token.
        source: place in the manifest's list of sources.
        temperature: the response was drawn at; 0 is greedy.
    """

    tokens: Sequence[int] | Ints
    response: int
    source: int
    temperature: float


class ShardWriter:
    """Adds shards to a folder; each is on the disk before the manifest names it.

    Args:
        folder: made where it does not exist.
        manifest: of the folder so far.

    Raises:
        UsageError: the folder cannot be written.
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder, self.manifest = folder, manifest
        write_manifest(folder, manifest)

    def write(self, samples: Sequence[Sample], *, answered: int, fates: Fates) -> Shard:
        """Write the next shard.

        Args:
            samples: what it holds; at least one.
            answered: work items that it answers, those without a sample included.
            fates: how their responses ended.

        Raises:
            UsageError: the disk is full, or the folder cannot be written.
        """
        name = f"shard-{len(self.manifest.shards):05d}.safetensors"
        tensors = _tensors(samples)
        store(self.folder / name, _serialised(tensors))
        total, responses = len(tensors["tokens"]), int(_response_lengths(tensors).sum())
        shard = Shard(
            file=name,
            samples=len(samples),
            tokens=total,
            response_tokens=responses,
        )
        self._put(
            next=self.manifest.next + answered,
            shards=[*self.manifest.shards, shard],
            sources=_counted(self.manifest.sources, tensors),
            fates=self.manifest.fates.plus(fates),
        )
        return shard

    def finish(self, *, answered: int = 0, fates: Fates = Fates()) -> None:  # noqa: B008 -- frozen
        """Say that nothing more is to come but ``answered`` items of which no sample was kept."""
        self._put(complete=True, next=self.manifest.next + answered, fates=self.manifest.fates.plus(fates))

    def _put(self, **changes: Any) -> None:
        self.manifest = self.manifest.model_copy(update=changes)
        write_manifest(self.folder, self.manifest)


def _tensors(samples: Sequence[Sample]) -> dict[str, npt.NDArray[Any]]:
    lengths = [len(sample.tokens) for sample in samples]
    return {
        "tokens": np.concatenate([np.asarray(sample.tokens, dtype=np.int32) for sample in samples]),
        "starts": np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        "response": np.array([sample.response for sample in samples], dtype=np.int32),
        "source": np.array([sample.source for sample in samples], dtype=np.uint8),
        "temperature": np.array([sample.temperature for sample in samples], dtype=np.float32),
    }


def _serialised(tensors: dict[str, npt.NDArray[Any]]) -> bytes:
    from safetensors.numpy import save

    return save(tensors)


def _response_lengths(tensors: dict[str, npt.NDArray[Any]]) -> npt.NDArray[np.int64]:
    lengths: npt.NDArray[np.int64] = np.diff(tensors["starts"]) - tensors["response"]
    return lengths


def _counted(sources: Sequence[SourceCounts], tensors: dict[str, npt.NDArray[Any]]) -> list[SourceCounts]:
    """Add a shard to the counts by source."""
    samples = np.bincount(tensors["source"], minlength=len(sources))
    tokens = np.bincount(tensors["source"], weights=_response_lengths(tensors), minlength=len(sources))
    return [
        one.model_copy(
            update={"samples": one.samples + int(more), "response_tokens": one.response_tokens + int(tokens_more)}
        )
        for one, more, tokens_more in zip(sources, samples, tokens, strict=True)
    ]


class Samples:
    """All samples of a folder, as views of its files: nothing is read before it is used.

    Attributes:
        manifest: of the folder.
        lengths_M: tokens of each sample.
        responses_M: index of each sample's first response token.
        sources_M: place in the manifest's list of sources.
        temperatures_M: temperature of the response.
    """

    def __init__(self, manifest: Manifest, shards: Sequence[dict[str, npt.NDArray[Any]]]) -> None:
        self.manifest = manifest
        self._shards = shards
        self._begins = np.cumsum([0, *(len(shard["response"]) for shard in shards)])
        self.lengths_M = np.concatenate([np.diff(shard["starts"]) for shard in shards])
        self.responses_M = np.concatenate([shard["response"] for shard in shards])
        self.sources_M = np.concatenate([shard["source"] for shard in shards])
        self.temperatures_M = np.concatenate([shard["temperature"] for shard in shards])

    def __len__(self) -> int:
        return len(self.responses_M)

    def tokens(self, index: int) -> Ints:
        """Return the ids of a sample, prompt and response."""
        place = int(np.searchsorted(self._begins, index, side="right")) - 1
        shard, inside = self._shards[place], index - int(self._begins[place])
        begin, end = shard["starts"][inside : inside + 2]
        tokens: Ints = shard["tokens"][begin:end]
        return tokens

    def response(self, index: int) -> int:
        """Return where in a sample its response begins."""
        return int(self.responses_M[index])


def read_samples(folder: Path) -> Samples:
    """Map the samples of a data folder into memory.

    Raises:
        UsageError: it holds none, or a file is missing or damaged.
    """
    manifest = read_manifest(folder)
    if not manifest.shards:
        raise UsageError(f"{folder} holds no samples yet; run outrider train data with --out {folder} to its end.")
    return Samples(manifest, [_mapped(folder / shard.file, shard) for shard in manifest.shards])


def _mapped(path: Path, shard: Shard) -> dict[str, npt.NDArray[Any]]:
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
            header = json.loads(file.read(length))
        data = np.memmap(path, dtype=np.uint8, mode="r", offset=_LENGTH_BYTES + length)
        tensors = {name: _view(data, header[name], kind) for name, kind in KINDS.items()}
    except OSError as error:
        raise UsageError(f"Cannot read the shard {path}: {error.strerror or error}.") from None
    except (ValueError, KeyError, TypeError, MemoryError, OverflowError):
        raise UsageError(_damaged(path)) from None
    if len(tensors["response"]) != shard.samples or len(tensors["tokens"]) != shard.tokens:
        raise UsageError(_damaged(path))
    return tensors


def _view(data: npt.NDArray[np.uint8], entry: dict[str, Any], kind: str) -> npt.NDArray[Any]:
    begin, end = entry["data_offsets"]
    if entry["dtype"] != kind or not 0 <= begin <= end <= len(data):
        raise ValueError(entry)
    view: npt.NDArray[Any] = data[begin:end].view(_NUMPY[kind]).reshape(entry["shape"])
    return view


def _damaged(path: Path) -> str:
    return f"{path} is truncated or not the shard that the manifest names; make the data again in another folder."
