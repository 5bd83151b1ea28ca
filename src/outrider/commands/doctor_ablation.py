"""Runs a pair healthy and with each fault, and brings what that says into the verdict."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from outrider.checkpoint import resolve
from outrider.commands.compare import encode
from outrider.commands.demo import demo_rows
from outrider.commands.opening import open_runner
from outrider.commands.options import Drafting
from outrider.commands.prompts_file import read_rows
from outrider.commands.screen import stderr, stdout, waiting
from outrider.reports.words import Curve

if TYPE_CHECKING:
    from outrider.commands.doctor import Request
    from outrider.doctor.ablation.table import AblationTable
    from outrider.doctor.evidence import Evidence
    from outrider.doctor.verdict import Verdict

MAX_TOKENS = 128


def ablated(request: "Request", evidence: "Evidence", verdict: "Verdict") -> tuple["Verdict", Sequence[Curve]]:
    """Run the pair; return the verdict with what it says, and the curves to show beside the observed one.

    Raises:
        OutriderError: the models cannot be loaded, do not fit, or are no pair that can be run here.
    """
    from outrider.commands.doctor_ablation_print import print_table
    from outrider.doctor.ablation_verdict import merged

    table = _table(request)
    if not request.written.as_json:
        print_table(stdout(), table)
    found, best = merged(evidence, verdict, table)
    curves = [Curve("the pair here", table.healthy.curve, table.healthy.rounds)]
    curves += [Curve(f"with {entry.fault.label}", entry.counts.curve) for entry in best]
    return found, curves


def _table(request: "Request") -> "AblationTable":
    from outrider.models.dflash.formats import read_drafter

    known = request.known
    assert known.drafter is not None  # noqa: S101 -- checked by the command
    assert known.target is not None  # noqa: S101 -- likewise
    rows = demo_rows() if known.prompts is None else read_rows(known.prompts)
    with waiting(stderr()) as telling:
        drafter = read_drafter(resolve(known.drafter, report=telling.say))
    runner = open_runner(known.target, drafter="none", drafting=Drafting(), loading=request.loading)
    prompts = encode(runner, [row.prompt for row in rows], chat=None)
    from outrider.doctor.ablation.run import ablate, pair_of

    with waiting(stderr()) as telling:
        return ablate(
            pair_of(runner.target, drafter),
            prompts,
            max_tokens=MAX_TOKENS,
            stop_ids=runner.tokenizer.stop_ids,
            told=telling.spin,
        )
