"""Logs by formula, not from any training: curves that saturate, with the traces that faults leave in them."""

import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

SLOTS = 7
SECOND = 0.9  # accuracy of a slot against that of the slot before
TOKENS = 20_000  # response tokens a step
VOCABULARY = 49_152


def saturating(share: float, *, start: float, end: float, power: float = 0.5, offset: float = 0.02) -> float:
    """From ``start`` at a share of 0 of the run towards ``end``, of which it is far at a share of 1."""
    return end + (start - end) * ((share + offset) / offset) ** -power


def slots_of(first: float) -> list[float]:
    return [first * SECOND**k for k in range(SLOTS)]


def rates_of(slots: Sequence[float], kept: Sequence[float] | float = 1.05) -> list[float]:
    """u_k of rounds that pass slot k a little more often than its accuracy: right words come together."""
    factors = [kept] * len(slots) if isinstance(kept, float) else kept
    rates, reached = [], 1.0
    for right, factor in zip(slots, factors, strict=True):
        reached *= min(right * factor, 1.0)
        rates.append(reached)
    return rates


def header(**changes: Any) -> dict[str, Any]:
    config = {"block_size": SLOTS + 1, "vocab_size": VOCABULARY}
    options = {"loss": "decay", "distillation": 0.0}
    return {"format": 1, "kind": "outrider-train", "config": config, "options": options, "steps": 4000} | changes


def step_line(step: int, share: float, noise: random.Random, **changes: Any) -> dict[str, Any]:
    first = saturating(share, start=0.02, end=0.75)
    return {
        "kind": "step",
        "step": step,
        "tokens": step * TOKENS,
        "epoch": step // 1000,
        "lr": 6e-4,
        "loss": saturating(share, start=10.5, end=1.8) + noise.gauss(0, 0.05),
        "slot_accuracy": [value + noise.gauss(0, 0.005) for value in slots_of(first)],
        "grad_norm": 0.5,
        "seconds": 0.1,
        "anchor_phases": [1 / (SLOTS + 1)] * (SLOTS + 1),
        "starved": 0.0,
    } | changes


def evaluation_line(step: int, share: float, noise: random.Random, **changes: Any) -> dict[str, Any]:
    slots = slots_of(saturating(share, start=0.02, end=0.75))
    rates = changes.pop("position_rates", rates_of(slots))
    tau = changes.pop("tau", 1 + sum(rates)) + noise.gauss(0, 0.005)
    loss = saturating(share, start=10.5, end=1.9)
    return {
        "kind": "evaluation",
        "step": step,
        "tokens": step * TOKENS,
        "tau": tau,
        "tau_low": tau - 0.08,
        "tau_high": tau + 0.08,
        "position_rates": rates,
        "marginal_accuracy": slots,
        "prompts": 48,
        "held_out_loss": loss,
    } | changes


def run_lines(*, steps: int = 4000, long: float = 1.0, seed: int = 0) -> list[dict[str, Any]]:
    """A run that goes well; ``long`` stretches it along the same curves, far beyond 1 it has converged."""
    noise = random.Random(seed)  # noqa: S311 -- scatter, no secret
    lines = [header()]
    for step in range(20, steps + 1, 20):
        lines.append(step_line(step, long * step / 4000, noise))
        if step % 200 == 0:
            lines.append(evaluation_line(step, long * step / 4000, noise))
    return lines


def write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path
