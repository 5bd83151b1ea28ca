"""Small targets and runs for the tests of the engine."""

import torch

from outrider.drafters.none import NoDrafter
from outrider.drafters.options import DraftOptions
from outrider.drafters.setting import Setting
from outrider.engine.costs import Costs
from outrider.engine.engine import Engine
from outrider.engine.interfaces import Drafter
from outrider.engine.params import SamplingParams
from outrider.engine.sequence import Sequence
from outrider.models.config import Rope
from outrider.models.decoder import Decoder
from outrider.models.dflash.config import DFlashConfig, LayerMask
from outrider.models.dflash.network import DFlash
from outrider.models.loading import decoder_config
from outrider.models.mtp import MTP
from outrider.models.tiny import random_tensors, random_values
from outrider.registry import DRAFTERS, resolve

CPU = torch.device("cpu")
Request = tuple[tuple[int, ...], SamplingParams]


# Two layers that keep states and one that keeps keys; value heads of another size than key heads.
HYBRID = {
    "model_type": "qwen3_5",
    "num_hidden_layers": 3,
    "head_dim": 8,
    "layer_types": ["linear_attention", "full_attention", "linear_attention"],
    "linear_num_key_heads": 1,
    "linear_num_value_heads": 2,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 6,
}
TARGETS: dict[str, dict[str, object]] = {"llama": {}, "qwen3_5": HYBRID}


def tiny_target(vocab: int, *, seed: int = 0, device: torch.device = CPU, **options) -> Decoder:
    raw = {
        "model_type": "llama",
        "vocab_size": vocab,
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "max_position_embeddings": 256,
        "rms_norm_eps": 1e-5,
        "rope_theta": 1e4,
        "tie_word_embeddings": False,
        **options,
    }
    config = decoder_config(raw)
    return Decoder(config, random_tensors(config, seed=seed), dtype=torch.float32, device=device)


def drafter_of(name: str, target: Decoder, *, slots: int = 1, max_len: int = 96, **options) -> Drafter:
    """A drafter of the table; where it needs a draft model or heads, random ones that fit the target."""
    setting = Setting(slots, max_len, tiny_network(target), DraftOptions(**options), lambda: tiny_heads(target))
    return resolve("drafter", DRAFTERS, name).build(setting)


def tiny_heads(target: Decoder, *, seed: int = 6) -> MTP:
    """Random multi-token prediction heads."""
    return MTP(random_values(target.config.mtp_tensor_shapes(), seed=seed), target)


def tiny_network(target: Decoder, *, seed: int = 5, **options) -> DFlash:
    """A random draft model: two layers, one of them windowed, fed by the first and the last block."""
    shape = target.config
    config = DFlashConfig(
        **{
            "vocab_size": shape.vocab_size,
            "hidden_size": shape.hidden_size,
            "num_heads": 2,
            "num_kv_heads": 1,
            "head_dim": 8,
            "intermediate_size": 24,
            "max_positions": shape.max_positions,
            "norm_eps": 1e-6,
            "rope": Rope(1e4),
            "layers": (LayerMask(6, causal=True), LayerMask(None, causal=False)),
            "block_size": 5,
            "mask_token": 0,
            "taps": tuple(range(shape.num_layers)),
            "target_hidden_size": shape.hidden_size,
        }
        | options
    )
    return DFlash(config, random_tensors(config, seed=seed), target)


def engine_of(
    target: Decoder,
    drafter: Drafter,
    *,
    slots: int = 1,
    max_len: int = 96,
    costs: Costs | None = None,
) -> Engine:
    fixed = costs or Costs(learn=False)
    return Engine(target, drafter, slots=slots, max_len=max_len, device=CPU, costs=fixed)


def finish(engine: Engine, requests: list[Request], **options) -> list[Sequence]:
    """Add all, run to the end, and check that each event was told once."""
    sequences = [engine.add(prompt, params, **options) for prompt, params in requests]
    told: dict[int, list[int]] = {sequence.id: [] for sequence in sequences}
    for event in engine.run():
        told[event.sequence_id].append(event.token)
    assert told == {sequence.id: sequence.output for sequence in sequences}
    return sequences


def plain(target: Decoder, prompt: tuple[int, ...], params: SamplingParams, **options) -> list[int]:
    """What the target says when nothing is drafted and nobody else runs."""
    engine = engine_of(target, NoDrafter())
    return finish(engine, [(prompt, params)], **options)[0].output
