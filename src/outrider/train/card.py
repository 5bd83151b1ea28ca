"""A drafter's card: README.md with the front matter of the hub, what it is, how it was trained, how it runs.

Everything in it is taken from the run's log; what the log does not say is left out, not made up.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outrider.models.dflash.config import DFlashConfig
from outrider.train.report.result import Measured, RunReport

NAME = "README.md"
TAGS = ("speculative-decoding", "dflash", "draft-model", "outrider")
FORMATS = {"zlab": "z-lab folder", "speculators": "folder of the speculators library", "gguf": "GGUF"}
UNKNOWN = "unknown"  # the hub's word for a licence that nobody stated
ROWS = 12  # of the curve
RATES = 7
OPTIONS = (
    *("lr", "warm_up", "optimizer", "weight_decay", "clip", "ema", "loss", "gamma", "pace", "distillation", "rows"),
    *("row_length", "anchors", "accumulation", "bf16", "seed"),
)


@dataclass(frozen=True, slots=True)
class Engine:
    """How one engine runs the drafter, and what to know of it."""

    name: str
    command: str
    remarks: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What a card is written from.

    Attributes:
        base_model: the target, by its name on the hub where it has one.
        license: an identifier of the hub's.
        format: of the files.
        header: first line of the run's log.
        report: of the run.
        engines: how they run it.
    """

    base_model: str
    license: str
    format: str
    dtype: str
    step: int
    config: DFlashConfig
    header: Mapping[str, Any]
    report: RunReport
    engines: Sequence[Engine]


def write_card(card: Card) -> str:
    """Return the text of README.md."""
    parts = [_front_matter(card), _about(card), _running(card.engines), _training(card), _curve(card), _verdict(card)]
    return "\n".join(part for part in parts if part)


def _front_matter(card: Card) -> str:
    """YAML, in which every JSON string is a string too."""
    tags = "\n".join(f"- {tag}" for tag in (*TAGS, *(["gguf"] if card.format == "gguf" else [])))
    return (
        f"---\nlicense: {json.dumps(card.license)}\nbase_model: {json.dumps(card.base_model)}\n"
        f"library_name: outrider\ntags:\n{tags}\n---\n"
    )


def _about(card: Card) -> str:
    config = card.config
    windows = sorted({mask.window for mask in config.layers if mask.window is not None})
    sliding = sum(mask.window is not None for mask in config.layers)
    seen = f"{sliding} of {config.num_layers} with a window of {windows[0]}" if windows else "all see the whole context"
    return (
        f"# DFlash drafter for {card.base_model}\n\n"
        f"A block-diffusion drafter: it guesses {config.max_tokens} tokens at once, {card.base_model} checks them in "
        "one pass, and the text stays exactly the target's. It shares the target's embeddings and head.\n\n"
        "| | |\n|---|---|\n"
        f"| format | {FORMATS.get(card.format, card.format)}, {card.dtype} |\n"
        f"| layers | {config.num_layers}, {seen} |\n"
        f"| hidden, MLP, heads | {config.hidden_size}, {config.intermediate_size}, {config.num_heads} of "
        f"{config.head_dim} ({config.num_kv_heads} for keys and values) |\n"
        f"| block | {config.block_size} slots, the anchor's included |\n"
        f"| taps (outputs of blocks, from 0) | {', '.join(map(str, config.taps))} |\n"
        f"| mask token | {config.mask_token} |\n"
    )


def _running(engines: Sequence[Engine]) -> str:
    lines = ["## How to run it\n"]
    for engine in engines:
        lines.append(f"### {engine.name}\n")
        lines.append(f"```sh\n{engine.command}\n```\n" if engine.command else "It cannot run these files.\n")
        lines += [f"- {remark}" for remark in engine.remarks]
        lines += [""] if engine.remarks else []
    return "\n".join(lines)


def _training(card: Card) -> str:
    data, options = _held(card.header, "data"), _held(card.header, "options")
    lines = ["## Training\n", *_data_lines(data)]
    if card.header.get("init") is not None:
        lines.append(f"- started from: {Path(card.header['init']).name}, whose own training comes on top")
    lines.append(f"- step {card.step:,} of {card.header.get('steps', 'unknown')}")
    settings = [f"{name} {options[name]}" for name in OPTIONS if options.get(name) is not None]
    if settings:
        lines.append(f"- settings: {', '.join(settings)}")
    return "\n".join([*lines, ""])


def _data_lines(data: Mapping[str, Any]) -> list[str]:
    counts = {"samples": "samples", "response_tokens": "tokens of responses", "prompts": "prompts"}
    told = [f"{data[key]:,} {what}" for key, what in counts.items() if isinstance(data.get(key), int)]
    lines = [f"- data: the target's own responses; {', '.join(told)}"] if told else []
    sources = data.get("sources")
    if isinstance(sources, dict) and sources:
        lines.append(f"- prompts from: {', '.join(f'{name} {count}' for name, count in sources.items())}")
    return lines


def _curve(card: Card) -> str:
    lines = [line for line in card.report.evaluations if line.step <= card.step]
    if not lines:
        return "## Evaluation\n\nNone was made in training.\n"
    last = lines[-1]
    rates = ", ".join(f"{rate:.3f}" for rate in last.position_rates[:RATES])
    head = (
        f"## Evaluation\n\nAcceptance length (tokens a round, the bonus token included) {_length(last)} on "
        f"{last.prompts or 'unknown'} held-out prompts, decoded by Outrider's engine at step {last.step:,}, with 95 % "
        f"interval. Position rates u_1, u_2, ...: {rates or 'not measured'}.\n"
    )
    every = -(-len(lines) // ROWS)
    rows = [
        f"| {line.step:,} | {_count(line.tokens)} | {_length(line)} | {_number(line.held_out_loss)} |"
        for line in lines[::-1][::every][::-1]
    ]
    return "\n".join(
        [head, "| step | response tokens | acceptance length | held-out loss |", "|---|---|---|---|", *rows, ""]
    )


def _verdict(card: Card) -> str:
    report = card.report
    made = f"outrider {report.provenance.outrider}, {report.provenance.date[:10]}"
    return (
        f"## Has it converged?\n\n{report.headline}\n\nFrom the whole run's log, by `outrider train report` ({made}).\n"
    )


def _length(line: Measured) -> str:
    if line.acceptance_length is None:
        return ""
    span = "" if line.low is None or line.high is None else f" [{line.low:.2f}, {line.high:.2f}]"
    return f"{line.acceptance_length:.2f}{span}"


def _count(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _held(header: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = header.get(key)
    return value if isinstance(value, dict) else {}
