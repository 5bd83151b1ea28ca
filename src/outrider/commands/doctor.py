"""``outrider doctor``: what is known of a deployment in, a verdict out. No torch, but where a pair is run."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from outrider.commands.doctor_options import Known, Written
from outrider.commands.options import Loading
from outrider.commands.prompt import read_text
from outrider.commands.screen import stderr, stdout, waiting
from outrider.errors import UsageError

if TYPE_CHECKING:
    from outrider.doctor.evidence import Evidence
    from outrider.doctor.verdict import Verdict
    from outrider.reports.words import Curve

FOUND = 1
NOT_EXAMINED = 2
LIKELIER = 0.5  # all findings together: a fault is likelier than none


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the command line asked for."""

    url: str | None
    known: Known
    written: Written
    loading: Loading


def run(request: Request) -> int:
    """Print the verdict; return the exit code: 1 where there are findings, 2 where nothing could be examined.

    Raises:
        OutriderError: nothing was given, or what was given cannot be read.
    """
    from outrider.doctor.examine import examine
    from outrider.doctor.options import ways

    _check(request)
    with waiting(stderr()) as telling:
        telling.spin("Looking")
        evidence, warnings = gathered(request)
        verdict = examine(evidence, warnings)
    curves: Sequence[Curve] = ()
    if runs_the_pair(request):
        from outrider.commands.doctor_ablation import ablated

        verdict, curves = ablated(request, evidence, verdict)
    verdict = verdict.model_copy(update={"options": ways(evidence, verdict)})
    if request.written.redact:
        from outrider.doctor.redact import redact

        evidence, verdict = redact(evidence, verdict)
    _write(request.written, evidence, verdict, curves)
    return exit_code(verdict)


def _check(request: Request) -> None:
    known = request.known
    if request.url is None and not any((known.evidence, known.log, known.command, known.drafter, known.target)):
        raise UsageError(
            "There is nothing to examine: give the URL of a server, --evidence, --log, --command, --drafter or "
            "--target; several are put together."
        )
    if known.prompts is not None and not (known.drafter and known.target):
        raise UsageError("--prompts runs a pair: give --drafter and --target with it.")

    if known.same_prompts and known.prompts is None:
        raise UsageError("--same-prompts says that the server was asked the prompts of --prompts: give that file.")


def gathered(request: Request) -> tuple["Evidence", Sequence[str]]:
    """Return what is known, and what could not be read of it."""
    from outrider.doctor.intake import gather

    known = request.known
    found = gather(
        file=known.evidence,
        url=request.url,
        logs=known.log or (),
        commands=[_command(text) for text in known.command or ()],
        drafter=known.drafter,
        target=known.target,
        probe=known.probe,
    )
    return found.evidence, found.warnings


def _command(text: str) -> str:
    return read_text(Path(text[1:])) if text.startswith("@") else text


def runs_the_pair(request: Request) -> bool:
    """Say whether the pair itself is run: with --prompts, or when both models are all that was given."""
    known = request.known
    others = (request.url, known.evidence, known.log, known.command)
    return known.prompts is not None or (bool(known.drafter and known.target) and not any(others))


def exit_code(verdict: "Verdict") -> int:
    """Return 1 where a fault is likelier than none, 2 where no rule had anything to look at, else 0."""
    from outrider.doctor.rule import RULES

    if len(verdict.not_examined) >= len(RULES):
        return NOT_EXAMINED
    suspected = sum(one.confidence for one in verdict.findings if one.standing != "refuted")
    return FOUND if suspected > LIKELIER else 0


def _write(written: Written, evidence: "Evidence", verdict: "Verdict", curves: Sequence["Curve"]) -> None:
    if written.markdown is not None:
        from outrider.reports.markdown import markdown

        _save(written.markdown, markdown(verdict, evidence, curves))
    if written.html is not None:
        from outrider.reports.html import page

        _save(written.html, page(verdict, evidence, curves))
    if written.as_json:
        sys.stdout.write(verdict.model_dump_json(indent=1, by_alias=True) + "\n")
    else:
        from outrider.reports.console import print_verdict

        print_verdict(stdout(), verdict, evidence, curves)


def _save(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"Cannot write {path}: {error.strerror or error}; name another place.") from error
