"""The curves of a report as SVG, drawn by matplotlib: loss, slot accuracy, acceptance length with its fit, rates."""

from io import StringIO
from typing import TYPE_CHECKING

from outrider.errors import UsageError
from outrider.train.report.result import Curve, Expected, RunReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANELS = ("loss", "slot accuracy", "acceptance length", "position rates")
FITTED = {"acceptance length": "acceptance length", "length on held-out texts": "acceptance length"}
BEYOND = 2.0  # times what was seen: as far as the fit is drawn
POINTS = 60


def draw(report: RunReport) -> str:
    """Return the picture.

    Raises:
        UsageError: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise UsageError("Plots need the package matplotlib: pip install 'outrider[plot]'.") from error
    panels = [panel for panel in PANELS if any(curve.of == panel for curve in report.curves)]
    with mpl.rc_context({"svg.hashsalt": "outrider", "svg.fonttype": "path"}):
        figure = Figure(figsize=(10, 3.2 * ((len(panels) + 1) // 2)), layout="constrained")
        for number, panel in enumerate(panels, start=1):
            axes = figure.add_subplot((len(panels) + 1) // 2, 2, number)
            _draw_panel(axes, panel, report)
        written = StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None})
    return written.getvalue()


def _draw_panel(axes: "Axes", panel: str, report: RunReport) -> None:
    for curve in report.curves:
        if curve.of == panel:
            _draw_curve(axes, curve)
    expected = report.expected
    if expected is not None and FITTED.get(expected.of) == panel:
        _draw_fit(axes, expected, report.seen)
    axes.set_title(panel)
    axes.set_xlabel(f"{report.unit} seen")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")


def _draw_curve(axes: "Axes", curve: Curve) -> None:
    few = "o" if len(curve.seen) <= POINTS else ""
    axes.plot(curve.seen, curve.values, marker=few, markersize=3, linewidth=1.2, label=curve.name)
    if curve.low and curve.high:
        axes.fill_between(curve.seen, curve.low, curve.high, alpha=0.2, linewidth=0)


def _draw_fit(axes: "Axes", expected: Expected, seen: float) -> None:
    shares = [0.05 + (BEYOND - 0.05) * index / POINTS for index in range(POINTS + 1)]
    values = [expected.end.value - expected.scale * share**-expected.exponent for share in shares]
    axes.plot([share * seen for share in shares], values, linestyle="--", linewidth=1, color="black", label="fit")
