"""What is asked: prompts by kind, how they arrive, and in which form they are sent."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import accumulate
from typing import Any

from outrider.errors import UnknownNameError, UsageError


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt, and what kind of text it is."""

    text: str
    category: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One workload, the same for every arm.

    Attributes:
        prompts: in the order in which they are asked.
        max_tokens: of an answer.
        temperature: 0 for greedy.
        seed: of arrivals and of sampling.
        rate: requests a second that arrive at random; None for a closed loop, in which the next follows an answer.
        chat: prompts are turns of a conversation, and get the model's template.
    """

    prompts: tuple[Prompt, ...]
    max_tokens: int
    temperature: float = 0.0
    seed: int = 0
    rate: float | None = None
    chat: bool = True

    @property
    def address(self) -> str:
        """Where a request goes."""
        return "/v1/chat/completions" if self.chat else "/v1/completions"

    def arrivals(self) -> list[float]:
        """Seconds at which requests arrive in an open loop: a Poisson process."""
        law = random.Random(self.seed)  # noqa: S311 -- arrivals are no secret
        return list(accumulate(law.expovariate(self.rate or 1.0) for _ in self.prompts))

    def body(self, prompt: Prompt, model: str) -> dict[str, Any]:
        """Return a request, streamed, with the counts of its tokens at its end."""
        asked = {"messages": [{"role": "user", "content": prompt.text}]} if self.chat else {"prompt": prompt.text}
        settings = {"max_tokens": self.max_tokens, "temperature": self.temperature, "seed": self.seed}
        # llama.cpp keeps a prompt's state unless it is told not to; the others pass over the key.
        return asked | settings | {
            "model": model, "stream": True, "stream_options": {"include_usage": True}, "cache_prompt": False,
        }  # fmt: skip


def own_prompts() -> str:
    """Return the built-in prompts, as JSON lines: twenty of each of eight kinds."""
    return files("outrider.traffic").joinpath("prompts/own.jsonl").read_text("utf-8")


def chosen(prompts: Sequence[Prompt], wanted: Sequence[str], each: int | None, seed: int) -> tuple[Prompt, ...]:
    """Return so many prompts of each kind, mixed.

    Raises:
        UsageError: a kind that there is not.
    """
    there = list(dict.fromkeys(one.category for one in prompts))
    for kind in wanted:
        if kind not in there:
            raise UnknownNameError("kind of prompts", kind, [one for one in there if one])
    picked = [one for kind in wanted or there for one in [p for p in prompts if p.category == kind][:each]]
    if not picked:
        raise UsageError("There are no prompts to ask.")
    random.Random(seed).shuffle(picked)  # noqa: S311 -- an order is no secret
    return tuple(picked)
