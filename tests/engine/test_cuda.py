"""The same engine on a GPU; skipped where there is none (continuous integration has none)."""

import pytest
import torch
from engine.running import drafter_of
from fakes import RandomTree

from outrider.engine.costs import Costs
from outrider.engine.engine import Engine
from outrider.engine.params import SamplingParams
from outrider.engine.tree import DraftTree, Proposal
from outrider.models.decoder import Decoder
from outrider.models.loading import decoder_config
from outrider.models.tiny import random_tensors

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")

RAW = {
    "model_type": "qwen3",
    "vocab_size": 211,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 512,
    "use_sliding_window": True,
    "sliding_window": 9,
    "max_window_layers": 2,
}
PROMPTS = [tuple(range(5, 5 + n)) * 2 for n in (3, 17, 8, 30)]


def target_on(device: str, dtype: torch.dtype = torch.float32) -> Decoder:
    config = decoder_config(RAW)
    return Decoder(config, random_tensors(config), dtype=dtype, device=torch.device(device))


def texts(target, drafter, params, slots: int = 3):
    engine = Engine(target, drafter, slots=slots, max_len=128, device=target.device, costs=Costs(learn=False))
    sequences = [engine.add(prompt, params) for prompt in PROMPTS]
    for _ in engine.run():
        pass
    return [sequence.output for sequence in sequences]


def logits(target):
    tree = DraftTree.of([7, 8], [Proposal((1, 2, 3, 4), (0, 0, 1, 3)), Proposal.chain([9, 9])], target.device)
    cache = target.new_cache(slots=2, max_len=32)
    lengths = torch.tensor([0, 0], device=target.device)
    return target.logits(target.forward(tree, cache, slice(0, 2), lengths, span=tree.width).hidden_BNH).cpu()


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-4), (torch.bfloat16, 0.05)])
def test_logits_are_those_of_the_cpu(dtype, tolerance):
    torch.backends.cuda.matmul.allow_tf32 = False
    reference = logits(target_on("cpu"))
    found = logits(target_on("cuda", dtype))
    real = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    assert float((found - reference).abs()[real].max() / reference.abs().max()) < tolerance


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"repetition_penalty": 1.3, "logit_bias": {3: 2.0}},
        {"temperature": 0.9, "top_k": 50, "top_p": 0.9, "min_p": 0.02, "seed": 3, "presence_penalty": 0.4},
    ],
    ids=["greedy", "edited", "sampled"],
)
def test_no_drafter_changes_a_text_on_a_gpu(settings):
    target = target_on("cuda")
    params = SamplingParams(max_tokens=40, **settings)
    plain = texts(target, drafter_of("none"), params)
    assert texts(target, drafter_of("ngram"), params) == plain
    assert texts(target, RandomTree(vocab=RAW["vocab_size"]), params) == plain


def test_a_gpu_gives_the_greedy_texts_of_the_cpu():
    params = SamplingParams(max_tokens=40)
    assert texts(target_on("cuda"), drafter_of("ngram"), params) == texts(target_on("cpu"), drafter_of("none"), params)
