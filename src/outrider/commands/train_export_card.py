"""The card of an exported drafter: the run's log and its verdict, and what each engine needs to run these files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from outrider.checkpoint import Checkpoint, resolve
from outrider.checkpoint.known import KNOWN
from outrider.train.card import UNKNOWN, Card, Engine, write_card

if TYPE_CHECKING:
    from outrider.commands.engines import EngineAdvice
    from outrider.train.run_folder import Trained


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """An export that a card is for.

    Attributes:
        path: what a reader opens: a folder, or a file.
        target: as the run or the user names it; empty where neither does.
        checkpoint: the target's headers, if they are here.
        license: that the user gave.
    """

    trained: "Trained"
    path: Path
    format: str
    dtype: str
    target: str
    checkpoint: Checkpoint | None
    license: str | None


def card_text(written: Written) -> str:
    """Return the text of README.md."""
    from outrider.train.report.read import read_run
    from outrider.train.report.result import make_report
    from outrider.train.report.verdict import judge

    trained = written.trained
    run = read_run([trained.log])
    return write_card(
        Card(
            base_model=public_name(written.target) or UNKNOWN,
            license=written.license or _license(written.checkpoint),
            format=written.format,
            dtype=written.dtype,
            step=trained.step,
            config=trained.config,
            header=trained.header,
            report=make_report(run, judge(run)),
            engines=[_own_engine(written), *map(_engine, _advice(written))],
        )
    )


def public_name(name: str) -> str:
    """Return the name that others know the target by."""
    known = KNOWN.get(name)
    return known.hub if known is not None else name


def own_command(path: str, target: str) -> str:
    """Return the command that tries the drafter here."""
    return f"outrider compare {target or 'TARGET'} --drafter dflash,ddtree --draft-model {path}"


def _license(target: Checkpoint | None) -> str:
    """Return the target's licence, where its file tells it."""
    stated = None if target is None else target.metadata.get("general.license")
    return stated if isinstance(stated, str) else UNKNOWN


def _advice(written: Written) -> "Sequence[EngineAdvice]":
    from outrider.commands.drafter_facts import drafter_facts, named_target
    from outrider.models.dflash.formats import examine

    target = written.checkpoint
    named = None if target is None else named_target(written.target, target.config)
    return drafter_facts(written.path.name, examine(resolve(str(written.path))), target=named).engines


def _own_engine(written: Written) -> Engine:
    remark = "ddtree checks a tree of the drafter's guesses; texts are equal with either."
    return Engine("Outrider", own_command(written.path.name, written.target), (remark,))


def _engine(advice: "EngineAdvice") -> Engine:
    remarks = (
        *(f"Needs: {line}" for line in advice.needs),
        *(f"Differs from training: {line}" for line in advice.differs),
        *(f"Not known: {line}" for line in advice.unknown),
    )
    return Engine(advice.engine, advice.command, remarks)
