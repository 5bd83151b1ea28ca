"""Ways forward: what can be done, what it should give where the evidence allows, and the command for it."""

from outrider.doctor.options.ways import ways

__all__ = ["ways"]
