"""Shards on disk: what goes in comes out, and what is damaged is said in one line."""

import errno
import json
import os

import numpy as np
import pytest
from train.writing import manifest_of, prompts_of

from outrider.errors import UsageError
from outrider.train import manifest as manifests
from outrider.train.manifest import Fates, read_manifest
from outrider.train.shards import Sample, ShardWriter, read_samples

SAMPLES = [
    Sample([1, 2, 3, 4], 2, 0, 0.0),
    Sample([5, 6], 1, 1, 0.7),
    Sample([49151, 0, 9], 1, 0, 1.0),
]


def written(folder):
    writer = ShardWriter(folder, manifest_of(prompts_of(2, 1)))
    writer.write(SAMPLES[:2], answered=3, fates=Fates(ended=2, empty=1))
    writer.write(SAMPLES[2:], answered=1, fates=Fates(full=1))
    return writer


def test_samples_come_back_as_they_were(tmp_path):
    written(tmp_path)
    samples = read_samples(tmp_path)
    assert len(samples) == 3
    for index, sample in enumerate(SAMPLES):
        assert samples.tokens(index).tolist() == sample.tokens
        assert samples.response(index) == sample.response
    assert samples.tokens(2).dtype == np.int32
    assert samples.lengths_M.tolist() == [4, 2, 3]
    assert samples.responses_M.tolist() == [2, 1, 1]
    assert samples.sources_M.tolist() == [0, 1, 0]
    assert samples.temperatures_M.tolist() == pytest.approx([0, 0.7, 1])


def test_samples_are_views_of_the_files(tmp_path):
    written(tmp_path)
    tokens = read_samples(tmp_path).tokens(0)
    assert not tokens.flags.owndata
    assert isinstance(tokens, np.memmap)


def test_the_manifest_counts_by_shard_and_by_source(tmp_path):
    manifest = written(tmp_path).manifest
    assert read_manifest(tmp_path) == manifest
    assert [(shard.samples, shard.tokens, shard.response_tokens) for shard in manifest.shards] == [(2, 6, 3), (1, 3, 2)]
    assert [(source.samples, source.response_tokens) for source in manifest.sources] == [(2, 4), (1, 1)]
    assert manifest.fates == Fates(ended=2, full=1, empty=1)
    assert (manifest.next, manifest.samples, manifest.response_tokens, manifest.complete) == (4, 3, 5, False)


def test_the_layout_is_that_of_the_contract(tmp_path):
    from safetensors.numpy import load_file

    written(tmp_path)
    tensors = load_file(tmp_path / "shard-00000.safetensors")
    assert {name: (str(tensor.dtype), tensor.shape) for name, tensor in tensors.items()} == {
        "tokens": ("int32", (6,)),
        "starts": ("int64", (3,)),
        "response": ("int32", (2,)),
        "source": ("uint8", (2,)),
        "temperature": ("float32", (2,)),
    }
    assert tensors["starts"].tolist() == [0, 4, 6]


def test_nothing_but_the_shards_and_the_manifest_is_left(tmp_path):
    written(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"manifest.json", "shard-00000.safetensors", "shard-00001.safetensors"}


def fill_disk(monkeypatch, *, after: int):
    """Let the disk be full once so many files were written."""
    fsync, count = os.fsync, iter(range(10**6))

    def full(handle):
        if next(count) >= after:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(handle)

    monkeypatch.setattr(manifests.os, "fsync", full)


def test_a_full_disk_loses_one_shard_and_says_so(tmp_path, monkeypatch):
    fill_disk(monkeypatch, after=3)  # a manifest, a shard, a manifest
    with pytest.raises(UsageError, match=r"full: shard-00001.safetensors needs .* MB and was not written.*to go on"):
        written(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"manifest.json", "shard-00000.safetensors"}
    assert len(read_samples(tmp_path)) == 2


def test_a_shard_that_no_manifest_names_is_not_read(tmp_path, monkeypatch):
    fill_disk(monkeypatch, after=4)
    with pytest.raises(UsageError, match=r"full: manifest\.json"):
        written(tmp_path)
    assert len(read_samples(tmp_path)) == 2


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"Cannot write .*--out"):
        written(tmp_path / "file" / "data")


def test_a_folder_without_data_says_what_makes_some(tmp_path):
    with pytest.raises(UsageError, match=r"holds no training data.*outrider train data"):
        read_samples(tmp_path)
    ShardWriter(tmp_path, manifest_of(prompts_of(1)))
    with pytest.raises(UsageError, match="holds no samples yet"):
        read_samples(tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", '{"schema_version": 2}'])
def test_a_manifest_that_is_none_is_one_line(tmp_path, text):
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(UsageError, match="is not a manifest of training data") as caught:
        read_manifest(tmp_path)
    assert "\n" not in str(caught.value)


def cut(data: bytes) -> bytes:
    return data[:-3]


def empty(_data: bytes) -> bytes:
    return b""


def wrong_header(data: bytes) -> bytes:
    return data[:8] + b"x" * (len(data) - 8)


def other_kind(data: bytes) -> bytes:
    return data.replace(b'"dtype":"I32"', b'"dtype":"F32"', 1)


@pytest.mark.parametrize("damage", [cut, empty, wrong_header, other_kind])
def test_a_damaged_shard_is_one_line(tmp_path, damage):
    written(tmp_path)
    path = tmp_path / "shard-00001.safetensors"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(UsageError, match=r"shard-00001.safetensors is truncated or not the shard"):
        read_samples(tmp_path)


def test_a_missing_or_exchanged_shard_is_one_line(tmp_path):
    written(tmp_path)
    (tmp_path / "shard-00001.safetensors").write_bytes((tmp_path / "shard-00000.safetensors").read_bytes())
    with pytest.raises(UsageError, match="not the shard that the manifest names"):
        read_samples(tmp_path)
    (tmp_path / "shard-00001.safetensors").unlink()
    with pytest.raises(UsageError, match=r"Cannot read the shard .*No such file"):
        read_samples(tmp_path)


def test_the_manifest_is_plain_json(tmp_path):
    written(tmp_path)
    raw = json.loads((tmp_path / "manifest.json").read_text())
    assert raw["schema_version"] == 1
    assert [source["name"] for source in raw["sources"]] == ["s0", "s1"]
