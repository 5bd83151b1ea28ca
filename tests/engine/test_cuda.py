"""The same engine on a GPU; skipped where there is none (continuous integration has none)."""

import pytest
import torch
from engine.running import drafter_of, tiny_network
from fakes import RandomTree

from outrider.drafters.options import DraftOptions
from outrider.drafters.setting import Setting
from outrider.engine.costs import Costs
from outrider.engine.engine import Engine
from outrider.engine.params import SamplingParams
from outrider.engine.tree import DraftTree, Proposal
from outrider.models.decoder import Decoder
from outrider.models.dflash.config import Convolution, Markov, Selector
from outrider.models.loading import decoder_config
from outrider.models.tiny import random_tensors
from outrider.registry import DRAFTERS, resolve

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
HYBRID = {
    **RAW,
    "model_type": "qwen3_5",
    "layer_types": ["linear_attention", "full_attention", "linear_attention"],
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 6,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 12,
}
RAWS = {"qwen3": RAW, "qwen3_5": HYBRID}
PROMPTS = [tuple(range(5, 5 + n)) * 2 for n in (3, 17, 8, 30)]


def target_on(device: str, dtype: torch.dtype = torch.float32, family: str = "qwen3") -> Decoder:
    config = decoder_config(RAWS[family])
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


@pytest.mark.parametrize("family", RAWS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-4), (torch.bfloat16, 0.05)])
def test_logits_are_those_of_the_cpu(dtype, tolerance, family):
    torch.backends.cuda.matmul.allow_tf32 = False
    reference = logits(target_on("cpu", family=family))
    found = logits(target_on("cuda", dtype, family))
    real = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    assert float((found - reference).abs()[real].max() / reference.abs().max()) < tolerance


@pytest.mark.parametrize("family", RAWS)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"repetition_penalty": 1.3, "logit_bias": {3: 2.0}},
        {"temperature": 0.9, "top_k": 50, "top_p": 0.9, "min_p": 0.02, "seed": 3, "presence_penalty": 0.4},
    ],
    ids=["greedy", "edited", "sampled"],
)
def test_no_drafter_changes_a_text_on_a_gpu(settings, family):
    target = target_on("cuda", family=family)
    params = SamplingParams(max_tokens=40, **settings)
    plain = texts(target, drafter(target, "none"), params)
    for name in DRAFTERS:
        assert texts(target, drafter(target, name), params) == plain, name
    assert texts(target, RandomTree(vocab=RAW["vocab_size"]), params) == plain


def drafter(target, name: str):
    return drafter_of(name, target, slots=3, max_len=128, sampled=False)


@pytest.mark.parametrize("family", RAWS)
@pytest.mark.parametrize("name", DRAFTERS)
def test_a_gpu_gives_the_greedy_texts_of_the_cpu(name, family):
    params = SamplingParams(max_tokens=40)
    here, there = target_on("cpu", family=family), target_on("cuda", family=family)
    assert texts(there, drafter(there, name), params) == texts(here, drafter(here, "none"), params)


VARIANTS = {
    "dflash2": {"kind": "dflash2", "convolution": Convolution(2, 8), "selector": Selector(4, 3)},
    "dspark": {"kind": "dspark", "markov": Markov(4, "rnn"), "anchor_predicts": True},
}


@pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("name", ["dflash", "ddtree"])
def test_successors_of_dflash_run_on_a_gpu(name, options):
    target = target_on("cuda")
    setting = Setting(3, 128, tiny_network(target, **options), DraftOptions(sampled=False, budget=12))
    built = resolve("drafter", DRAFTERS, name).build(setting)
    params = SamplingParams(max_tokens=40, temperature=0.9, seed=3)
    assert texts(target, built, params) == texts(target, drafter(target, "none"), params)


def test_a_sampled_chain_runs_on_a_gpu():
    target = target_on("cuda")
    built = drafter_of("dflash", target, slots=3, max_len=128, tokens=4)
    params = SamplingParams(max_tokens=40, temperature=0.9, seed=3)
    assert [len(text) for text in texts(target, built, params)] == [40] * 4
