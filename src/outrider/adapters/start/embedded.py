"""The engine of this package: what it drafts with. It answers no requests over a network yet."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from outrider.adapters.start.deployment import DRAFTER, Command, Deployment, Draft, flags
from outrider.adapters.start.offers import Offer
from outrider.errors import UsageError

_FROM_WEIGHTS = ("dflash", "dflash2", "dspark", "ddtree")


class EmbeddedStarter:
    """Outrider itself."""

    title: ClassVar[str] = "Outrider"
    checked: ClassVar[tuple[str, str]] = ("0", "0")
    offers: ClassVar[tuple[Offer, ...]] = (
        Offer("mtp", "mtp", limits="the heads that come with a Qwen3.5 target"),
        Offer("dflash", "dflash"),
        Offer("dflash2", "dflash"),
        Offer("dspark", "dflash"),
        Offer("ddtree", "ddtree"),
        Offer("ngram", "ngram"),
    )
    serves: ClassVar[bool] = False
    health: ClassVar[str] = "/health"
    usual_port: ClassVar[int] = 8000
    packages: ClassVar[tuple[str, ...]] = ("outrider",)

    def program(self, python: Path | None) -> Sequence[str]:
        """This package's own command line."""
        return ("outrider",) if python is None else (str(python), "-m", "outrider")

    def speculation(self, draft: Draft) -> tuple[str, ...] | None:
        """``--drafter`` and its model."""
        offer = next((one for one in self.offers if one.method == draft.method), None)
        if offer is None:
            return None
        model = (draft.model or DRAFTER) if draft.method in _FROM_WEIGHTS else None
        return flags(drafter=offer.spelled, draft_model=model)

    def command(self, deployment: Deployment, *, python: Path | None = None) -> Command:
        """``outrider generate TARGET``: one process, one device."""
        if deployment.parallel.devices > 1:
            raise UsageError("The embedded engine runs on one device; several need vLLM, SGLang or llama.cpp.")
        draft = deployment.draft
        speculation = () if draft is None else self.speculation(draft) or ()
        return Command(words=(*self.program(python), "generate", deployment.target, *speculation, *deployment.more))
