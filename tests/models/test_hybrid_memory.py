"""What verification keeps of a node at the shapes of Qwen3.6-27B: the engine's own buffers, without their values."""

from functools import cache
from pathlib import Path

import pytest
import torch

from outrider.checkpoint import Checkpoint, Source
from outrider.engine.tree import DraftTree
from outrider.models.loading import load_decoder

META = torch.device("meta")
# The published config.json's sizes.
QWEN36_27B = {
    "model_type": "qwen3_5",
    "text_config": {
        "hidden_size": 5120,
        "intermediate_size": 17408,
        "num_hidden_layers": 64,
        "full_attention_interval": 4,
        "num_attention_heads": 24,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 48,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
        "mtp_num_hidden_layers": 1,
        "vocab_size": 248320,
        "max_position_embeddings": 262144,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.25},
    },
}


@cache
def target():
    checkpoint = Checkpoint(Source(Path("config.json"), "folder", "test"), QWEN36_27B, {})
    return load_decoder(checkpoint, dtype=torch.bfloat16, device=META, dummy=True)


def nbytes(tensors) -> int:
    """Memory that the tensors keep alive, views of larger ones with all of these."""
    storages = {id(t.untyped_storage()): t.untyped_storage().nbytes() for t in tensors}
    return sum(storages.values())


@cache
def kept(width: int) -> dict[str, int]:
    """Bytes that a pass over one tree of so many nodes leaves until the commit."""
    model = target()
    memory = model.new_cache(slots=1, max_len=width)
    order = torch.arange(width, device=META)[None]
    tree = DraftTree(
        tokens_BN=order,
        parents_BN=order,
        depths_BN=order,
        visible_BNN=torch.ones(1, width, width, dtype=torch.bool, device=META),
        counts_B=torch.ones(1, dtype=torch.int64, device=META),
        is_chain=False,
    )
    out = model.forward(tree, memory, slice(0, 1), torch.zeros(1, dtype=torch.int64, device=META), span=width)
    tapes = memory.states._tapes.values()
    return {
        "tape": nbytes(tensor for tape in tapes for tensor in tape.rule),
        "convolution": nbytes(tape.inputs_BXC for tape in tapes),
        "keys and values": nbytes([memory._kv_L2SGMD]),
        "logits": nbytes([model.logits(out.hidden_BNH)]),
    }


def per_node(part: str) -> int:
    return (kept(64)[part] - kept(16)[part]) // 48


def test_the_model_is_the_published_one():
    assert target().config.num_parameters == 26_895_998_464
    assert len(target().config.attention_layers) == 16


def test_a_sequence_has_one_state_of_151_megabytes():
    states = target().new_cache(slots=1, max_len=1).states
    matrices = [states.read(layer, slice(0, 1))[0] for layer in target().config.delta_layers]
    assert nbytes(matrices) == 150_994_944
    assert {matrix.dtype for matrix in matrices} == {torch.float32}


@pytest.mark.parametrize(
    ("part", "expected"),
    [("tape", 1_582_080), ("convolution", 983_040), ("keys and values", 65_536), ("logits", 993_280)],
)
def test_a_node_keeps_what_the_docs_say(part, expected):
    assert per_node(part) == expected


def test_a_node_costs_the_states_under_2_megabytes_where_a_state_of_its_own_would_be_151():
    assert per_node("tape") < 2_000_000
    assert per_node("tape") + per_node("convolution") < 150_994_944 / 50
