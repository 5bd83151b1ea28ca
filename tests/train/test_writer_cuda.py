"""Writing on a GPU, by recorded steps and the kernel; skipped where there is none."""

import pytest
import torch
from engine.running import tiny_target
from train.writing import by_the_engine, items_of, write

from outrider.models.decoder import Decoder
from outrider.models.loading import decoder_config
from outrider.models.tiny import random_tensors
from outrider.train import writer as writing
from outrider.train.writer import Limits

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")

LIMITS = Limits(max_len=300, max_tokens=200, stop_ids=frozenset({3, 7}))
RAW = {
    "model_type": "qwen3",
    "vocab_size": 211,
    "hidden_size": 96,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 512,
    "use_sliding_window": True,
    "sliding_window": 70,
    "max_window_layers": 2,
}


def target_on(device: str) -> Decoder:
    config = decoder_config(RAW)
    return Decoder(config, random_tensors(config), dtype=torch.float32, device=torch.device(device))


@pytest.mark.parametrize("by_own_lengths", [True, False])
@pytest.mark.parametrize("cuts", [{}, {"top_k": 20, "top_p": 0.9}])
def test_texts_are_those_of_a_cpu(monkeypatch, by_own_lengths, cuts):
    items = items_of(40, vocab=211, longest=100)
    expected = write(target_on("cpu"), items, LIMITS, batch=8, **cuts)
    if not by_own_lengths:
        monkeypatch.setattr(writing, "can_run", lambda _device: False)
    written = write(target_on("cuda"), items, LIMITS, batch=8, **cuts)
    same = sum(written[index].tokens.tolist() == text.tokens.tolist() for index, text in expected.items())
    assert same >= 38  # two devices add up in another order: a near-tie may fall to the other side


def test_recorded_steps_are_the_steps_themselves(monkeypatch):
    items = items_of(20, vocab=211, longest=60)
    target = target_on("cuda")
    recorded = write(target, items, LIMITS)
    monkeypatch.setattr(writing.Steps, "record", lambda _steps: None)
    plain = write(target, items, LIMITS)
    assert {n: text.tokens.tolist() for n, text in recorded.items()} == {n: t.tokens.tolist() for n, t in plain.items()}


def test_half_precision_writes_texts_of_the_same_law():
    config = decoder_config(RAW)
    half = Decoder(config, random_tensors(config), dtype=torch.bfloat16, device=torch.device("cuda"))
    items = items_of(40, vocab=211, longest=60, temperatures=(1.0,))
    exact = by_the_engine(tiny_target(211, **RAW), items, LIMITS)
    first = [write(half, items, LIMITS)[n].tokens[0] == text[0] for n, text in exact.items()]
    assert sum(first) >= 36  # the same numbers decide, so most first words are the same
