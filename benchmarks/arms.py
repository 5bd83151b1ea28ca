"""The arms by name: which script, with which settings, needing which package."""

import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from outrider.bench.run import Arm
from outrider.checkpoint import Source
from outrider.errors import UnknownNameError

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Kind:
    """One line of the table; ``gguf`` is the type of file that the arm needs, if it needs one."""

    script: str
    options: tuple[str, ...] = ()
    needs: str = "torch"
    gguf: str | None = None


KINDS = {
    "outrider-f32": Kind("arm_outrider.py"),
    "outrider-f32-ngram": Kind("arm_outrider.py", ("--drafter", "ngram")),
    "outrider-f16": Kind("arm_outrider.py", ("--dtype", "float16")),
    "outrider-f16-ngram": Kind("arm_outrider.py", ("--dtype", "float16", "--drafter", "ngram")),
    "transformers-f32": Kind("arm_transformers.py", needs="transformers"),
    "transformers-bf16": Kind("arm_transformers.py", ("--dtype", "bfloat16"), needs="transformers"),
    "transformers-f32-lookup": Kind("arm_transformers.py", ("--lookup", "10"), "transformers"),
    "transformers-bf16-lookup": Kind("arm_transformers.py", ("--dtype", "bfloat16", "--lookup", "10"), "transformers"),
    "llamacpp-f32": Kind("arm_llamacpp.py", needs="xllamacpp", gguf="float32"),
    "llamacpp-f16": Kind("arm_llamacpp.py", needs="xllamacpp", gguf="float16"),
    "llamacpp-file": Kind("arm_llamacpp.py", needs="xllamacpp", gguf="as it is"),
}


def choose(names: list[str], source: Source, threads: int, folder: Path) -> tuple[list[Arm], dict[str, str]]:
    """The arms that can run here, and why the others cannot.

    Args:
        names: Keys of ``KINDS``, the base of the ratios first.
        source: The model, the same for all arms.
        threads: What each arm computes with.
        folder: Where files in other types are written.
    """
    arms, skipped = [], {}
    for name in names:
        if name not in KINDS:
            raise UnknownNameError("benchmark arm", name, KINDS)
        kind = KINDS[name]
        if find_spec(kind.needs) is None:
            skipped[name] = f"{kind.needs} is not installed"
        elif kind.gguf and source.kind != "gguf":
            skipped[name] = "the model is no GGUF file"
        else:
            model = _model(kind, source.path, folder)
            settings = (*kind.options, "--model", str(model), "--threads", str(threads))
            arms.append(Arm(name, (sys.executable, str(_HERE / kind.script), *settings)))
    return arms, skipped


def _model(kind: Kind, path: Path, folder: Path) -> Path:
    """The file itself, or a copy of it in the type that the arm is to compute in."""
    if kind.gguf in {None, "as it is"}:
        return path
    from benchmarks.gguf_float import convert

    target = folder / f"{kind.gguf}.gguf"
    if not target.exists():
        convert(path, target, str(kind.gguf))
    return target
