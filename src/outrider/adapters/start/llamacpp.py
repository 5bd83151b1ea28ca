"""Starts llama.cpp's server: options of b11434. Without a ``llama-server`` an environment's xllamacpp runs the same."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from outrider.adapters.start.deployment import DRAFTER, WITHOUT_MODEL, Command, Deployment, Draft, Parallel, flags
from outrider.adapters.start.offers import Offer
from outrider.adapters.start.starter import beside
from outrider.errors import UsageError

RPC_PORT = 50052  # of rpc-server
THROUGH_PYTHON = Path(__file__).with_name("through_xllamacpp.py")
NO_FILE = f"{DRAFTER}.gguf"


class LlamaCppStarter:
    """llama.cpp."""

    title: ClassVar[str] = "llama.cpp"
    checked: ClassVar[tuple[str, str]] = ("b11434", "b11549")
    offers: ClassVar[tuple[Offer, ...]] = (
        Offer("mtp", "draft-mtp"),
        Offer("eagle3", "draft-eagle3"),
        Offer("draft_model", "draft-simple"),
        Offer("ngram", "ngram-simple"),
        Offer("dflash", "draft-dflash"),
        Offer("dflash2", "draft-dflash"),
        Offer("dspark", "draft-dspark"),
    )
    serves: ClassVar[bool] = True
    health: ClassVar[str] = "/health"
    usual_port: ClassVar[int] = 8080
    packages: ClassVar[tuple[str, ...]] = ("xllamacpp",)

    def program(self, python: Path | None) -> Sequence[str]:
        """``llama-server``, or our script in an environment that has xllamacpp."""
        if python is None:
            return ("llama-server",)
        script = beside(python, "llama-server")
        return (str(script),) if script else (str(python), str(THROUGH_PYTHON))

    def speculation(self, draft: Draft) -> tuple[str, ...] | None:
        """``--spec-type`` with the draft as a GGUF file."""
        offer = next((one for one in self.offers if one.method == draft.method), None)
        if offer is None:
            return None
        model = () if draft.method in WITHOUT_MODEL else ("-md", _gguf(draft.model))
        return (*model, "--spec-type", offer.spelled, "--spec-draft-n-max", str(draft.tokens))

    def command(self, deployment: Deployment, *, python: Path | None = None) -> Command:
        """``llama-server -m TARGET.gguf ...``; other hosts run ``rpc-server``."""
        if deployment.quantisation:
            raise UsageError("llama.cpp's quantisation is that of the GGUF file: name a file that is stored so.")
        draft, cache = deployment.draft, deployment.kv_dtype
        where, elsewhere = _spread(deployment.parallel)
        words = (
            *self.program(python),
            "-m",
            deployment.target,
            *(() if draft is None else self.speculation(draft) or ()),
            *where,
            *(("-ctk", cache, "-ctv", cache) if cache else ()),
            *flags(ctx_size=deployment.max_len, host=deployment.host, port=deployment.port),
            *(("--metrics",) if deployment.metrics else ()),
            *deployment.more,
        )
        return Command(words=words, elsewhere=elsewhere)


def _gguf(model: str | None) -> str:
    return model if model and model.lower().endswith(".gguf") else NO_FILE


def _spread(parallel: Parallel) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Return the flags that spread a model, and what other hosts run."""
    if parallel.data > 1:
        raise UsageError("One llama.cpp server is one copy of the model: start one for each, on ports of their own.")
    if parallel.tensor > 1 and parallel.pipeline > 1:
        raise UsageError("llama.cpp splits by rows or by layers, not both: give --tensor or --pipeline.")
    mode = "row" if parallel.tensor > 1 else "layer" if parallel.pipeline > 1 else None
    split = () if mode is None else ("--split-mode", mode, "--tensor-split", ",".join(["1"] * parallel.devices))
    others = parallel.hosts[1:]
    if not others:
        return split, {}
    if parallel.rank:
        raise UsageError(f"llama.cpp's server runs on the first host; here: rpc-server -H 0.0.0.0 -p {RPC_PORT}")
    there = (f"rpc-server -H 0.0.0.0 -p {RPC_PORT}",)
    return (*split, "--rpc", ",".join(f"{host}:{RPC_PORT}" for host in others)), dict.fromkeys(others, there)
