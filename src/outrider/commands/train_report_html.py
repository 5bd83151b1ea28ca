"""A report as one page that can be sent to somebody: no script, no other file."""

from outrider.commands.text_plot import short
from outrider.commands.train_report_print import RATES, length_text, spread
from outrider.errors import UsageError
from outrider.train.report.result import RunReport

COLOURS = {
    "converged": "#1a7f37",
    "improving": "#0969da",
    "undecided": "#9a6700",
    "over-fitted": "#cf222e",
    "broken": "#cf222e",
}
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{ report.status }}: a training run</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #1f2328 }
h1 { font-size: 1.3rem; color: {{ colour }} }
table { border-collapse: collapse; margin: 1rem 0 }
th, td { border: 1px solid #d0d7de; padding: .25rem .6rem; text-align: left; vertical-align: top }
td.number { text-align: right; font-variant-numeric: tabular-nums }
svg { max-width: 100%; height: auto }
.found { color: #cf222e; font-weight: bold } .suspected { color: #9a6700 } .clear { color: #1a7f37 }
.not { color: #6e7781 } footer { color: #6e7781; font-size: .85rem }
</style></head><body>
<h1>{{ report.headline }}</h1>
{% for note in report.notes %}<p>{{ note }}</p>{% endfor %}
{% if picture %}{{ picture }}{% else %}<p>Curves: install matplotlib (outrider[plot]) to have them here.</p>{% endif %}
{% if rows %}<h2>Evaluations</h2>
<table><tr>{% for name in names %}<th>{{ name }}</th>{% endfor %}</tr>
{% for row in rows %}<tr>{% for cell in row %}<td class="number">{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</table>{% endif %}
<h2>What was checked</h2>
<table><tr><th></th><th>check</th><th>state</th><th>why</th></tr>
{% for check in report.checks %}<tr><td>{{ check.code }}</td><td>{{ check.title }}</td>
<td class="{{ check.state }}">{{ check.state }}</td><td>{{ check.text }}</td></tr>
{% endfor %}</table>
<h2>What was read</h2>
{% for line in report.understood %}<p>{{ line }}</p>{% endfor %}
<footer>outrider {{ report.provenance.outrider }}, {{ report.provenance.date }}</footer>
</body></html>
"""


def page(report: RunReport) -> str:
    """Return the page; everything from logs is escaped."""
    from jinja2 import Environment
    from markupsafe import Markup

    environment = Environment(autoescape=True)
    picture = _picture(report)
    return environment.from_string(PAGE).render(
        report=report,
        colour=COLOURS[report.status],
        picture=Markup(picture) if picture else "",  # noqa: S704 -- drawn here, names are matplotlib's to escape
        names=_names(report),
        rows=_rows(report),
    )


def _picture(report: RunReport) -> str:
    from outrider.commands.train_report_plot import draw

    try:
        whole = draw(report)
    except UsageError:  # without matplotlib the page does without
        return ""
    return whole[whole.index("<svg") :]


def _names(report: RunReport) -> list[str]:
    return [report.unit, "step", "acceptance length", "position rates", "held-out loss", "held-out accuracy"]


def _rows(report: RunReport) -> list[list[str]]:
    return [
        [
            short(line.step if report.unit == "steps" else line.tokens or 0),
            str(line.step),
            length_text(line),
            " ".join(f"{value:.2f}" for value in line.position_rates[:RATES]),
            "" if line.held_out_loss is None else f"{line.held_out_loss:.3f}",
            " ".join(f"{value:.2f}" for value in line.held_out_accuracy[:RATES]),
        ]
        for line in spread(report.evaluations)
    ]
