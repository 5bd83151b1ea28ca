"""Prompts from a JSONL file (``turns`` or ``prompt``, and a ``category``) to tokens.

The first turn is rendered with the model's chat template, as a user would send it; a model without
a template gets the text as it is.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from outrider.bench.run import Prompt, Workload
from outrider.checkpoint import Source, open_checkpoint
from outrider.errors import UsageError
from outrider.text.chat import render_chat
from outrider.text.tokenizer import Tokenizer, load_tokenizer


def read_workload(path: Path, source: Source, *, max_tokens: int, per_category: int) -> Workload:
    """Take the first ``per_category`` prompts of each category."""
    tokenizer = load_tokenizer(open_checkpoint(source))
    taken: Counter[str] = Counter()
    prompts = []
    for row in _rows(path):
        category = str(row.get("category", "all prompts"))
        taken[category] += 1
        if taken[category] <= per_category:
            prompts.append(Prompt(tuple(_tokens(row, tokenizer)), category))
    return Workload(tuple(prompts), max_tokens)


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines if line.strip()]
    except (OSError, ValueError) as error:
        raise UsageError(f"Cannot read prompts from {path}, one JSON object a line: {error}.") from error
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict) or not (row.get("turns") or row.get("prompt")):
            raise UsageError(f"Row {number} of {path} needs a 'prompt' or a list of 'turns'.")
    return rows


def _tokens(row: dict[str, Any], tokenizer: Tokenizer) -> list[int]:
    text = row["prompt"] if "prompt" in row else row["turns"][0]
    if tokenizer.chat_template is None:
        return tokenizer.encode(text, add_special=True)
    chat = render_chat(
        tokenizer.chat_template,
        [{"role": "user", "content": text}],
        bos_token=tokenizer.bos_token,
        eos_token=tokenizer.eos_token,
    )
    return tokenizer.encode(chat, add_special=False)
