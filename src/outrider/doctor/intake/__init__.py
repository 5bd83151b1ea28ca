"""Evidence from whatever there is: a file, a server, logs, commands, models. What cannot be read is told, not lost."""

from outrider.doctor.intake.gather import Gathered, gather

__all__ = ["Gathered", "gather"]
