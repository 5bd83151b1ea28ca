"""``python -m benchmarks.run``: measure Outrider and its peers side by side, and write the page.

Writes ``benchmarks/results/NAME.json`` and the section NAME of ``docs/benchmarks.md``. Run it on a
machine that does nothing else.
"""

import argparse
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.arms import KINDS, choose
from benchmarks.workload import read_workload
from outrider.bench.render import render, write_between
from outrider.bench.run import run
from outrider.checkpoint import resolve
from outrider.errors import OutriderError
from outrider.results import BenchResult

_HERE = Path(__file__).parent
_PAGE = _HERE.parent / "docs" / "benchmarks.md"
_DEFAULT_ARMS = "transformers-f32,transformers-f32-lookup,outrider-f32,outrider-f32-ngram,outrider-f16"


def main() -> int:
    """Measure, or with ``--render`` only write the page from a saved result."""
    arguments = _parse()
    path = _HERE / "results" / f"{arguments.name}.json"
    try:
        if not arguments.render:
            _measure(arguments).save(path)
        text = render(BenchResult.load(path))
        write_between(_PAGE, arguments.name, text)
    except OutriderError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(text)
    return 0


def _measure(arguments: argparse.Namespace) -> BenchResult:
    source = resolve(arguments.model, report=_tell)
    workload = read_workload(
        arguments.prompts,
        source,
        max_tokens=arguments.max_tokens,
        per_category=arguments.per_category,
    )
    with TemporaryDirectory() as folder:
        names = arguments.arms.split(",")
        arms, skipped = choose(names, source, arguments.threads, Path(folder))
        for name, why in skipped.items():
            _tell(f"{name}: skipped, {why}")
        return run(
            arms,
            workload,
            name=arguments.name,
            warmup=arguments.warmup,
            repeats=arguments.repeats,
            threads=arguments.threads,
            skipped=skipped,
            report=_tell,
        )


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.run", description=__doc__)
    parser.add_argument("--name", default="cpu", help="of the result and its section")
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument(
        "--arms",
        default=_DEFAULT_ARMS,
        help=f"with commas, the base of the ratios first; known: {', '.join(KINDS)}",
    )
    parser.add_argument("--prompts", type=Path, default=_HERE / "prompts.jsonl")
    parser.add_argument("--per-category", type=int, default=2)
    parser.add_argument("--max-tokens", type=int, default=96)
    parser.add_argument("--warmup", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--render", action="store_true", help="measure nothing, write the page")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
