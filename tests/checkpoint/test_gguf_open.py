"""GGUF headers: names, config, metadata, and every way in which a file can be wrong."""

import numpy as np
import pytest
from checkpoint.checkpoint_files import HIDDEN, INNER, VOCABULARY, source_of, tensors, write
from gguf import GGMLQuantizationType

from outrider.checkpoint import open_checkpoint
from outrider.errors import CheckpointError, UnsupportedError


def opened(path):
    return open_checkpoint(source_of(path))


def refused(path, kind=CheckpointError):
    with pytest.raises(kind) as caught:
        opened(path)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    return message


def test_a_llama_file_reads_as_its_hugging_face_config(tmp_path):
    checkpoint = opened(write(tmp_path / "m.gguf"))
    assert checkpoint.config == {
        "model_type": "llama",
        "hidden_act": "silu",
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "rms_norm_eps": 1e-5,
        "max_position_embeddings": 512,
        "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0},
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    assert checkpoint.generation_config == {}


def test_an_output_tensor_unties_the_head(tmp_path):
    checkpoint = opened(write(tmp_path / "m.gguf", values=tensors(output=True)))
    assert checkpoint.config["tie_word_embeddings"] is False
    assert checkpoint.tensors["lm_head.weight"].shape == (VOCABULARY, HIDDEN)


def test_a_qwen2_file_has_biases(tmp_path):
    checkpoint = opened(write(tmp_path / "m.gguf", "qwen2", tensors(biases=True)))
    assert checkpoint.config["model_type"] == "qwen2"
    assert checkpoint.config["attention_bias"] is True
    assert checkpoint.tensors["model.layers.0.self_attn.k_proj.bias"].shape == (32,)


def test_a_qwen3_file_has_head_norms_and_its_own_head_size(tmp_path):
    path = write(
        tmp_path / "m.gguf",
        "qwen3",
        tensors(norms=True),
        extra=lambda writer: (writer.add_key_length(24), writer.add_value_length(24)),
    )
    checkpoint = opened(path)
    assert checkpoint.config["head_dim"] == 24
    assert checkpoint.tensors["model.layers.0.self_attn.q_norm.weight"].shape == (16,)


def test_tensors_carry_hugging_face_names_shapes_and_stored_sizes(tmp_path):
    checkpoint = opened(write(tmp_path / "m.gguf", kind="Q4_0"))
    block = "model.layers.0."
    assert set(checkpoint.tensors) == {
        "model.embed_tokens.weight",
        "model.norm.weight",
        *(f"{block}self_attn.{name}_proj.weight" for name in "qkvo"),
        *(f"{block}mlp.{name}_proj.weight" for name in ("gate", "up", "down")),
        f"{block}input_layernorm.weight",
        f"{block}post_attention_layernorm.weight",
    }
    down = checkpoint.tensors[f"{block}mlp.down_proj.weight"]
    assert (down.shape, down.dtype) == ((HIDDEN, INNER), "Q4_0")
    assert down.nbytes == HIDDEN * INNER // 32 * 18


def test_an_unknown_tensor_keeps_its_name(tmp_path):
    values = tensors() | {"blk.0.other.weight": np.ones((2, 3), np.float32)}
    assert "blk.0.other.weight" in opened(write(tmp_path / "m.gguf", values=values)).tensors


def test_only_llama_files_have_their_queries_and_keys_interleaved(tmp_path):
    for architecture, heads in (("llama", (4, 2)), ("qwen2", (0, 0))):
        found = opened(write(tmp_path / "m.gguf", architecture)).tensors
        prefix = "model.layers.0.self_attn."
        names = (f"{prefix}q_proj.weight", f"{prefix}k_proj.weight")
        assert tuple(found[name].interleaved_heads for name in names) == heads
        assert found[f"{prefix}v_proj.weight"].interleaved_heads == 0


def test_metadata_are_plain_values_of_every_type(tmp_path):
    def extra(writer):
        writer.add_bool("t.bool", val=True)
        writer.add_int8("t.i8", -3)
        writer.add_uint64("t.u64", 2**40)
        writer.add_float64("t.f64", 0.1)
        writer.add_array("t.floats", [0.5, 1.5])
        writer.add_array("t.flags", [True, False])
        writer.add_array("t.none", ["x"])

    metadata = opened(write(tmp_path / "m.gguf", extra=extra)).metadata
    assert metadata["t.bool"] is True
    assert (metadata["t.i8"], metadata["t.u64"], metadata["t.f64"]) == (-3, 2**40, 0.1)
    assert metadata["t.floats"] == [0.5, 1.5]
    assert metadata["t.flags"] == [True, False]
    assert metadata["tokenizer.ggml.tokens"] == ["<s>", "é", "b"]
    assert type(metadata["llama.block_count"]) is int


def test_a_window_is_kept(tmp_path):
    path = write(tmp_path / "m.gguf", "qwen2", extra=lambda w: w.add_sliding_window(128))
    assert opened(path).config["sliding_window"] == 128


def test_a_missing_file_is_said(tmp_path):
    assert "No such file" in refused(tmp_path / "absent.gguf")


@pytest.mark.parametrize("content", [b"PK", b"GGML", b"PK\x03\x04 something else"])
def test_a_file_without_the_magic_is_said(tmp_path, content):
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    assert "not a GGUF file" in refused(path)


def test_a_git_lfs_pointer_is_said(tmp_path):
    path = tmp_path / "m.gguf"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    assert "git lfs pull" in refused(path)


@pytest.mark.parametrize(("version", "words"), [(1, "GGUF version 1"), (9, "GGUF version 9"), (3 << 24, "big-endian")])
def test_another_version_is_refused(tmp_path, version, words):
    path = write(tmp_path / "m.gguf")
    data = bytearray(path.read_bytes())
    data[4:8] = version.to_bytes(4, "little")
    path.write_bytes(data)
    assert words in refused(path, UnsupportedError)


def test_a_file_cut_anywhere_in_its_header_is_truncated(tmp_path):
    whole = write(tmp_path / "whole.gguf").read_bytes()
    header_end = whole.index(b"blk.0.ffn_down.weight")
    path = tmp_path / "m.gguf"
    for size in (*range(8), *range(8, header_end, 7)):
        path.write_bytes(whole[:size])
        assert "truncated" in refused(path)


def test_a_file_cut_in_its_data_is_truncated(tmp_path):
    path = write(tmp_path / "m.gguf")
    path.write_bytes(path.read_bytes()[:-100])
    message = refused(path)
    assert "truncated" in message
    assert str(path.stat().st_size) in message


def test_an_unknown_architecture_lists_the_known(tmp_path):
    message = refused(write(tmp_path / "m.gguf", "mamba"), UnsupportedError)
    assert "'mamba'" in message
    assert "llama, qwen2, qwen3" in message


def test_an_unread_storage_type_is_named(tmp_path):
    path = write(tmp_path / "m.gguf")
    data = path.read_bytes()
    at = data.index(b"blk.0.attn_q.weight") + len("blk.0.attn_q.weight") + 4 + 16
    for number, words in ((GGMLQuantizationType.MXFP4, "MXFP4"), (999, "number 999")):
        path.write_bytes(data[:at] + int(number).to_bytes(4, "little") + data[at + 4 :])
        assert words in refused(path, UnsupportedError)


def test_one_part_of_several_is_refused(tmp_path):
    path = write(tmp_path / "m.gguf", extra=lambda w: w.add_uint16("split.count", 3))
    assert "one of 3 parts" in refused(path, UnsupportedError)


@pytest.mark.parametrize("key", ["block_count", "embedding_length", "context_length", "eps"])
def test_a_missing_key_is_named(tmp_path, key):
    message = refused(write(tmp_path / "m.gguf", skip=[key]))
    assert f"lacks llama.{ {'eps': 'attention.layer_norm_rms_epsilon'}.get(key, key) }" in message


def test_a_key_of_another_type_is_named(tmp_path):
    path = write(
        tmp_path / "m.gguf",
        skip=["block_count"],
        extra=lambda w: w.add_string("llama.block_count", "one"),
    )
    assert "llama.block_count to be a whole number, found 'one'" in refused(path)


def test_blocks_that_differ_are_refused(tmp_path):
    path = write(
        tmp_path / "m.gguf",
        skip=["head_count_kv"],
        extra=lambda w: w.add_head_count_kv([2, 1]),
    )
    assert "differs from block to block" in refused(path, UnsupportedError)


def test_experts_are_refused(tmp_path):
    path = write(tmp_path / "m.gguf", extra=lambda w: w.add_expert_count(8))
    assert "8 experts" in refused(path, UnsupportedError)


def test_heads_that_do_not_divide_are_said(tmp_path):
    path = write(tmp_path / "m.gguf", skip=["head_count_kv"], extra=lambda w: w.add_head_count_kv(3))
    assert "4 query heads" in refused(path)


def test_a_file_without_embeddings_is_said(tmp_path):
    values = tensors()
    del values["token_embd.weight"]
    assert "token_embd.weight" in refused(write(tmp_path / "m.gguf", values=values))


def test_damaged_bytes_in_the_header_never_raise_anything_else(tmp_path):
    whole = write(tmp_path / "whole.gguf").read_bytes()
    rng = np.random.default_rng(5)
    path = tmp_path / "m.gguf"
    refusals = 0
    for _ in range(400):
        data = bytearray(whole)
        for place in rng.integers(8, 1500, size=3):
            data[place] = rng.integers(256)
        path.write_bytes(data)
        try:
            opened(path)
        except CheckpointError as error:
            refusals += 1
            assert "\n" not in str(error)  # noqa: PT017 - opening a damaged file may succeed
    assert refusals > 100
