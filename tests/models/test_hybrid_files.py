"""Qwen3.5 from every form it is published in: the same model; what does not fit is refused by name."""

import json
from collections.abc import Callable

import pytest
import torch
from checkpoint.checkpoint_files import source_of
from models.hybrid_files import as_fp8, as_gguf, as_multimodal, plain_folder, rewrite, tensors_of
from transformers import AutoModelForCausalLM

from outrider.checkpoint import open_checkpoint
from outrider.engine.tree import DraftTree
from outrider.errors import CheckpointError, UnsupportedError, UsageError
from outrider.models.decoder import Decoder
from outrider.models.loading import check_tensors, decoder_config, load_decoder, named
from outrider.models.mtp import MTP, Past, load_mtp
from outrider.models.weights import read_tensor

CPU = torch.device("cpu")
TEXT = torch.tensor([[5, 9, 9, 30, 2, 17, 200, 3]])
Opened = tuple[Decoder, MTP]


def open_both(path) -> Opened:
    checkpoint = open_checkpoint(source_of(path))
    check_tensors(decoder_config(checkpoint.config), checkpoint)
    target = load_decoder(checkpoint, dtype=torch.float32, device=CPU)
    return target, load_mtp(named(checkpoint), target)


def made_of(folder, tensors) -> Opened:
    """The decoder of a plain folder's config with these values."""
    config = decoder_config(json.loads((folder / "config.json").read_text()))
    target = Decoder(config, tensors.__getitem__, dtype=torch.float32, device=CPU)
    return target, MTP(tensors.__getitem__, target)


def outputs(both: Opened) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits of a text, and what the heads say along it."""
    target, heads = both
    cache = target.new_cache(slots=1, max_len=16)
    out = target.forward(DraftTree.chain(TEXT), cache, slice(0, 1), torch.tensor([0]), span=8)
    past = Past(heads.new_cache(slots=1, max_len=16), slice(0, 1), torch.tensor([0]), 0)
    return target.logits(out.hidden_BNH), heads.read(TEXT.roll(-1, 1), out.hidden_BNH, past)


def same(found: Opened, wanted: Opened, tolerance: float = 0.0) -> None:
    for ours, theirs in zip(outputs(found), outputs(wanted), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=tolerance)


@pytest.fixture
def folder(tmp_path):
    return plain_folder(tmp_path / "plain")


def test_transformers_reads_the_folder_as_the_same_model(folder):
    theirs = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.inference_mode():
        wanted = theirs(TEXT).logits
    torch.testing.assert_close(outputs(open_both(folder))[0], wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("log_dtype", [torch.float32, torch.bfloat16])
def test_a_multimodal_checkpoint_gives_its_text_model(folder, log_dtype):
    tensors = tensors_of(folder)
    tensors |= {name: t.to(log_dtype).float() for name, t in tensors.items() if name.endswith("A_log")}
    wanted = made_of(folder, tensors)
    same(open_both(as_multimodal(folder, log_dtype=log_dtype)), wanted)


@pytest.mark.parametrize("block", [16, 128])
def test_8_bit_floats_come_with_one_factor_a_block(folder, block):
    wanted = made_of(folder, as_fp8(folder, block))
    same(open_both(folder), wanted)
    same(open_both(as_multimodal(folder)), wanted)


def test_a_gguf_file_is_the_model_that_was_converted(folder, tmp_path):
    same(open_both(as_gguf(folder, tmp_path / "m.gguf")), open_both(folder), 1e-5)


def test_a_quantised_gguf_file_holds_the_values_nearly(folder, tmp_path):
    checkpoint = open_checkpoint(source_of(as_gguf(folder, tmp_path / "m.gguf", kind="Q8_0")))
    wanted = tensors_of(folder)
    assert set(checkpoint.tensors) == set(wanted)
    for name, values in wanted.items():
        found = read_tensor(checkpoint, name)
        assert found.shape == values.shape
        assert float((found - values).abs().max()) < 0.01 * float(values.abs().max()), name


def test_a_gguf_files_config_is_the_models(folder, tmp_path):
    found = decoder_config(open_checkpoint(source_of(as_gguf(folder, tmp_path / "m.gguf"))).config)
    assert found == decoder_config(json.loads((folder / "config.json").read_text()))


def test_heads_that_are_declared_but_not_there_are_missed_by_name(folder):
    tensors = {name: t for name, t in tensors_of(folder).items() if name != "mtp.fc.weight"}
    rewrite(folder, tensors)
    with pytest.raises(CheckpointError, match=r"declares.*1 of their 15 tensors are missing, first 'mtp\.fc\.weight'"):
        open_both(folder)


def test_a_model_without_heads_says_so(folder):
    tensors = {name: t for name, t in tensors_of(folder).items() if not name.startswith("mtp.")}
    rewrite(folder, tensors, mtp_num_hidden_layers=0)
    with pytest.raises(UsageError, match="has no multi-token prediction heads"):
        open_both(folder)


def test_several_layers_of_heads_are_refused(folder):
    rewrite(folder, tensors_of(folder), mtp_num_hidden_layers=2)
    with pytest.raises(UnsupportedError, match="2 multi-token prediction layers"):
        open_both(folder)


def test_heads_of_another_shape_are_refused(folder):
    rewrite(folder, tensors_of(folder) | {"mtp.norm.weight": torch.ones(31)})
    with pytest.raises(CheckpointError, match=r"'mtp\.norm\.weight' has shape \(31,\)"):
        open_both(folder)


Change = Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]
SCALE = "model.layers.3.mlp.up_proj.weight_scale_inv"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: {k: v for k, v in t.items() if k != SCALE}, "F8_E4M3 with one factor a block"),
        (lambda t: t | {SCALE: torch.ones(2, 2)}, "expected .3, 2., one factor for each block of 16 by 16"),
        (lambda t: t | {"nothing.weight_scale_inv": torch.ones(1, 1)}, "no tensor nothing.weight that it scales"),
    ],
)
def test_factors_that_do_not_fit_are_refused(folder, change: Change, words):
    as_fp8(folder, 16)
    rewrite(folder, change(tensors_of(folder)))
    with pytest.raises((CheckpointError, UnsupportedError), match=words):
        open_both(folder)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"model_type": "qwen3_5_moe"}, UnsupportedError, "mixture of experts"),
        ({"num_experts": 8}, UnsupportedError, "mixture of experts"),
        ({"attention_bias": True}, UnsupportedError, "attention_bias"),
        ({"attn_output_gate": False}, UnsupportedError, "attn_output_gate"),
        ({"output_gate_type": "sigmoid"}, UnsupportedError, "output_gate_type"),
        ({"mtp_use_dedicated_embeddings": True}, UnsupportedError, "mtp_use_dedicated_embeddings"),
        ({"layer_types": ["sliding_attention"] * 4}, UnsupportedError, "sliding_attention"),
        ({"layer_types": ["full_attention"]}, CheckpointError, "list of 4 kinds"),
        ({"linear_num_value_heads": 3}, CheckpointError, "no multiple of linear_num_key_heads"),
        ({"rope_parameters": {"partial_rotary_factor": 2}}, CheckpointError, "above 0 and at most 1"),
        ({"rope_parameters": {"partial_rotary_factor": 0.1}}, CheckpointError, "even number of rotated"),
        ({"text_config": 3}, CheckpointError, "text_config to be an object"),
    ],
)
def test_variants_that_are_not_run_are_refused(folder, changes, error, words):
    raw = json.loads((folder / "config.json").read_text()) | changes
    with pytest.raises(error, match=words):
        decoder_config(raw)


def test_layers_follow_the_interval_where_they_are_not_listed(folder):
    raw = json.loads((folder / "config.json").read_text())
    assert decoder_config(raw).attention_layers == (3,)
    assert decoder_config(raw | {"full_attention_interval": 2}).attention_layers == (1, 3)
    assert decoder_config(raw | {"model_type": "qwen3_5_text"}) == decoder_config(raw)
