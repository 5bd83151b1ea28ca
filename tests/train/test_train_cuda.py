"""Training on a GPU: the compiled kernels see what the dense mask shows, and the loop works in bfloat16."""

from dataclasses import replace

import pytest
import torch
from dflash.pair import TARGET
from train import toy
from train.rows import batch_of
from train.toy import lines_of, task_of

from outrider.models.config import Rope
from outrider.models.decoder import Decoder
from outrider.models.dflash.config import DFlashConfig, LayerMask
from outrider.train.distributed import Group
from outrider.train.first_weights import fresh_weights
from outrider.train.learner import Learner
from outrider.train.lesson import Lesson, make_blocks
from outrider.train.loop import Trainer
from outrider.train.network import DraftNetwork, Shown, Tables
from outrider.train.visibility import visible

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
    pytest.mark.filterwarnings("ignore"),  # of compilers
]
DEVICE = torch.device("cuda")
SHORT = {"steps": 8, "log_every": 2, "evaluate_every": 0, "rows": 2, "evaluate_prompts": 2, "evaluate_tokens": 4}
WIDE = DFlashConfig(
    vocab_size=500, hidden_size=192, num_heads=9, num_kv_heads=3, head_dim=64, intermediate_size=256,
    max_positions=1024, norm_eps=1e-6, rope=Rope(1e4), block_size=16, mask_token=499, taps=(0, 1),
    target_hidden_size=192,
    layers=(LayerMask(40, causal=True), LayerMask(40, causal=False), LayerMask(None, causal=False)),
)  # fmt: skip


def wide_network() -> DraftNetwork:
    generator = torch.Generator(DEVICE).manual_seed(0)
    embedding, head = (torch.randn(500, 192, device=DEVICE, generator=generator) for _ in range(2))
    network = DraftNetwork(WIDE, Tables(embedding, head)).to(DEVICE)
    network.take(fresh_weights(WIDE, 0))
    return network


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_flex_attention_gives_the_hidden_states_and_gradients_of_the_dense_mask(dtype):
    generator = torch.Generator().manual_seed(0)
    texts = [torch.randint(499, (length,), generator=generator).tolist() for length in (250, 180, 90, 30, 200, 256)]
    batch = batch_of(texts, [20, 9, 5, 3, 60, 30], rows=4, row_length=256, anchors=16, block_size=16).to(DEVICE)
    blocks = make_blocks(batch, Lesson.served(WIDE))
    features = torch.randn(4, 256, 384, generator=generator).to(DEVICE, dtype)
    found, direction = [], torch.randn(192, generator=generator).to(DEVICE)
    for flex in (False, True):
        network = wide_network()
        network.compile_layers()
        shown = Shown(
            features, blocks.ids_BAN, blocks.positions_BS, visible(blocks, WIDE.layers, flex=flex), batch.blocks_P
        )
        hidden = network(shown)
        (hidden.float() * direction).mean().backward()  # of the norm's own mean square there would be no gradient
        found.append([hidden.detach().float(), *(parameter.grad for parameter in network.parameters())])
    for dense, flex in zip(*found, strict=True):
        scale = float(dense.abs().max())
        assert float((dense - flex).abs().max()) < scale * (0.06 if dtype == torch.bfloat16 else 0.01)


@pytest.fixture
def on_gpu(monkeypatch):
    """The tiny pair, its target in bfloat16 on the GPU."""
    made = toy.toy()
    target = Decoder(TARGET, made.tensors.__getitem__, dtype=torch.bfloat16, device=DEVICE)
    monkeypatch.setattr(toy, "toy", lambda: replace(made, target=target))


@pytest.mark.parametrize("attention", ["flex", "dense"])
def test_the_tiny_pair_learns_in_bfloat16(on_gpu, tmp_path, attention):
    task = task_of(tmp_path, attention=attention, steps=60, evaluate_every=30)
    ended = Trainer(task, Group(), print).run()
    assert ended.evaluation.tau > 4
    assert not ended.evaluation.warnings


def test_a_run_goes_on_after_a_stop(on_gpu, tmp_path):
    Trainer(task_of(tmp_path / "whole", **SHORT), Group(), print).run()
    for minutes in (0, None):
        Trainer(task_of(tmp_path / "parts", **SHORT), Group(), print).run(resume=True, minutes=minutes)
    whole, parts = (lines_of(tmp_path / name, "step") for name in ("whole", "parts"))
    assert [line["loss"] for line in whole] == pytest.approx([line["loss"] for line in parts], rel=0.02)


def test_a_step_is_compiled_once_and_never_waits_for_the_device(on_gpu, tmp_path):
    learner = Learner(task_of(tmp_path, **SHORT), Group())
    learner.step()
    torch.cuda.set_sync_debug_mode("error")
    try:
        with torch._dynamo.config.patch(error_on_recompile=True):
            for _ in range(4):
                learner.step()
    finally:
        torch.cuda.set_sync_debug_mode("default")
