"""Runs a pair healthy and with each fault, and brings what that says into the verdict."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from outrider.checkpoint import resolve
from outrider.commands.compare import encode
from outrider.commands.demo import demo_rows
from outrider.commands.opening import open_runner
from outrider.commands.options import Drafting
from outrider.commands.prompts_file import read_rows
from outrider.commands.screen import stderr, stdout, waiting
from outrider.errors import CheckpointError, UsageError
from outrider.reports.words import Curve

if TYPE_CHECKING:
    from outrider.commands.doctor import Request
    from outrider.doctor.ablation.inject import Pair
    from outrider.doctor.ablation.table import AblationTable, Entry
    from outrider.doctor.evidence import Evidence
    from outrider.doctor.verdict import Verdict
    from outrider.models.dflash.formats import DraftCheckpoint
    from outrider.replay import Recording
    from outrider.runner import Runner

MAX_TOKENS = 128


def ablated(request: "Request", evidence: "Evidence", verdict: "Verdict") -> tuple["Verdict", Sequence[Curve]]:
    """Run the pair; return the verdict with what it says, and the curves to show beside the observed one.

    Raises:
        OutriderError: the models cannot be loaded, do not fit, or are no pair that can be run here.
    """
    from outrider.commands.doctor_ablation_print import print_table
    from outrider.doctor.ablation_verdict import merged

    table, more, missing = _run(request)
    if not request.written.as_json:
        print_table(stdout(), table, missing)
    found, best = merged(evidence, verdict, table, more)
    curves = [Curve("the pair here", table.healthy.curve, table.healthy.rounds)]
    curves += [Curve(f"with {entry.fault.label}", entry.counts.curve) for entry in best]
    return found, curves


def _run(request: "Request") -> tuple["AblationTable", "Sequence[Entry] | None", Sequence[str]]:
    """Measure the pair with each fault; where it hardly drafts and no fault mends it, search another reading.

    Returns:
        The table, other readings, and which faults could not be tried.
    """
    from outrider.doctor.ablation.gains import HARDLY, gains
    from outrider.doctor.ablation.other_texts import Asked, with_other_texts
    from outrider.doctor.ablation.retold import retold
    from outrider.doctor.ablation.run import ablate_recorded, pair_of
    from outrider.replay import record

    known = request.known
    assert known.target is not None  # noqa: S101 -- checked by the command
    rows = demo_rows() if known.prompts is None else read_rows(known.prompts)
    texts = [row.prompt for row in rows]
    drafter = _drafter(request)
    runner = open_runner(known.target, drafter="none", drafting=Drafting(), loading=request.loading)
    prompts = encode(runner, texts, chat=None)
    tellings, missing = retold(runner.tokenizer, texts, prompts)
    asked = Asked(prompts=prompts, max_tokens=MAX_TOKENS, stop_ids=runner.tokenizer.stop_ids)
    with waiting(stderr()) as telling:
        pair = pair_of(runner.target, drafter)
        telling.spin("The target writes")
        recording = record(pair.target, prompts, max_tokens=MAX_TOKENS, stop_ids=asked.stop_ids, report=telling.spin)
        table = ablate_recorded(pair, recording, told=telling.spin)
        table = with_other_texts(table, pair, asked, tellings, told=telling.spin)
        if table.healthy.length >= HARDLY or gains(table):
            return table, None, missing
        return table, _reread(request, pair, runner, recording, telling.spin), missing


def _drafter(request: "Request") -> "DraftCheckpoint":
    """Open the drafter; what is wrong with its config and leaves it readable is for the doctor to judge."""
    from outrider.models.dflash.formats import examine, read_drafter

    assert request.known.drafter is not None  # noqa: S101 -- checked by the command
    with waiting(stderr()) as telling:
        source = resolve(request.known.drafter, report=telling.say)
    return read_drafter(source, allow=[one.key for one in examine(source).problems if not one.fatal])


def _reread(
    request: "Request", pair: "Pair", runner: "Runner", recording: "Recording", told: Callable[[str], None]
) -> "Sequence[Entry] | None":
    """Search another reading of the drafter's files; None where it is of a kind that cannot be searched."""
    from outrider.doctor.ablation.reread import reread
    from outrider.repair.opening import open_unsure

    assert request.known.drafter is not None  # noqa: S101 -- checked by the command
    try:
        unsure = open_unsure(request.known.drafter, report=told)
        return reread(unsure, pair, runner.tokenizer, recording, told=told)
    except (UsageError, CheckpointError):
        return None
