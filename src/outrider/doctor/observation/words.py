"""What people, errors and logs say, searched by pattern; a denied word ("no error") does not count."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from outrider.doctor.evidence import Evidence

_DENIED = re.compile(r"\b(no|not|never|without|nor|neither|isn't|doesn't|nothing)\b[^.;:,]{0,18}$")


@dataclass(frozen=True)
class Words:
    """Texts in lower case by place: error, log, notes, training, names, traffic, series, expected, settings."""

    texts: Mapping[str, str]

    @classmethod
    def of(cls, evidence: Evidence) -> Self:
        """Collect them."""
        settings = {**evidence.engine.settings, **evidence.speculation.settings, **evidence.traffic.sampling}
        version = evidence.engine.version
        texts = {
            "error": evidence.error, "log": evidence.log, "notes": evidence.notes,
            "training": evidence.drafter.training,
            "names": _joined((own_name(evidence.target.name), own_name(evidence.drafter.name), version)),
            "traffic": evidence.traffic.workload, "expected": evidence.expected.source,
            "series": _joined(f"{key} {value}" for m in evidence.series for key, value in m.when.items()),
            "settings": _joined((*(f"{k}={v}" for k, v in settings.items()), evidence.engine.command)),
        }  # fmt: skip
        return cls({where: " ".join(text.lower().split()) for where, text in texts.items() if text})

    def find(self, pattern: str, where: Iterable[str] = (), *, deniable: bool = True) -> str | None:
        """Where the pattern stands, or None; ``where`` empty searches error, log, notes and traffic."""
        places = tuple(where) or ("error", "log", "notes", "traffic")
        for place in places:
            text = self.texts.get(place, "")
            for match in re.finditer(pattern, text):
                if not (deniable and _DENIED.search(text[: match.start()])):
                    return place
        return None

    def has(self, pattern: str, *where: str) -> bool:
        """The pattern stands somewhere, and is not denied."""
        return self.find(pattern, where) is not None


def own_name(name: str | None) -> str | None:
    """A model's name; of a folder its last part: where somebody keeps it says nothing of it."""
    local = name is not None and name.startswith(("/", "./", "../", "~"))
    return name.rstrip("/").rsplit("/", 1)[-1] if name is not None and local else name


def _joined(parts: Iterable[str | None]) -> str:
    return ", ".join(part for part in parts if part)
