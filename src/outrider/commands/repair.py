"""``outrider repair``: finds the config of a drafter by experiment, where it has none or one not to be believed."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outrider.commands.compare import encode
from outrider.commands.demo import demo_rows
from outrider.commands.opening import open_runner
from outrider.commands.options import Drafting, Loading
from outrider.commands.prompts_file import read_rows
from outrider.commands.screen import stderr, stdout, waiting
from outrider.errors import UsageError

if TYPE_CHECKING:
    from outrider.repair.evidence import Repair
    from outrider.repair.opening import Unsure
    from outrider.repair.run import Repaired
    from outrider.replay import Recording
    from outrider.runner import Runner

NOTHING_WORKS = 1
NAME = "config.repaired.json"
KEY = "outrider_repair"  # of the config that is written: which keys were measured, and which were not
WORKS = 1.2  # acceptance length below which a pair is called broken: published drafters reach 3 and more


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the command line asked for."""

    drafter: str
    target: str
    file: Path | None
    max_tokens: int
    mask_tokens: Sequence[int]
    windows: Sequence[int]
    out: Path | None
    loading: Loading
    as_json: bool


def run(request: Request) -> int:
    """Run the command; return its exit code: 1 when no reading of the tensors makes the pair work."""
    from outrider.repair.opening import open_unsure

    with waiting(stderr()) as telling:
        drafter = open_unsure(request.drafter, report=telling.say)
    out = _place(request, drafter)
    runner = open_runner(request.target, drafter="none", drafting=Drafting(), loading=request.loading)
    recording = _record(request, runner)
    with waiting(stderr()) as telling:
        from outrider.repair.run import repair

        found = repair(
            drafter,
            runner.target,
            runner.tokenizer,
            recording,
            tokens=request.mask_tokens,
            windows=request.windows,
            told=telling.spin,
        )
    result = _result(request, recording, found)
    if result.works:
        _write(out, result.config)
    _print(request, result, out)
    return 0 if result.works else NOTHING_WORKS


def _place(request: Request, drafter: "Unsure") -> Path:
    """Return where the config will be written; what is not ours is overwritten only where it is named."""
    if request.out is not None:
        if not request.out.parent.is_dir():
            raise UsageError(f"--out {request.out}: there is no folder {request.out.parent}.")
        return request.out
    is_local = drafter.checkpoint.source.origin == f"folder {drafter.folder}"
    out = (drafter.folder if is_local else Path.cwd()) / NAME
    if out.exists() and f'"{KEY}"' not in out.read_text(encoding="utf-8", errors="replace"):
        raise UsageError(f"{out} exists and was not written by outrider repair; name it with --out to overwrite it.")
    return out


def _record(request: Request, runner: "Runner") -> "Recording":
    """Let the target write the texts on which readings are compared."""
    from outrider.replay import record

    rows = demo_rows() if request.file is None else read_rows(request.file)
    prompts = encode(runner, [row.prompt for row in rows], chat=None)
    with waiting(stderr()) as telling:
        telling.spin("The target writes")
        return record(
            runner.target,
            prompts,
            max_tokens=request.max_tokens,
            stop_ids=runner.tokenizer.stop_ids,
            report=telling.say,
        )


def _result(request: Request, recording: "Recording", found: "Repaired") -> "Repair":
    from outrider.models.dflash.formats.writing import zlab_config
    from outrider.provenance import provenance
    from outrider.repair.evidence import Repair

    length = found.acceptance.intervals().length
    assert length is not None  # noqa: S101 -- a recording without anchors is refused
    evidence = {
        "acceptance_length": round(length.value, 3),
        **{
            origin: [row.key for row in found.rows if row.origin == origin]
            for origin in ("measured", "given", "undetermined")
        },
    }
    return Repair(
        drafter=request.drafter,
        target=request.target,
        works=length.value >= WORKS,
        rows=found.rows,
        acceptance_length=length.value,
        acceptance_low=length.low,
        acceptance_high=length.high,
        position_rates=list(found.acceptance.position_rates),
        texts=len(recording.texts),
        tokens=sum(len(text.tokens_T) - 1 - text.first for text in recording.texts),
        anchors=found.judge.num_anchors,
        readings=found.judge.num_readings,
        blocks=found.judge.num_blocks,
        seconds=found.seconds,
        config=zlab_config(found.config) | {KEY: evidence},
        notes=list(found.notes),
        provenance=provenance(),
    )


def _write(out: Path, config: dict[str, Any]) -> None:
    try:
        out.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"Cannot write {out}: {error.strerror or error}; name another place with --out.") from error


def _print(request: Request, result: "Repair", out: Path) -> None:
    from outrider.commands.repair_print import print_repair

    if request.as_json:
        sys.stdout.write(result.model_dump_json(indent=1) + "\n")
    else:
        print_repair(stdout(), result, out)
