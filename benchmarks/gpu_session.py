"""``python -m benchmarks.gpu_session --out DIR``: everything that a GPU is asked, in one command of a few minutes.

Stages in order: *tests* (kernels against their plain twins, tiny models against the CPU, 200 rounds of random
acceptance against fresh prefills), *tune* (how products are best cut), *short* (each method at context 512), *long*
(at 32768), *batch* (4 and 8 rows), *float8* (tuned and timed), *profile* (which kernels take the time). Each writes
JSON into the folder; a stage that would begin after --minutes is left out, and said so. Later stages use the cuts that
*tune* found in the same folder.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

import torch

from benchmarks.tune_products import tune
from outrider.kernels.plans import use
from outrider.pace.methods import parse
from outrider.pace.result import RoundTime
from outrider.pace.run import Plan, run
from outrider.pace.shapes import Shapes, read_shapes

TESTS = ("tests/kernels", "tests/models/test_fused.py", "tests/engine/test_rounds.py", "tests/engine/test_fuzz.py",
         "tests/engine/test_cuda.py", "tests/drafters/test_trees_cuda.py")  # fmt: skip
METHODS = ("plain", "mtp:3", "dflash:15", "ddtree:15", "ddtree:63")
MAIN = ("plain", "mtp:3", "dflash:15", "ddtree:63")
LENGTHS = (2.0, 2.67, 3.0, 4.0, 5.0, 6.45, 8.0, 10.0)
PLANS, PLANS8 = "plans.json", "plans8.json"


class Session:
    """Runs stages until time is up.

    Args:
        shapes: to measure.
        out: folder of results.
        rounds: that are timed of each method.
    """

    def __init__(self, shapes: Shapes, out: Path, rounds: int) -> None:
        self._shapes, self._out, self._rounds = shapes, out, rounds
        self.stages: dict[str, Callable[[], None]] = {
            "tests": self._tests,
            "tune": lambda: tune(shapes, out / PLANS, narrow=False),
            "short": lambda: self._pace("short", self._plan(METHODS)),
            "long": lambda: self._pace("long", self._plan(MAIN, contexts=(32768,))),
            "batch": lambda: self._pace("batch", self._plan(MAIN, batches=(4, 8))),
            "float8": self._float8,
            "profile": lambda: self._pace("profile", self._plan(MAIN, rounds=10, profile=True)),
        }

    def _plan(self, methods: tuple[str, ...], *, rounds: int | None = None, **more: object) -> Plan:
        parsed = [parse(method) for method in methods]
        return Plan(parsed, rounds=rounds or self._rounds, lengths=LENGTHS, **more)  # type: ignore[arg-type]

    def _tests(self) -> None:
        """Run the tests that a GPU is for; in several processes where pytest can, for building kernels takes long."""
        several = ["-n", "8"] if find_spec("xdist") else []
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout", "200", *several, *TESTS,
                   f"--junitxml={self._out / 'tests.xml'}"]  # fmt: skip
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        (self._out / "tests.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
        print("\n".join(done.stdout.splitlines()[-40:]), flush=True)

    def _pace(self, name: str, plan: Plan, dtype: str = "bfloat16") -> None:
        for table in (PLANS, PLANS8):
            if (self._out / table).is_file():
                use(self._out / table)
        result = run(self._shapes, plan, dtype=dtype, device=torch.device("cuda"), told=_say)
        (self._out / f"{name}.json").write_text(result.model_dump_json(indent=1) + "\n", encoding="utf-8")
        print(f"copies {result.copy_terabytes_per_second:.2f} TB/s", flush=True)
        torch.cuda.empty_cache()

    def _float8(self) -> None:
        tune(self._shapes, self._out / PLANS8, narrow=True)
        self._pace("float8", self._plan(MAIN), dtype="float8")


def _say(one: RoundTime) -> None:
    print(f"{one.method:10s} context {one.context:6d} batch {one.batch} {one.dtype}: {one.milliseconds:7.2f} ms "
          f"(fastest {one.fastest:.2f}, floor {one.floor_milliseconds:.2f}), {one.tokens_a_round:.2f} tokens",
          flush=True)  # fmt: skip
    for kernel in one.profile[:18]:
        print(f"    {kernel.microseconds:8.0f} us {kernel.calls:6.0f} x {kernel.name[:90]}", flush=True)


def main() -> None:
    """Run the stages that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--shapes", default="qwen3.6-27b")
    parser.add_argument("--stages", default="tests,tune,short,long,batch,float8,profile")
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--rounds", type=int, default=100)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    session, begun, told = Session(read_shapes(arguments.shapes), arguments.out, arguments.rounds), perf_counter(), {}
    for name in arguments.stages.split(","):
        if perf_counter() - begun > 60 * arguments.minutes:
            told[name] = "left out: time is up"
            continue
        start = perf_counter()
        print(f"== {name}", flush=True)
        try:
            with torch.inference_mode():
                session.stages[name]()
            told[name] = f"{perf_counter() - start:.0f} s"
        except Exception as error:  # noqa: BLE001 -- one stage must not cost the others
            told[name] = f"{type(error).__name__}: {str(error)[:2000]}"
        print(f"-- {name}: {told[name]}", flush=True)
        torch.cuda.empty_cache()
    (arguments.out / "session.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")
    main()
