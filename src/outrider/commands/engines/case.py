"""A drafter and what it is run with, and what is said of an engine that runs it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from outrider.adapters.start import STARTERS, Deployment, Draft
from outrider.adapters.start.deployment import TARGET
from outrider.models.dflash.config import DFlashConfig
from outrider.models.dflash.formats.speculators import INNER
from outrider.models.dflash.formats.zlab import NESTED
from outrider.results import Record


class EngineAdvice(Record):
    """One engine: ``outrider inspect --json``.

    Attributes:
        as_trained: whether the command runs the drafter as it was trained; null where that is not known.
        command: to type; empty where the engine cannot run it.
        needs: versions and settings without which it does not.
        differs: what the engine does otherwise than training did.
        unknown: what could not be found out.
    """

    engine: str
    as_trained: bool | None
    command: str
    needs: list[str]
    differs: list[str]
    unknown: list[str]


@dataclass(frozen=True, slots=True)
class Case:
    """A drafter, and what it is run with.

    Attributes:
        config: what it is.
        raw: its config.json, or the metadata of a GGUF file.
        drafter: as it was named.
        target: as it was named, or a placeholder.
        target_kind: the target's ``model_type``, if known.
        doubtful: whether how it was trained is in doubt.
    """

    config: DFlashConfig
    raw: Mapping[str, Any]
    drafter: str
    target: str = TARGET
    target_kind: str | None = None
    doubtful: bool = False

    @property
    def scaled(self) -> bool:
        """Whether embeddings or logits are scaled or capped."""
        config = self.config
        return config.embedding_scale != 1 or config.output_multiplier != 1 or config.soft_cap is not None

    @property
    def sliding(self) -> int:
        """Layers with a window."""
        return sum(mask.window is not None for mask in self.config.layers)

    @property
    def mixed(self) -> bool:
        """Whether some layers slide and some do not."""
        return 0 < self.sliding < self.config.num_layers

    @property
    def causalities(self) -> set[bool]:
        """Of the layers in the block."""
        return {mask.causal for mask in self.config.layers}

    @property
    def sorted_taps(self) -> bool:
        """Whether taps rise, as engines that sort them assume."""
        return list(self.config.taps) == sorted(set(self.config.taps))

    def command(self, engine: str, **more: Any) -> str:
        """Return what starts it on an engine; ``more`` are members of a deployment."""
        draft = Draft("dspark" if self.config.kind == "dspark" else "dflash", self.drafter, self.config.max_tokens)
        deployment = replace(Deployment(target=self.target, draft=draft), **more)
        return STARTERS[engine].command(deployment).text

    def at_top(self, key: str) -> bool:
        """Whether a key stands at the top of config.json and not in ``dflash_config``."""
        return self.raw.get(key) is not None and self.nested(key) is None

    def nested(self, key: str, place: str = NESTED) -> Any:
        """Return a key of an object in the config."""
        inner = self.raw.get(place)
        return inner.get(key) if isinstance(inner, dict) else None

    def said(self, key: str) -> Any:
        """Return a key, wherever it stands."""
        inner = [self.nested(key, place) for place in (NESTED, INNER, "rope_parameters", "rope_scaling")]
        return next((value for value in (self.raw.get(key), *inner) if value is not None), None)


@dataclass(slots=True)
class Told:
    """What is said of one engine (see ``EngineAdvice``)."""

    command: str
    needs: list[str]
    differs: list[str]
    unknown: list[str]


def chosen(*lines: tuple[bool, str]) -> list[str]:
    """Return the lines that apply."""
    return [line for applies, line in lines if applies]


def last_tap(case: Case) -> list[str]:
    """Say that a tap on the last block has two readings."""
    depth = case.config.num_target_layers
    last = depth is not None and depth - 1 in case.config.taps
    return chosen((last, "Whether the last block's tap was trained before or after the final norm; here it is before."))
