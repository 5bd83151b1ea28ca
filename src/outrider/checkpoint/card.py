"""What a drafter's card says of its training: data, tokens, steps, context, thinking mode. Quoted, not understood."""

import re
from collections.abc import Mapping
from typing import Any

from outrider.checkpoint import Checkpoint

CARD = "README.md"
FIELDS = ("base_model", "datasets", "license", "pipeline_tag", "library_name", "tags", "language")
TELLING = re.compile(
    r"\b(train\w*|datasets?|regenerat\w*|epochs?|steps?|tokens?|samples?|thinking|context|sequence length|block)\b",
    re.IGNORECASE,
)
TABLE_OR_CODE = ("|", "```", "    ", "<", "![")
MOST_LINES, LONGEST = 12, 240


def training_notes(checkpoint: Checkpoint) -> list[str]:
    """Return what the card's header says, and the lines of its text that speak of training."""
    if checkpoint.source.kind == "gguf":
        return _general(checkpoint.metadata)
    path = checkpoint.source.path / CARD
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return []
    header, body = _split(text)
    return [*_fields(header), *_lines(body)]


def _general(metadata: Mapping[str, Any]) -> list[str]:
    """A GGUF file's own words about itself."""
    wanted = ("general.name", "general.description", "general.tags", "general.base_model.0.name", "general.datasets")
    return [f"{key}: {_short(metadata[key])}" for key in wanted if metadata.get(key)]


def _split(text: str) -> tuple[str, str]:
    match = re.match(r"---\s*\n(.*?)\n---\s*(?:\n|$)", text, re.DOTALL)
    return (match[1], text[match.end() :]) if match else ("", text)


def _fields(header: str) -> list[str]:
    """Return the fields that tell something, each with its value or the items of its list."""
    found = []
    for field in FIELDS:
        match = re.search(rf"^{field}:[ \t]*(.*(?:\n[ \t]*- .*)*)", header, re.MULTILINE)
        items = re.split(r"\n[ \t]*- ", match[1]) if match else []
        values = [item.strip(" \t'\"[]") for item in items]
        if any(values):
            found.append(f"{field}: {_short([value for value in values if value])}")
    return found


def _lines(body: str) -> list[str]:
    plain = [line for line in body.splitlines() if not line.startswith(TABLE_OR_CODE)]
    return [_short(line.replace("**", "").lstrip("#*- ")) for line in plain if TELLING.search(line)][:MOST_LINES]


def _short(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
