"""Values of tensors: every storage type, the order of rotary rows, and damage."""

import os

import numpy as np
import pytest
import torch
from checkpoint.checkpoint_files import HEADS, KV_HEADS, folder_of, random_blocks, source_of, tensors, write
from gguf import GGMLQuantizationType
from gguf.quants import dequantize, quantize
from safetensors.torch import save_file

from outrider.checkpoint import open_checkpoint
from outrider.checkpoint.gguf_names import FLOAT_TYPES, K_TYPES, LEGACY_TYPES
from outrider.errors import CheckpointError, UnsupportedError
from outrider.models.weights import read_tensor, row_reader

DOWN = "model.layers.0.mlp.down_proj.weight"


def with_down(path, blocks, kind):
    return open_checkpoint(source_of(write(path, values=tensors() | {"blk.0.ffn_down.weight": blocks}, kind=kind)))


@pytest.mark.parametrize("kind", FLOAT_TYPES)
def test_floats_keep_their_stored_type(tmp_path, kind):
    dtype = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}[kind]
    checkpoint = open_checkpoint(source_of(write(tmp_path / "m.gguf", kind=kind)))
    found = read_tensor(checkpoint, DOWN)
    assert found.dtype == dtype
    assert torch.equal(found, torch.from_numpy(tensors()["blk.0.ffn_down.weight"]).to(dtype))


@pytest.mark.parametrize("kind", LEGACY_TYPES)
def test_quantised_values_are_those_of_the_gguf_package(tmp_path, kind):
    checkpoint = open_checkpoint(source_of(write(tmp_path / "m.gguf", kind=kind)))
    values, number = tensors()["blk.0.ffn_down.weight"], GGMLQuantizationType[kind]
    found = read_tensor(checkpoint, DOWN)
    assert found.dtype == torch.float32
    assert np.array_equal(found.numpy(), dequantize(quantize(values, number), number))
    assert np.abs(found.numpy() - values).max() < 0.5


@pytest.mark.parametrize("kind", K_TYPES)
def test_k_blocks_are_read_row_by_row_as_the_gguf_package_does(tmp_path, kind):
    # More values than one slice holds, and a last slice that is not full.
    blocks = random_blocks(kind, rows=301, blocks=2)
    rest = {name: value for name, value in tensors().items() if value.ndim == 1}
    values = rest | {"token_embd.weight": blocks}
    checkpoint = open_checkpoint(source_of(write(tmp_path / "m.gguf", "qwen2", values=values, kind=kind)))
    found = read_tensor(checkpoint, "model.embed_tokens.weight").numpy()
    assert found.shape == (301, 512)
    for row, expected in zip(found, blocks, strict=True):
        assert np.array_equal(row, dequantize(expected, GGMLQuantizationType[kind]))


def interleaved(weights, num_heads):
    """Write rotary pairs side by side: row r of a head's first half, then row r of its second."""
    rows = []
    size = len(weights) // num_heads
    for head in range(num_heads):
        for pair in range(size // 2):
            rows += [weights[head * size + pair], weights[head * size + size // 2 + pair]]
    return np.stack(rows)


@pytest.mark.parametrize("kind", ["F32", "BF16", "Q8_0"])
def test_llama_files_give_queries_and_keys_in_hugging_face_order(tmp_path, kind):
    original = tensors(biases=True)
    stored = dict(original)
    for part, heads in (("q", HEADS), ("k", KV_HEADS)):
        for end in ("weight", "bias"):
            name = f"blk.0.attn_{part}.{end}"
            stored[name] = interleaved(original[name], heads)
    path = write(tmp_path / "m.gguf", values=stored, kind=kind)
    plain = open_checkpoint(source_of(write(tmp_path / "p.gguf", "qwen2", original, kind=kind)))
    checkpoint = open_checkpoint(source_of(path))
    for name in checkpoint.tensors:
        assert torch.equal(read_tensor(checkpoint, name), read_tensor(plain, name)), name


def test_a_tensor_may_be_written_without_touching_the_file(tmp_path):
    path = write(tmp_path / "m.gguf")
    before = path.read_bytes()
    read_tensor(open_checkpoint(source_of(path)), DOWN).zero_()
    assert path.read_bytes() == before


def test_an_absent_tensor_is_named(tmp_path):
    checkpoint = open_checkpoint(source_of(write(tmp_path / "m.gguf")))
    with pytest.raises(CheckpointError, match=r"has no tensor lm_head\.weight"):
        read_tensor(checkpoint, "lm_head.weight")


@pytest.mark.parametrize("kind", ["F16", "Q4_0"])
def test_values_that_are_not_finite_are_damage(tmp_path, kind):
    path = write(tmp_path / "m.gguf", kind=kind)
    checkpoint = open_checkpoint(source_of(path))
    data = bytearray(path.read_bytes())
    info = checkpoint.tensors[DOWN]
    data[info.offset : info.offset + 2] = np.float16(np.inf).tobytes()
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match="not finite"):
        read_tensor(checkpoint, DOWN)


def test_a_damaged_row_is_refused_when_it_is_looked_up(tmp_path):
    path = write(tmp_path / "m.gguf", kind="Q4_0")
    checkpoint = open_checkpoint(source_of(path))
    data = bytearray(path.read_bytes())
    info = checkpoint.tensors[DOWN]
    data[info.offset : info.offset + 2] = np.float16(np.inf).tobytes()
    path.write_bytes(data)
    look_up = row_reader(checkpoint, DOWN)
    assert look_up(torch.tensor([1])).isfinite().all()
    with pytest.raises(CheckpointError, match="not finite"):
        look_up(torch.tensor([1, 0]))


def test_a_file_cut_short_after_it_was_opened_is_said(tmp_path):
    path = write(tmp_path / "m.gguf")
    checkpoint = open_checkpoint(source_of(path))
    os.truncate(path, 200)
    with pytest.raises(CheckpointError, match="cut short"):
        read_tensor(checkpoint, DOWN)


def test_a_file_gone_after_it_was_opened_is_said(tmp_path):
    path = write(tmp_path / "m.gguf")
    checkpoint = open_checkpoint(source_of(path))
    path.unlink()
    with pytest.raises(CheckpointError, match="Cannot read"):
        read_tensor(checkpoint, DOWN)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_safetensors_keep_their_stored_type(tmp_path, dtype):
    value = torch.arange(12).reshape(3, 4).to(dtype)
    checkpoint = open_checkpoint(source_of(folder_of(tmp_path, {"a": value})))
    found = read_tensor(checkpoint, "a")
    assert found.dtype == dtype
    assert torch.equal(found, value)


def test_another_type_in_safetensors_is_named(tmp_path):
    folder = folder_of(tmp_path, {"a": torch.zeros(4, dtype=torch.float8_e4m3fn)})
    checkpoint = open_checkpoint(source_of(folder))
    assert checkpoint.tensors["a"].nbytes == 4
    with pytest.raises(UnsupportedError, match="F8_E4M3"):
        read_tensor(checkpoint, "a")


def test_safetensors_that_changed_after_opening_are_said(tmp_path):
    folder = folder_of(tmp_path, {"a": torch.zeros(4)})
    checkpoint = open_checkpoint(source_of(folder))
    save_file({"a": torch.zeros(5)}, folder / "model.safetensors")
    with pytest.raises(CheckpointError, match="changed"):
        read_tensor(checkpoint, "a")
    (folder / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(CheckpointError, match="damaged"):
        read_tensor(checkpoint, "a")
