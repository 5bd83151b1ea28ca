"""How engines are told to run a drafter as it was trained: one file an engine, and what each cannot do.

Facts are those of vLLM 0.33.0, SGLang 0.5.23 and llama.cpp b11434, read in their sources; what is not known is said so.
"""

from collections.abc import Callable

from outrider.commands.engines.case import Case, EngineAdvice, Told, chosen
from outrider.commands.engines.llama_cpp import tell as llama_cpp
from outrider.commands.engines.sglang import tell as sglang
from outrider.commands.engines.vllm import tell as vllm

__all__ = ["Case", "EngineAdvice", "advise"]

ENGINES: dict[str, Callable[[Case], Told]] = {"vLLM": vllm, "SGLang": sglang, "llama.cpp": llama_cpp}


def advise(case: Case) -> list[EngineAdvice]:
    """Return what each engine needs."""
    return [_advice(name, tell(case), doubtful=case.doubtful) for name, tell in ENGINES.items()]


def _advice(engine: str, told: Told, *, doubtful: bool) -> EngineAdvice:
    unknown = [*told.unknown, *chosen((doubtful, "How it was trained, until the problems above are gone."))]
    return EngineAdvice(
        engine=engine,
        as_trained=None if unknown and not told.differs else not told.differs,
        command=told.command,
        needs=told.needs,
        differs=told.differs,
        unknown=unknown,
    )
