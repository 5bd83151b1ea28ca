"""Whether a server's text is the target's own: what acceptance says nothing about. Standard library and numpy alone."""

from outrider.doctor.lossless.result import Lossless
from outrider.doctor.lossless.run import check

__all__ = ["Lossless", "check"]
