"""A tiny target and a drafter for it, trained in seconds on a language made up here. No weights are stored.

The language: a text opens with a mode; what follows a word depends on the mode, on the word and on the kind of the
word before it, but for a little noise. Who has only the last word to go by guesses; who reads the target's features
of earlier words can look several words ahead.
Shape letters: S texts, T positions, F taps * width, P blocks of a text, K slots that predict, V words.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from dflash import reference
from dflash.reference import Tensors
from torch import Tensor
from torch.nn.functional import cross_entropy

from outrider.models.config import DecoderConfig, Rope
from outrider.models.decoder import Decoder
from outrider.models.dflash.config import DFlashConfig, LayerMask
from outrider.models.dflash.network import DFlash
from outrider.models.tiny import random_tensors

WORDS, MODES, KINDS = 24, 2, 3
MASK = WORDS + MODES
VOCAB = MASK + 1
NOISE = 0.1
WINDOW, BLOCK = 6, 8
LENGTH, OPENING = 48, 12
WIDTH = 32
TARGET = DecoderConfig(
    family="qwen3",
    vocab_size=VOCAB,
    hidden_size=WIDTH,
    num_layers=4,
    num_heads=2,
    num_kv_heads=1,
    head_dim=16,
    intermediate_size=64,
    max_positions=512,
    norm_eps=1e-6,
    rope=Rope(1e4),
    windows=(None,) * 4,
    qk_norm=True,
)
DRAFTER = DFlashConfig(
    vocab_size=VOCAB,
    hidden_size=WIDTH,
    num_heads=2,
    num_kv_heads=1,
    head_dim=16,
    intermediate_size=64,
    max_positions=512,
    norm_eps=1e-6,
    rope=Rope(1e4),
    layers=(LayerMask(WINDOW, causal=True), LayerMask(WINDOW, causal=False), LayerMask(None, causal=False)),
    block_size=BLOCK,
    mask_token=MASK,
    taps=(1, 2),
    target_hidden_size=WIDTH,
    num_target_layers=4,
)


@dataclass(frozen=True)
class Pair:
    """The two as the engine takes them, and the drafter's tensors."""

    target: Decoder
    network: DFlash
    tensors: Tensors
    target_tensors: Tensors


def trained_pair() -> Pair:
    generator = torch.Generator().manual_seed(0)
    target_tensors = train_target(generator)
    tensors = train_drafter(target_tensors, generator)
    target = Decoder(TARGET, target_tensors.__getitem__, dtype=torch.float32, device=torch.device("cpu"))
    return Pair(target, DFlash(DRAFTER, tensors.__getitem__, target), tensors, target_tensors)


def language() -> Tensor:
    """What mostly follows, by mode, kind of the word before, and word."""
    return torch.randint(WORDS, (MODES, KINDS, WORDS), generator=torch.Generator().manual_seed(1))


def write_texts(count: int, length: int, generator: torch.Generator) -> Tensor:
    """Texts [S, T] of the language, noise and all."""
    follows = language()
    mode = torch.randint(MODES, (count,), generator=generator)
    text = [WORDS + mode, *torch.randint(WORDS, (2, count), generator=generator)]
    for _ in range(length - 3):
        usual = follows[mode, text[-2] % KINDS, text[-1]]
        other = torch.randint(WORDS, (count,), generator=generator)
        text.append(torch.where(torch.rand(count, generator=generator) < NOISE, other, usual))
    return torch.stack(text, 1)


def run_target(tensors: Tensors, texts_ST: Tensor) -> tuple[Tensor, Tensor]:
    """Logits [S, T, V] and the drafter's features [S, T, F]."""
    count, length = texts_ST.shape
    positions = torch.arange(length).expand(count, -1)
    turned = reference.cos_and_sin(TARGET.rope, TARGET.head_dim, positions, torch.float32)
    past = torch.ones(length, length, dtype=torch.bool).tril()
    hidden, tapped = tensors["model.embed_tokens.weight"][texts_ST], []
    for layer in range(TARGET.num_layers):
        prefix = f"model.layers.{layer}."
        parts = {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
        hidden = target_layer(parts, turned, past, hidden)
        tapped.append(hidden)
    normed = reference.rms(hidden, tensors["model.norm.weight"], TARGET.norm_eps)
    features = torch.cat([tapped[tap] for tap in DRAFTER.taps], -1)
    return normed @ tensors["lm_head.weight"].T, features


def target_layer(parts: Tensors, turned: tuple[Tensor, Tensor], past: Tensor, hidden: Tensor) -> Tensor:
    eps = TARGET.norm_eps
    entering = reference.rms(hidden, parts["input_layernorm.weight"], eps)

    def heads(name: str) -> Tensor:
        return reference.project(parts, f"self_attn.{name}_proj", entering).unflatten(-1, (-1, TARGET.head_dim))

    query, key = (
        reference.rotated(reference.rms(heads(name), parts[f"self_attn.{name}_norm.weight"], eps), *turned)
        for name in ("q", "k")
    )
    groups = TARGET.num_heads // TARGET.num_kv_heads
    key, value = (heads_.repeat_interleave(groups, 2) for heads_ in (key, heads("v")))
    scores = torch.einsum("sqad,sxad->saqx", query, key) / TARGET.head_dim**0.5
    weights = scores.masked_fill(~past, float("-inf")).softmax(-1)
    mixed = torch.einsum("saqx,sxad->sqad", weights, value).flatten(2)
    hidden = hidden + reference.project(parts, "self_attn.o_proj", mixed)
    return hidden + reference.gated_mlp(parts, reference.rms(hidden, parts["post_attention_layernorm.weight"], eps))


def steps_of(tensors: Tensors, count: int, rate: float = 0.02) -> Iterator[int]:
    """Count the steps and take each after the caller's ``backward``; the rate rises shortly and falls to nothing."""
    for tensor in tensors.values():
        tensor.requires_grad_()
    optimizer = torch.optim.AdamW(tensors.values(), rate, betas=(0.9, 0.98), weight_decay=0.01, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=count + 1, pct_start=0.1)
    for step in range(count):
        optimizer.zero_grad()
        yield step
        optimizer.step()
        schedule.step()
    for tensor in tensors.values():
        tensor.requires_grad_(False)


def train_target(generator: torch.Generator, steps: int = 80) -> Tensors:
    made = random_tensors(TARGET)
    tensors = {name: made(name).clone() for name in TARGET.tensor_shapes()}
    tensors["model.embed_tokens.weight"] *= WIDTH**0.5
    for _ in steps_of(tensors, steps):
        texts = write_texts(16, LENGTH, generator)
        logits, _ = run_target(tensors, texts[:, :-1])
        cross_entropy(logits[:, 2:].flatten(0, 1), texts[:, 3:].flatten()).backward()
    return tensors


@torch.no_grad()
def greedy_texts(tensors: Tensors, generator: torch.Generator, count: int) -> tuple[Tensor, Tensor]:
    """Openings of the language that the target goes on with, and the drafter's features of them."""
    texts = write_texts(count, OPENING, generator)
    while texts.shape[1] < LENGTH:
        texts = torch.cat((texts, run_target(tensors, texts)[0][:, -1:].argmax(-1)), 1)
    return texts, run_target(tensors, texts)[1]


def train_drafter(target_tensors: Tensors, generator: torch.Generator, steps: int = 80) -> Tensors:
    embed, head = target_tensors["model.embed_tokens.weight"], target_tensors["lm_head.weight"]
    tensors = {name: _fresh(name, shape, generator) for name, shape in DRAFTER.tensor_shapes().items()}
    texts, features = greedy_texts(target_tensors, generator, 192)
    guesses = DRAFTER.max_tokens
    weights = torch.exp(-torch.arange(guesses) / 4)
    for _ in steps_of(tensors, steps):
        chosen = torch.randperm(len(texts), generator=generator)[:8]
        room = LENGTH - guesses - OPENING + 1
        places = OPENING - 1 + torch.rand(len(chosen), room, generator=generator).argsort()[:, :8]
        logits = reference.block_logits(
            DRAFTER, tensors, embed, head, features[chosen], texts_ST=texts[chosen], places_SP=places
        )
        labels = texts[chosen].gather(1, (places[..., None] + 1 + torch.arange(guesses)).flatten(1))
        losses = cross_entropy(logits.flatten(0, 2), labels.flatten(), reduction="none").unflatten(0, (-1, guesses))
        (losses.mean(0) @ weights / weights.sum()).backward()
    return tensors


def _fresh(name: str, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    if len(shape) == 1:
        return torch.ones(shape)
    return torch.randn(shape, generator=generator) * shape[-1] ** -0.5
