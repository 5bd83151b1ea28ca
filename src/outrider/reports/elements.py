"""HTML from pieces: text is escaped when it becomes a piece, so nothing from outside is markup."""

from html import escape

from outrider.reports.words import clean


class Markup(str):
    """Text that is HTML already; made here and nowhere else."""

    __slots__ = ()


def element(tag: str, *children: str, **attributes: str | float | None) -> Markup:
    """Return an element; a trailing or inner underscore of an attribute's name is left out or a dash."""
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(clean(str(value)))}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{tag}{given}>{joined(*children)}</{tag}>")


def joined(*children: str) -> Markup:
    """Return pieces one after the other."""
    return Markup("".join(child if isinstance(child, Markup) else escape(clean(child)) for child in children))
