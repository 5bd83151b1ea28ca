"""Which version of an engine offers which method, and what to use where it does not."""

from collections.abc import Sequence
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from outrider.adapters.methods import Method

SHORT_OF: dict[Method, tuple[Method, ...]] = {
    "dflash2": ("dflash", "mtp", "eagle3", "ngram"),
    "ddtree": ("dflash", "mtp", "eagle3", "ngram"),
}
"""What comes nearest to a method, the nearest first; for those that are not here see ``USUAL``."""
USUAL: tuple[Method, ...] = ("mtp", "eagle3", "draft_model", "ngram")


@dataclass(frozen=True, slots=True)
class Offer:
    """One method of an engine.

    Attributes:
        method: by the evidence file's name.
        spelled: by the engine's.
        since: first version that has it; None for all that were looked at.
        limits: where it runs and where not, in a few words.
    """

    method: Method
    spelled: str
    since: str | None = None
    limits: str = ""


def offered(offers: Sequence[Offer], method: Method, version: str | None) -> Offer | None:
    """Return the offer; None where that version does not have it. A version that cannot be read may have all."""
    offer = next((one for one in offers if one.method == method), None)
    if offer is None or offer.since is None or not _before(version, offer.since):
        return offer
    return None


def meanwhile(offers: Sequence[Offer], method: Method, version: str | None) -> list[Offer]:
    """Return what that version offers in place of a method, the nearest first."""
    wanted = [name for name in SHORT_OF.get(method, USUAL) if name != method]
    return [offer for name in wanted if (offer := offered(offers, name, version)) is not None]


def told_missing(title: str, offers: Sequence[Offer], method: Method, version: str | None) -> str:
    """Return what is said where a method is not offered: which version has it, and what to use until then."""
    offer = next((one for one in offers if one.method == method), None)
    here = f"{title} {version}" if version else title
    has = (
        f"{here} does not offer {method}; no version that was looked at does."
        if offer is None
        else f"{here} does not offer {method}; {offer.since} and later do."
    )
    other = meanwhile(offers, method, version)
    use = f" Until then: --method {' or '.join(one.method for one in other)}." if other else ""
    return f"{has}{use}"


def _before(version: str | None, since: str) -> bool:
    try:
        return version is not None and Version(version.lstrip("vb")) < Version(since.lstrip("vb"))
    except InvalidVersion:
        return False
