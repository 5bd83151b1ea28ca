"""The vocabulary of each cause, from ``words.toml``."""

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict

from outrider.doctor.observation import Observation
from outrider.doctor.rules.signal import Signal


class Saying(BaseModel):
    """A pattern, where it counts, and what it is worth."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    says: str
    pattern: str
    weight: float
    where: tuple[str, ...] = ()
    deniable: bool = True


@cache
def vocabulary() -> Mapping[str, tuple[Saying, ...]]:
    """Sayings by cause."""
    text = files(__package__).joinpath("words.toml").read_text("utf-8")
    return {cause: tuple(Saying(**word) for word in part["words"]) for cause, part in tomllib.loads(text).items()}


def said(cause: str, o: Observation) -> Iterator[Signal]:
    """What is said that speaks for a cause; an error says more than a remark."""
    for saying in vocabulary()[cause]:
        place = o.words.find(saying.pattern, saying.where, deniable=saying.deniable)
        if place is not None:
            yield Signal(f"{saying.says} ({place})", saying.weight, "error" if place == "error" else "words")
