"""Outrider: speculative decoding that is exact, fast, and explains itself.

Names are resolved on first use, so that ``import outrider`` stays free of torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outrider.engine.params import SamplingParams
    from outrider.runner import load

__version__ = "0.1.0"
__all__ = ["SamplingParams", "__version__", "load"]

_WHERE = {"SamplingParams": "outrider.engine.params", "load": "outrider.runner"}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'outrider' has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)
