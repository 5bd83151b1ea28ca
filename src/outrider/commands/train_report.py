"""``outrider train report``: whether a run has converged, improves, is over-fitted or broken, from its logs alone."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from outrider.commands.screen import stdout
from outrider.errors import UsageError

FAULTY = 1  # exit code of a run that is broken or over-fitted


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the command line asked for.

    Attributes:
        places: a run's folder, or its logs.
        html: where a page is written.
        plot: where curves are drawn as SVG.
    """

    places: Sequence[Path]
    html: Path | None = None
    plot: Path | None = None
    as_json: bool = False


def run(request: Request) -> int:
    """Print the report; return the exit code: 1 where the run is broken or over-fitted.

    Raises:
        UsageError: there is no log that is understood, or a file cannot be written.
    """
    from outrider.train.report.read import read_run
    from outrider.train.report.result import make_report
    from outrider.train.report.verdict import judge

    found = read_run(request.places)
    report = make_report(found, judge(found))
    if request.plot is not None:
        from outrider.commands.train_report_plot import draw

        _write(request.plot, draw(report))
    if request.html is not None:
        from outrider.commands.train_report_html import page

        _write(request.html, page(report))
    if request.as_json:
        sys.stdout.write(report.model_dump_json(indent=1) + "\n")
    else:
        from outrider.commands.train_report_print import print_report

        print_report(stdout(), report)
    return FAULTY if report.status in ("broken", "over-fitted") else 0


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"Cannot write {path}: {error.strerror or error}; name another place.") from error
