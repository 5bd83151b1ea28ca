"""``python -m benchmarks.engines vllm --python PYTHON --target FOLDER``: the shipped pair on a real engine.

The engine is started by ``outrider serve`` and stopped by Ctrl-C, as a user would. Prompts are asked one by one.
What the server's counters say of all of them is compared with what each answer says of itself: vLLM with
``--per-request-spec-decode-metrics detailed``, llama.cpp with its timings. ``embedded`` runs the pair here.
``join A.json B.json ...`` prints what was measured side by side.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from socket import socket
from tempfile import TemporaryDirectory
from typing import Any

from outrider.commands.prompts_file import rows_of
from outrider.deploy.watcher import Watcher
from outrider.doctor.web import get_json
from outrider.provenance import provenance
from outrider.results import Record
from outrider.traffic.workload import Prompt, chosen, own_prompts

DRAFTER, LENGTH = "smollm2-135m-dflash", 7
UP_S, ANSWER_S = 600.0, 300.0
WORDS = {
    "vllm": (
        "--dtype", "float32", "--enforce-eager", "--max-model-len", "2048", "--max-num-seqs", "8",
        "--per-request-spec-decode-metrics", "detailed", "--no-enable-prefix-caching",
    ),
    "llama.cpp": ("--threads", "1"),
}  # fmt: skip
ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "0-1", "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
}  # fmt: skip


class Told(Record):
    """Counts over all prompts, from one source.

    Attributes:
        rounds: that drafted something.
        per_position: rounds accepted up to each position; empty where the source does not tell.
    """

    rounds: float
    drafted: float
    accepted: float
    per_position: list[float]

    @property
    def length(self) -> float:
        """Acceptance length."""
        return 1 + self.accepted / self.rounds


class Measured(Record):
    """One engine.

    Attributes:
        counters: the server's own; of the embedded engine its rounds.
        answers: summed over what each answer says of itself.
        tokens: written.
        left: processes of the server that were alive after it was stopped.
    """

    engine: str
    version: str
    target: str
    counters: Told
    answers: Told
    tokens: int
    seconds: float
    texts: list[str]
    left: int
    about: dict[str, Any]


def main() -> None:
    """Measure one engine, or print several."""
    given = _parse()
    if given.engine == "join":
        print("\n".join(_table([Measured.model_validate_json(Path(one).read_text()) for one in given.files])))
        return
    prompts = _prompts(given.each)
    found = _embedded(prompts, given) if given.engine == "embedded" else _served(prompts, given)
    print(found.model_dump_json(indent=1))


def _prompts(each: int) -> tuple[Prompt, ...]:
    rows = rows_of(own_prompts(), "own")
    return chosen([Prompt(row.prompt, row.category) for row in rows], (), each, 0)


def _embedded(prompts: Sequence[Prompt], given: argparse.Namespace) -> Measured:
    from outrider import __version__
    from outrider.drafters.options import DraftOptions
    from outrider.engine.params import SamplingParams
    from outrider.runner import load

    runner = load(
        given.target, drafter="dflash", draft_model=DRAFTER, draft=DraftOptions(tokens=LENGTH), slots=1,
        dtype="float32", max_len=2048,
    )  # fmt: skip
    start = time.monotonic()
    done = runner.generate_many(
        [[{"role": "user", "content": one.text}] for one in prompts], SamplingParams(max_tokens=given.max_tokens)
    )
    seconds = time.monotonic() - start
    rounds = [one for completion in done for one in completion.rounds if one.drafted]
    told = Told(
        rounds=len(rounds),
        drafted=sum(one.drafted for one in rounds),
        accepted=sum(one.accepted for one in rounds),
        per_position=[sum(one.accepted >= k for one in rounds) for k in range(1, LENGTH + 1)],
    )
    return Measured(
        engine="embedded", version=__version__, target=given.target, counters=told, answers=told,
        tokens=sum(len(one.tokens) for one in done), seconds=seconds, texts=[one.text for one in done], left=0,
        about=provenance().model_dump(),
    )  # fmt: skip


def _served(prompts: Sequence[Prompt], given: argparse.Namespace) -> Measured:
    with _serving(given) as (url, version, group):
        model = str(get_json(f"{url}/v1/models", seconds=ANSWER_S)["data"][0]["id"])
        watcher = Watcher(url)
        watcher.look()
        start = time.monotonic()
        answers = [_ask(url, model, one.text, given.max_tokens) for one in prompts]
        seconds = time.monotonic() - start
        counts = watcher.look().counts
    assert counts is not None  # noqa: S101 -- the server answered until now
    return Measured(
        engine=given.engine, version=version, target=str(given.target),
        counters=Told(
            rounds=counts.rounds or 0, drafted=counts.drafted or 0, accepted=counts.accepted or 0,
            per_position=list(counts.per_position),
        ),
        answers=_summed([_of_answer(given.engine, one) for one in answers]),
        tokens=sum(int(one["usage"]["completion_tokens"]) for one in answers), seconds=seconds,
        texts=[str(one["choices"][0]["message"]["content"]) for one in answers], left=_alive(group),
        about=provenance().model_dump(),
    )  # fmt: skip


@contextmanager
def _serving(given: argparse.Namespace) -> Iterator[tuple[str, str, list[int]]]:
    """Run ``outrider serve`` and yield address, version and the processes below it; end it by Ctrl-C."""
    with socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    command = [
        sys.executable, "-m", "outrider", "serve", "--engine", given.engine, str(given.target), "--drafter", DRAFTER,
        "--python", str(given.python), "--port", str(port), "--", *WORDS[given.engine],
    ]  # fmt: skip
    group: list[int] = []
    with TemporaryDirectory() as folder:
        said = Path(folder) / "said"
        with said.open("w") as file:
            process = subprocess.Popen(command, stderr=file, env=os.environ | ENVIRONMENT)
        try:
            version = _answered(process, said)
            group += _below(process.pid)
            yield f"http://127.0.0.1:{port}", version, group
        finally:
            process.send_signal(signal.SIGINT)
            code = process.wait(120)
            print(f"outrider serve ended with {code}; of {len(group)} processes {_alive(group)} live", file=sys.stderr)


def _answered(process: "subprocess.Popen[bytes]", said: Path) -> str:
    """Wait for the line that says that it answers; return the version in it."""
    end = time.monotonic() + UP_S
    while time.monotonic() < end and process.poll() is None:
        for line in said.read_text().splitlines():
            if " answers at " in line:
                return line.partition(" answers at ")[0].split()[-1]
        time.sleep(0.5)
    raise RuntimeError(f"The server did not come up: {said.read_text()[-600:]}")


def _below(pid: int) -> list[int]:
    """Return all processes below one."""
    psutil: Any = import_module("psutil")
    return [one.pid for one in psutil.Process(pid).children(recursive=True)]


def _alive(group: Sequence[int]) -> int:
    psutil: Any = import_module("psutil")
    return sum(psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie" for pid in group)


def _ask(url: str, model: str, prompt: str, max_tokens: int) -> dict[str, Any]:
    body = {
        "model": model, "messages": [{"role": "user", "content": prompt}], "max_tokens": max_tokens, "temperature": 0,
        "cache_prompt": False,
    }  # fmt: skip
    answer = get_json(f"{url}/v1/chat/completions", seconds=ANSWER_S, body=body)
    return dict(answer)


def _of_answer(engine: str, answer: dict[str, Any]) -> Told:
    """Read what an answer says of its own rounds."""
    if engine == "vllm":
        own = answer["metrics"]["speculative_decoding"]
        steps = [int(one) for one in own["per_step_accepted"]]
        return Told(
            rounds=own["num_spec_steps"], drafted=own["num_draft_tokens"], accepted=own["num_accepted_draft_tokens"],
            per_position=[sum(one >= k for one in steps) for k in range(1, LENGTH + 1)],
        )  # fmt: skip
    own, tokens = answer["timings"], int(answer["usage"]["completion_tokens"])
    accepted = int(own.get("draft_n_accepted", 0))
    # The prompt's pass decides the first token; every other round writes one beside what it accepted.
    return Told(rounds=tokens - 1 - accepted, drafted=int(own.get("draft_n", 0)), accepted=accepted, per_position=[])


def _summed(told: Sequence[Told]) -> Told:
    depth = max(len(one.per_position) for one in told)
    return Told(
        rounds=sum(one.rounds for one in told),
        drafted=sum(one.drafted for one in told),
        accepted=sum(one.accepted for one in told),
        per_position=[sum(one.per_position[k] for one in told) for k in range(depth)],
    )


def _table(found: Sequence[Measured]) -> Iterator[str]:
    yield "| engine | target | tokens | rounds | length | by the answers | rate | u_1 ... u_7 | texts as embedded |"
    yield "|---|---|---:|---:|---:|---:|---:|---|---:|"
    texts = next((one.texts for one in found if one.engine == "embedded"), None)
    for one in found:
        told = one.counters
        rates = " ".join(f"{hits / told.rounds:.3f}" for hits in told.per_position)
        same = "" if texts is None else f"{sum(map(str.__eq__, texts, one.texts))}/{len(texts)}"
        cells = (
            f"{one.engine} {one.version}", Path(one.target).name, f"{one.tokens}", f"{told.rounds:.0f}",
            f"{told.length:.3f}", f"{one.answers.length:.3f}", f"{told.accepted / told.drafted:.1%}", rates, same,
        )  # fmt: skip
        yield "| " + " | ".join(cells) + " |"


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=("embedded", "vllm", "llama.cpp", "join"))
    parser.add_argument("files", nargs="*", help="of join")
    parser.add_argument("--python", type=Path, help="of the environment that holds the engine")
    parser.add_argument("--target", default="smollm2-135m", help="a folder for vLLM (benchmarks.target_folder)")
    parser.add_argument("--each", type=int, default=2, help="prompts of each of eight kinds")
    parser.add_argument("--max-tokens", type=int, default=96)
    return parser.parse_args()


if __name__ == "__main__":
    main()
