"""The engines that are known, and which of them something speaks of. A new one is a module and a line here."""

from outrider.adapters.adapter import Adapter
from outrider.adapters.launch import Launch
from outrider.adapters.llamacpp import LlamaCpp
from outrider.adapters.metrics import Samples
from outrider.adapters.sglang import SGLang
from outrider.adapters.vllm import Vllm

ADAPTERS: dict[str, Adapter] = {"vllm": Vllm(), "sglang": SGLang(), "llama.cpp": LlamaCpp()}


def adapter_of_metrics(samples: Samples) -> Adapter | None:
    """Return the engine whose names these are."""
    return next((one for one in ADAPTERS.values() if samples.has(one.prefix)), None)


def adapter_of_command(launch: Launch) -> Adapter | None:
    """Return the engine that this starts."""
    return next((one for one in ADAPTERS.values() if one.programs.search(launch.text)), None)


def adapter_of_log(text: str) -> Adapter | None:
    """Return the engine that speaks most in this log."""
    found = {name: len(one.marks.findall(text)) for name, one in ADAPTERS.items()}
    best = max(found, key=lambda name: found[name])
    return ADAPTERS[best] if found[best] else None
