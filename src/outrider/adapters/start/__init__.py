"""How each engine is started: what it offers in which version, and the command for a deployment. No torch."""

from outrider.adapters.start.deployment import Command, Deployment, Draft, Parallel
from outrider.adapters.start.offers import Offer, meanwhile, offered, told_missing
from outrider.adapters.start.starter import Starter
from outrider.adapters.start.table import STARTERS, starter

__all__ = [
    "STARTERS", "Command", "Deployment", "Draft", "Offer", "Parallel", "Starter", "meanwhile", "offered", "starter",
    "told_missing",
]  # fmt: skip
