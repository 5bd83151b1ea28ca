"""Drafters in the formats of z-lab, speculators and llama.cpp: read, checked, in one form. Headers only, no torch."""

from outrider.models.dflash.formats.checks import Target, fit
from outrider.models.dflash.formats.examine import DraftCheckpoint, Examined, examine, read_drafter
from outrider.models.dflash.formats.problems import Problem, refuse, remaining

__all__ = ["DraftCheckpoint", "Examined", "Problem", "Target", "examine", "fit", "read_drafter", "refuse", "remaining"]
