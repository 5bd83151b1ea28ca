"""The engines that can be started. A new one is a module and a line here."""

from outrider.adapters.start.embedded import EmbeddedStarter
from outrider.adapters.start.llamacpp import LlamaCppStarter
from outrider.adapters.start.sglang import SGLangStarter
from outrider.adapters.start.starter import Starter
from outrider.adapters.start.vllm import VllmStarter
from outrider.errors import UnknownNameError

STARTERS: dict[str, Starter] = {
    "vllm": VllmStarter(),
    "sglang": SGLangStarter(),
    "llama.cpp": LlamaCppStarter(),
    "outrider": EmbeddedStarter(),
}


def starter(name: str) -> Starter:
    """Return the engine of this name.

    Raises:
        UnknownNameError: with the nearest one.
    """
    if name not in STARTERS:
        raise UnknownNameError("engine", name, STARTERS)
    return STARTERS[name]
