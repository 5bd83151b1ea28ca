"""From the words of a command line to a deployment: names that engines understand, a method, a draft length."""

from dataclasses import replace
from pathlib import Path
from typing import get_args

from outrider.adapters.methods import METHODS, Method
from outrider.adapters.start import Deployment, Draft
from outrider.adapters.start.deployment import WITHOUT_MODEL
from outrider.checkpoint import open_checkpoint, resolve
from outrider.checkpoint.known import KNOWN
from outrider.checkpoint.shipped import SHIPPED
from outrider.commands.engines.case import Case
from outrider.commands.engines.vllm import needs_second_runner
from outrider.commands.serve_gguf import gguf_of
from outrider.commands.serve_options import Drafted, Spread
from outrider.errors import CheckpointError, OutriderError, UnknownNameError, UsageError
from outrider.models.dflash.config import DFlashConfig

USUAL_LENGTH = {"mtp": 3, "eagle": 3, "eagle3": 3, "draft_model": 5, "ngram": 5}
HYBRID = ("qwen3_5", "qwen3_next")  # beginnings of model types with recurrent layers


def deployment_of(engine: str, model: str, drafted: Drafted, spread: Spread) -> Deployment:
    """Return what is to be started.

    Raises:
        UsageError: method, drafter and length contradict each other.
    """
    config, raw = _drafter(drafted.drafter)
    draft = _draft(engine, drafted, config)
    if engine == "llama.cpp" and draft is not None and draft.model is not None:
        draft = replace(draft, model=_as_gguf(draft.model, model))
    block = config is not None and draft is not None and draft.model is not None
    case = Case(config, raw, drafted.drafter or "") if block and config is not None else None
    return Deployment(
        target=_named(engine, model),
        draft=draft,
        parallel=spread.parallel(),
        quantisation=spread.quantisation,
        kv_dtype=spread.kv_dtype,
        max_len=spread.max_len,
        hybrid=_hybrid(model),
        second_runner=engine == "vllm" and case is not None and needs_second_runner(case),
        metrics=True,
        host=spread.host,
    )


def _drafter(name: str | None) -> tuple[DFlashConfig | None, dict[str, object]]:
    """Return the config of a block drafter; None for other kinds, and for what is not here."""
    from outrider.models.dflash.formats import examine

    if name is None:
        return None, {}
    try:
        found = examine(resolve(name))
    except OutriderError:
        return None, {}
    return found.config, dict(found.checkpoint.config or found.checkpoint.metadata)


def _draft(engine: str, drafted: Drafted, config: DFlashConfig | None) -> Draft | None:
    method = _method(drafted, config)
    if method is None:
        if drafted.length is not None:
            raise UsageError("--draft-length says how much a method drafts: give --method, or --drafter.")
        return None
    if method not in WITHOUT_MODEL and drafted.drafter is None:
        raise UsageError(f"--method {method} needs a draft model: give --drafter with a folder, a file or a hub name.")
    if method in WITHOUT_MODEL and drafted.drafter is not None:
        raise UsageError(f"--method {method} takes no draft model: leave out --drafter {drafted.drafter}.")
    length = drafted.length or (config.max_tokens if config is not None else USUAL_LENGTH.get(method))
    if length is None:
        raise UsageError(f"How many tokens {method} drafts is not known from the drafter's files: give --draft-length.")
    model = None if drafted.drafter is None else _named(engine, drafted.drafter)
    return Draft(method, model, length)


def _as_gguf(drafter: str, target: str) -> str:
    return drafter if drafter.lower().endswith(".gguf") else str(gguf_of(drafter, target) or drafter)


def _method(drafted: Drafted, config: DFlashConfig | None) -> Method | None:
    if drafted.method is not None:
        found = next((one for one in get_args(Method) if one == drafted.method), None)
        if found is None:
            raise UnknownNameError("method", drafted.method, METHODS)
        return found  # type: ignore[no-any-return]
    if drafted.drafter is None:
        return None
    if config is None:
        return "draft_model"
    return next(one for one in METHODS if one == config.kind)


def _named(engine: str, name: str) -> str:
    """Return a name that an engine understands: a path, or the hub's, where we have one of our own."""
    if name in SHIPPED:
        return str(resolve(name).path)
    if name in KNOWN:
        return str(resolve(name).path) if engine == "llama.cpp" else KNOWN[name].hub
    path = Path(name).expanduser()
    return str(path) if path.exists() else name


def _hybrid(model: str) -> bool:
    if not Path(model).expanduser().exists():
        return False
    try:
        config = open_checkpoint(resolve(model), weights=False).config
    except CheckpointError:
        return False
    return str(config.get("model_type", "")).startswith(HYBRID)
