"""Folders in Hugging Face layout: whole, sharded, and wrong in each of many ways."""

import json

import pytest
import torch
from checkpoint.checkpoint_files import CONFIG, folder_of, source_of
from safetensors.torch import save_file

from outrider.checkpoint import open_checkpoint
from outrider.errors import CheckpointError, UnsupportedError
from outrider.models.weights import read_tensor


def sharded(path):
    folder_of(path)
    shards = {
        "one.safetensors": {"a": torch.ones(2)},
        "two.safetensors": {"b": torch.zeros(2, 3), "c": torch.ones(1)},
    }
    for name, weights in shards.items():
        save_file(weights, path / name)
    index(path, {name: shard for shard, weights in shards.items() for name in weights})
    return path


def index(path, weight_map):
    (path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))


def refused(path, kind=CheckpointError):
    with pytest.raises(kind) as caught:
        open_checkpoint(source_of(path))
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    return message


def test_a_folder_reads_as_its_config_and_tensors(tmp_path):
    folder = folder_of(tmp_path, {"a": torch.ones(2, 3, dtype=torch.bfloat16)})
    (folder / "generation_config.json").write_text('{"eos_token_id": [1, 2]}')
    checkpoint = open_checkpoint(source_of(folder))
    assert checkpoint.config == CONFIG
    assert checkpoint.generation_config == {"eos_token_id": [1, 2]}
    assert checkpoint.metadata == {}
    info = checkpoint.tensors["a"]
    assert (info.shape, info.dtype, info.nbytes) == ((2, 3), "BF16", 12)


def test_shards_read_as_one(tmp_path):
    checkpoint = open_checkpoint(source_of(sharded(tmp_path)))
    assert {name: info.shape for name, info in checkpoint.tensors.items()} == {
        "a": (2,),
        "b": (2, 3),
        "c": (1,),
    }
    assert read_tensor(checkpoint, "a").tolist() == [1, 1]
    assert read_tensor(checkpoint, "b").tolist() == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("text", ["{", "", "\x00", '{"a": nope}'])
def test_bad_json_is_said(tmp_path, text):
    folder_of(tmp_path)
    (tmp_path / "config.json").write_text(text)
    assert "not valid JSON" in refused(tmp_path)


def test_bytes_that_are_no_text_are_said(tmp_path):
    (tmp_path / "config.json").write_bytes(b"\xff\xfe{}")
    assert "not valid JSON" in refused(tmp_path)


def test_json_that_is_no_object_is_said(tmp_path):
    (tmp_path / "config.json").write_text("[1]")
    assert "expected a JSON object, found a list" in refused(tmp_path)


def test_missing_keys_are_named(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 4, "vocab_size": 3}))
    message = refused(tmp_path)
    assert "lacks model_type, num_hidden_layers, num_attention_heads" in message


def test_the_sizes_may_be_those_of_an_inner_text_model(tmp_path):
    folder_of(tmp_path, {"a": torch.ones(1)})
    sizes = {key: value for key, value in CONFIG.items() if key != "model_type"}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "x", "text_config": sizes}))
    assert open_checkpoint(source_of(tmp_path)).config["model_type"] == "x"


def test_a_folder_without_config_is_said(tmp_path):
    assert "Cannot read" in refused(tmp_path)


def test_a_folder_without_weights_is_said(tmp_path):
    assert "has no weights" in refused(folder_of(tmp_path))


def test_a_single_file_of_weights_may_have_any_name(tmp_path):
    folder = folder_of(tmp_path, {"a": torch.ones(2)})
    (folder / "model.safetensors").rename(folder / "dflash_draft_model.safetensors")
    assert set(open_checkpoint(source_of(folder)).tensors) == {"a"}


def test_several_files_without_an_index_are_said(tmp_path):
    folder = folder_of(tmp_path)
    for name in ("one", "two"):
        save_file({name: torch.ones(2)}, folder / f"{name}.safetensors")
    assert "holds 2 safetensors files and no model.safetensors.index.json" in refused(folder)


def test_pickled_weights_are_refused(tmp_path):
    folder_of(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"x")
    assert "Convert it to safetensors" in refused(tmp_path, UnsupportedError)


def test_a_missing_shard_is_named(tmp_path):
    sharded(tmp_path)
    (tmp_path / "two.safetensors").unlink()
    message = refused(tmp_path)
    assert "1 of 2 shards" in message
    assert "two.safetensors" in message


def test_a_tensor_that_only_the_index_knows_is_named(tmp_path):
    sharded(tmp_path)
    index(tmp_path, {"a": "one.safetensors", "ghost": "two.safetensors"})
    assert "first ghost" in refused(tmp_path)


@pytest.mark.parametrize("shard", ["../one.safetensors", "/one.safetensors", 3, "sub/x"])
def test_an_index_cannot_point_out_of_its_folder(tmp_path, shard):
    sharded(tmp_path)
    index(tmp_path, {"a": shard})
    assert "expected a file name" in refused(tmp_path)


@pytest.mark.parametrize("weight_map", [None, {}, ["a"]])
def test_an_index_without_a_map_is_said(tmp_path, weight_map):
    sharded(tmp_path)
    index(tmp_path, weight_map)
    assert "no weight_map" in refused(tmp_path)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: data[:-5], "truncated"),
        (lambda data: data[:20], "ends within its header"),
        (lambda data: data[:3], "ends within its header"),
        (lambda _data: b"", "ends within its header"),
        (lambda data: data + b"12345678", "truncated, or longer"),
        (lambda data: data[:8] + b"?" + data[9:], "corrupt header"),
        (lambda data: b"\xff" * 8 + data[8:], "corrupt header"),
        (lambda data: data.replace(b'"F32"', b'"X32"'), "corrupt header"),
        (lambda _data: b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    ],
)
def test_each_damage_to_safetensors_is_told_from_the_others(tmp_path, damage, words):
    folder_of(tmp_path, {"a": torch.ones(8)})
    path = tmp_path / "model.safetensors"
    path.write_bytes(damage(path.read_bytes()))
    assert words in refused(tmp_path)
