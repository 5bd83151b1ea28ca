"""Arms on the same prompts, interleaved (A B C A B C ...), so that all meet the same machine.

Which arm goes first changes from prompt to prompt and from repeat to repeat. Knows no engine: an
arm is a command that speaks the worker protocol.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from outrider.bench.protocol import Answer, Ready, Request
from outrider.bench.summary import Measured, summarise
from outrider.bench.worker import Worker
from outrider.errors import OutriderError, UsageError
from outrider.provenance import provenance
from outrider.results import BenchResult, Sample


@dataclass(frozen=True, slots=True)
class Arm:
    """An engine with its settings, as the command that starts its worker."""

    name: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt in tokens."""

    ids: tuple[int, ...]
    category: str


@dataclass(frozen=True, slots=True)
class Workload:
    """What every arm does: so many tokens after each prompt."""

    prompts: tuple[Prompt, ...]
    max_tokens: int


@dataclass(frozen=True, slots=True)
class _Lane:
    """A worker that is ready, and what it has measured so far."""

    worker: Worker
    ready: Ready
    measured: Measured


def run(
    arms: Sequence[Arm],
    workload: Workload,
    *,
    name: str,
    warmup: int = 1,
    repeats: int = 3,
    threads: int | None = None,
    timeout: float = 600.0,
    skipped: dict[str, str] | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> BenchResult:
    """Measure; the first arm is the base of all ratios.

    Args:
        arms: What to compare.
        workload: The prompts.
        name: Of the result.
        warmup: Requests a worker answers before any is timed.
        repeats: How often each prompt is timed.
        threads: What the arms were told to compute with, for the record.
        timeout: Seconds a worker has to load, and for each answer.
        skipped: Arms that could not be run, and why, for the record.
        report: Called with a line of progress.
    """
    if not arms or not workload.prompts or repeats < 1:
        raise UsageError(
            f"A benchmark needs at least one arm, one prompt and one repeat; found {len(arms)}, "
            f"{len(workload.prompts)} and {repeats}."
        )
    with ExitStack() as stack:
        lanes = [_start(stack, arm, timeout, report) for arm in arms]
        _warm_up(lanes, workload, warmup)
        for repeat in range(repeats):
            _round_robin(lanes, workload, repeat)
            report(f"repeat {repeat + 1} of {repeats} done")
        peaks = [lane.worker.peak_bytes() for lane in lanes]
    categories = [prompt.category for prompt in workload.prompts]
    base = lanes[0].measured
    return BenchResult(
        name=name,
        max_tokens=workload.max_tokens,
        warmup=warmup,
        repeats=repeats,
        categories=categories,
        prompt_tokens=[len(prompt.ids) for prompt in workload.prompts],
        arms=[
            summarise(lane.worker.name, lane.ready, lane.measured, base, categories, peak=peak)
            for lane, peak in zip(lanes, peaks, strict=True)
        ],
        skipped=skipped or {},
        provenance=provenance(threads=threads),
    )


def _start(stack: ExitStack, arm: Arm, timeout: float, report: Callable[[str], None]) -> _Lane:
    """Start one worker and wait for it: loads that overlap would slow each other."""
    worker = stack.enter_context(Worker(arm.name, arm.command, timeout=timeout))
    ready = worker.wait_ready()
    report(f"{arm.name}: loaded in {ready.load_seconds:.1f} s")
    return _Lane(worker, ready, Measured())


def _warm_up(lanes: Sequence[_Lane], workload: Workload, warmup: int) -> None:
    for i in range(warmup):
        prompt = workload.prompts[i % len(workload.prompts)]
        for lane in lanes:
            _ask(lane.worker, prompt, workload.max_tokens)


def _round_robin(lanes: Sequence[_Lane], workload: Workload, repeat: int) -> None:
    for index, prompt in enumerate(workload.prompts):
        first = (repeat + index) % len(lanes)
        for lane in (*lanes[first:], *lanes[:first]):
            answer = _ask(lane.worker, prompt, workload.max_tokens)
            lane.measured.samples.append(_sample(answer, index, repeat))
            lane.measured.tokens.setdefault(index, answer.tokens)


def _ask(worker: Worker, prompt: Prompt, max_tokens: int) -> Answer:
    answer = worker.generate(Request(prompt_ids=list(prompt.ids), max_tokens=max_tokens))
    if len(answer.tokens) != max_tokens:
        raise OutriderError(
            f"Benchmark arm {worker.name!r} made {len(answer.tokens)} tokens where {max_tokens} "
            "were asked for: speeds would not compare. Make it ignore the end-of-text token."
        )
    return answer


def _sample(answer: Answer, prompt: int, repeat: int) -> Sample:
    return Sample(
        prompt=prompt,
        repeat=repeat,
        tokens=len(answer.tokens),
        seconds=answer.seconds,
        prefill_seconds=answer.prefill_seconds,
        step_seconds=answer.step_seconds,
        rounds=answer.rounds,
        accepted=answer.accepted,
    )
