"""Small targets and runs for the tests of the engine."""

import torch

from outrider.engine.costs import Costs
from outrider.engine.engine import Engine
from outrider.engine.interfaces import Drafter
from outrider.engine.params import SamplingParams
from outrider.engine.sequence import Sequence
from outrider.models.decoder import Decoder
from outrider.models.loading import decoder_config
from outrider.models.tiny import random_tensors
from outrider.registry import DRAFTERS, resolve

CPU = torch.device("cpu")
Request = tuple[tuple[int, ...], SamplingParams]


def tiny_target(vocab: int, *, seed: int = 0, **options) -> Decoder:
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
    return Decoder(config, random_tensors(config, seed=seed), dtype=torch.float32, device=CPU)


def drafter_of(name: str) -> Drafter:
    return resolve("drafter", DRAFTERS, name)()


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
    engine = engine_of(target, drafter_of("none"))
    return finish(engine, [(prompt, params)], **options)[0].output
