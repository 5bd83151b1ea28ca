"""``python -m benchmarks.wrong_configs vllm --python PYTHON --target FOLDER``: real servers, drafters with wrong files.

Each server runs the shipped pair with one thing wrong (``wrong_drafters``). It answers prompts, then it is examined as
a user would: its URL and the drafter's files; and with the pair run here as well. llama.cpp runs through xllamacpp.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

from benchmarks.real_server import serving
from benchmarks.recorded_server import ask, keep
from benchmarks.wrong_drafters import WRONG, write
from outrider.commands.prompts_file import read_rows
from outrider.doctor.evidence import Evidence
from outrider.doctor.intake import Gathered, gather
from outrider.doctor.observation import Observation
from outrider.provenance import provenance

PROMPTS = Path(__file__).parent / "fault_prompts.jsonl"
VLLM_FLAGS = ("--dtype", "float32", "--enforce-eager", "--max-model-len", "2048", "--max-num-seqs", "8")
ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "0-1", "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosed:
    """One case.

    Attributes:
        wrong: what was put into the files.
        cause: what that is; None where nothing is wrong.
        length: acceptance length of the server.
        same: its texts are those of the right drafter.
        by_files, by_experiment: first cause and its confidence, from URL and files, and with the pair run here; None
            where it was not.
    """

    wrong: str
    cause: str | None
    length: float | None
    same: bool
    by_files: tuple[str, float]
    by_experiment: tuple[str, float] | None


def main() -> None:
    """Run the cases; print the table, then all as JSON."""
    given = _parse()
    prompts = [row.prompt for row in read_rows(PROMPTS)[: given.prompts]]
    cases: list[Diagnosed] = []
    right: list[str] = []
    for wrong in given.cases or WRONG:
        with TemporaryDirectory() as folder:
            drafter = write(wrong, Path(folder) / "drafter")
            command, environment = _launch(given, drafter, Path(folder))
            with serving(command, Path(folder) / "server.log", environment) as server:
                asked = ask(server, prompts, given.max_tokens)
                right = right or asked.texts
                known = gather(url=server.url, logs=[server.log], drafter=str(drafter), target="smollm2-135m")
                if given.record is not None:
                    same = asked.texts == right
                    keep(given.record / _plain(wrong), server, asked, _neutral(given, folder), wrong=wrong, same=same)
            cases.append(_diagnosed(wrong, known, drafter, given, same=asked.texts == right))
        print(_row(cases[-1]), file=sys.stderr, flush=True)
    found = {"cases": [asdict(case) for case in cases], "provenance": provenance().model_dump()}
    print("\n".join(_table(cases)))
    print(json.dumps(found, indent=1))


def _neutral(given: argparse.Namespace, folder: str) -> dict[str, str]:
    """What stands for this machine's folders, the longest first."""
    binaries = given.python.parent
    own = {str(Path(__file__).parent): "/benchmarks", f"{binaries}/": "", str(binaries.parent): "/engine"}
    return {str(given.target): "/models/smollm2-135m", folder: "/models", **own, gettempdir(): "/temporary"}


def _plain(words: str) -> str:
    return "-".join(words.replace(":", "").split())


def _launch(given: argparse.Namespace, drafter: Path, folder: Path) -> tuple[Any, dict[str, str]]:
    python = str(given.python)
    if given.engine == "vllm":
        config = json.dumps({"method": "dflash", "model": str(drafter), "num_speculative_tokens": 7})
        vllm = str(Path(python).parent / "vllm")
        words = [vllm, "serve", given.target, *VLLM_FLAGS, "--speculative-config", config, "--host", "127.0.0.1"]
        return (lambda port: [*words, "--port", str(port)]), ENVIRONMENT
    gguf = _converted(drafter, folder)
    script = str(Path(__file__).parent / "serve_llamacpp.py")
    return (lambda port: [python, script, given.target, str(gguf), str(port), str(given.threads)]), {}


def _converted(drafter: Path, folder: Path) -> Path:
    """Write the drafter as GGUF, wrong as it is."""
    from outrider.checkpoint import open_checkpoint, resolve
    from outrider.models.dflash.formats import examine, read_drafter
    from outrider.models.dflash.loading import read_weight
    from outrider.train.export import export_gguf
    from outrider.train.vocabulary import read_vocabulary

    source = resolve(str(drafter))
    found = read_drafter(source, allow=[one.key for one in examine(source).problems if not one.fatal])
    tensors = {name: read_weight(found, name) for name in found.checkpoint.tensors}
    vocabulary = read_vocabulary(open_checkpoint(resolve("smollm2-135m"), weights=False))
    return export_gguf(found.config, tensors, folder / "gguf", "bfloat16", vocabulary=vocabulary)


def _diagnosed(wrong: str, known: Gathered, drafter: Path, given: argparse.Namespace, *, same: bool) -> Diagnosed:
    from outrider.doctor.examine import examine

    verdict = examine(known.evidence, known.warnings)
    tried = given.ablated > 0
    return Diagnosed(
        wrong=wrong,
        cause=WRONG[wrong][0],
        length=Observation(known.evidence).reading.tau,
        same=same,
        by_files=_first(verdict.findings),
        by_experiment=_first(_by_experiment(known.evidence, verdict, drafter, given)) if tried else None,
    )


def _by_experiment(evidence: Evidence, verdict: Any, drafter: Path, given: argparse.Namespace) -> Sequence[Any]:
    from outrider.commands.doctor import Request
    from outrider.commands.doctor_ablation import ablated
    from outrider.commands.doctor_options import Known, Written
    from outrider.commands.options import Loading

    with TemporaryDirectory() as folder:
        some = Path(folder) / "prompts.jsonl"
        lines = PROMPTS.read_text(encoding="utf-8").splitlines(keepends=True)
        some.write_text("".join(lines[: given.ablated]), encoding="utf-8")
        known = Known(drafter=str(drafter), target="smollm2-135m", prompts=some)
        request = Request(url=None, known=known, written=Written(as_json=True), loading=Loading())
        return ablated(request, evidence, verdict)[0].findings


def _first(findings: Sequence[Any]) -> tuple[str, float]:
    standing = [one for one in findings if one.standing != "refuted"]
    return (standing[0].cause, standing[0].confidence) if standing else ("nothing", 1.0)


def _table(cases: Sequence[Diagnosed]) -> Iterator[str]:
    yield "| wrong | cause | length | texts | URL and files | with the pair run here |"
    yield "|---|---|---:|---|---|---|"
    yield from map(_row, cases)


def _row(case: Diagnosed) -> str:
    length = "" if case.length is None else f"{case.length:.2f}"
    first = ["" if named is None else f"{named[0]} {named[1]:.2f}" for named in (case.by_files, case.by_experiment)]
    texts = "equal" if case.same else "DIFFER"
    return "| " + " | ".join((case.wrong, case.cause or "none", length, texts, *first)) + " |"


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=("vllm", "llama.cpp"))
    parser.add_argument("--python", type=Path, required=True, help="of the environment that holds the engine")
    parser.add_argument("--target", required=True, help="a folder (benchmarks.target_folder) or GGUF file")
    parser.add_argument("--prompts", type=int, default=12)
    parser.add_argument("--ablated", type=int, default=5, help="prompts that the pair is run on here; 0: not at all")
    parser.add_argument("--max-tokens", type=int, default=96)
    parser.add_argument("--threads", type=int, default=1, help="of llama.cpp")
    parser.add_argument("--record", type=Path, help="a folder: keep there what each server printed and answered")
    parser.add_argument("--cases", nargs="*", choices=list(WRONG))
    return parser.parse_args()


if __name__ == "__main__":
    main()
