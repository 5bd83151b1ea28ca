"""Position rates as an SVG picture that takes its colours from the page."""

from collections.abc import Sequence
from math import sqrt

from outrider.reports.elements import Markup, element, joined
from outrider.reports.words import Curve

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640, 300, 44, 34, 12, 12
DASHES = (None, "7 4", "2 3", "9 3 2 3")  # curves differ without colours too
Z = 1.96  # of a 95 % band


def picture(curves: Sequence[Curve]) -> Markup:
    """Return the picture of at least one curve."""
    longest = max(len(one.rates) for one in curves)
    names = ", ".join(one.name for one in curves)
    return element(
        "svg",
        element("title", f"Share of rounds accepted up to each position: {names}"),
        *_grid(longest),
        *(_band(one, longest) for one in curves[:1] if one.rounds),
        *(piece for number, one in enumerate(curves) for piece in _line(one, number, longest)),
        viewBox=f"0 0 {WIDTH} {HEIGHT + 20 * len(curves)}",
        role="img",
    )


def _x(position: float, longest: int) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * (position - 0.5) / longest


def _y(rate: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - rate)


def _grid(longest: int) -> list[Markup]:
    found = []
    for rate in (0, 0.25, 0.5, 0.75, 1):
        y = f"{_y(rate):.1f}"
        found.append(element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="grid"))
        found.append(element("text", f"{rate:.2f}", x=LEFT - 6, y=f"{_y(rate) + 4:.1f}", text_anchor="end"))
    step = 1 + longest // 20
    for position in range(1, longest + 1, step):
        x = f"{_x(position, longest):.1f}"
        found.append(element("text", str(position), x=x, y=HEIGHT - BOTTOM + 18, text_anchor="middle"))
    return found


def _band(curve: Curve, longest: int) -> Markup:
    reaches = [Z * sqrt(rate * (1 - rate) / (curve.rounds or 1)) for rate in curve.rates]
    above = [_point(k, min(1.0, u + r), longest) for k, (u, r) in enumerate(zip(curve.rates, reaches, strict=True), 1)]
    below = [_point(k, max(0.0, u - r), longest) for k, (u, r) in enumerate(zip(curve.rates, reaches, strict=True), 1)]
    return element("polygon", points=" ".join([*above, *below[::-1]]), class_="band")


def _line(curve: Curve, number: int, longest: int) -> list[Markup]:
    points = [_point(k, rate, longest) for k, rate in enumerate(curve.rates, start=1)]
    dash, kind = DASHES[number % len(DASHES)], f"curve c{number % len(DASHES)}"
    dots = [
        element("circle", element("title", f"{curve.name}, position {k}: {rate:.3f}"), cx=x, cy=y, r=3, class_=kind)
        for k, (rate, (x, _, y)) in enumerate(
            zip(curve.rates, (point.partition(",") for point in points), strict=True), start=1
        )
    ]
    y = HEIGHT + 20 * number
    return [
        element("polyline", points=" ".join(points), class_=kind, stroke_dasharray=dash),
        *dots,
        element("line", x1=LEFT, x2=LEFT + 30, y1=y, y2=y, class_=kind, stroke_dasharray=dash),
        joined(element("text", curve.name, x=LEFT + 38, y=y + 4)),
    ]


def _point(position: int, rate: float, longest: int) -> str:
    return f"{_x(position, longest):.1f},{_y(rate):.1f}"
