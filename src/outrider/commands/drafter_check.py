"""What can be said against drafters, draft model and their options before anything is loaded. Needs no torch."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from outrider.checkpoint import resolve
from outrider.checkpoint.known import KNOWN
from outrider.checkpoint.shipped import SHIPPED, shipped_for
from outrider.commands.options import Drafting
from outrider.errors import CheckpointError, UnknownNameError, UsageError
from outrider.registry import DRAFTERS

NEED_WEIGHTS = ("dflash", "ddtree")
_OF_WEIGHTS = ("draft_model", "draft_tokens", "budget", "spine", "allow")
# Options that a drafter would pass over. Of a drafter that is not listed nothing is refused.
UNUSED: dict[str, tuple[str, ...]] = {
    "none": _OF_WEIGHTS,
    "ngram": _OF_WEIGHTS,
    "mtp": ("draft_model", "allow"),
    "dflash": ("budget", "spine"),
}


def check_drafters(names: Sequence[str], drafting: Drafting, model: str) -> Drafting:
    """Return how a run drafts, if its drafters and their options go together.

    Where no draft model is named and the drafters need one, it is the one that is shipped for the model.

    Raises:
        UsageError: an unknown name, an option that none of them uses, or a draft model that is missing.
    """
    for name in names:
        if name not in DRAFTERS:
            raise UnknownNameError("drafter", name, DRAFTERS)
    drafting.options()
    _check_used(names, drafting)
    if drafting.draft_model is not None:
        check_draft_model(drafting.draft_model)
        return drafting
    needing = [name for name in names if name in NEED_WEIGHTS]
    if not needing:
        return drafting
    shipped = shipped_for(model)
    if shipped is None:
        raise UsageError(
            f"Drafter {needing[0]!r} needs a draft model: give --draft-model with a folder, a GGUF file or a hub name."
        )
    return replace(drafting, draft_model=shipped)


def _check_used(names: Sequence[str], drafting: Drafting) -> None:
    """Refuse what would be passed over in silence, so that nobody takes a run for what it is not."""
    usual = vars(Drafting())
    for option, value in vars(drafting).items():
        if value == usual[option] or any(option not in UNUSED.get(name, ()) for name in names):
            continue
        users = [name for name in DRAFTERS if option not in UNUSED.get(name, ())]
        raise UsageError(
            f"--{option.replace('_', '-')} means nothing to --drafter {','.join(names)}: drop it, or choose "
            f"{' or '.join(users)}."
        )


def check_draft_model(name: str) -> None:
    """Refuse the name of a draft model that cannot be one, where the place says so.

    Raises:
        UsageError: neither a path nor a name of the hub, or a folder of weights without a config.
    """
    path = Path(name).expanduser()
    if not path.exists() and "/" not in name and name not in {*KNOWN, *SHIPPED}:
        raise UsageError(
            f"Draft model {name!r}: expected a folder, a GGUF file, or owner/name on the hub; there is no such path."
        )
    if path.is_dir() and not (path / "config.json").exists() and any(path.glob("*.safetensors")):
        raise UsageError(
            f"{path} has weights and no config.json. Fetch it, or let outrider repair {path} --target MODEL find one."
        )


def refuse_drafter(name: str) -> None:
    """Refuse a drafter on this machine that was named where a target belongs.

    Raises:
        UsageError: says where it belongs.
    """
    from outrider.models.dflash.formats import examine

    if not Path(name).expanduser().exists():
        return
    try:
        examine(resolve(name))
    except CheckpointError:  # whatever it is, it is no drafter
        return
    raise UsageError(
        f"{name} is a drafter, and a target was expected: name the model that it drafts for. "
        "Drafters are given with --draft-model, or first to outrider inspect."
    )
