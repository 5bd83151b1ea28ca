"""``outrider bench``: servers measured on one workload, each way of drafting against the engine's plain decoding."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING

from rich.text import Text

from outrider.adapters.start import Starter, starter
from outrider.commands.bench_print import print_comparison, print_result
from outrider.commands.screen import stderr, stdout
from outrider.commands.serve_options import Drafted, Spread
from outrider.errors import UsageError

if TYPE_CHECKING:
    from outrider.deploy.environment import Found
    from outrider.traffic.result import ArmAbout, TrafficResult
    from outrider.traffic.run import Arm, Measured
    from outrider.traffic.workload import Prompt, Workload

PLAIN = "plain"
BROKE_OFF = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What is asked, and how often."""

    prompts: Path | None
    kinds: Sequence[str]
    each: int | None
    max_tokens: int
    temperature: float
    concurrency: str
    rate: float | None
    chat: bool
    repeats: int
    warmup: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """Where the result goes."""

    name: str
    out: Path
    plot: Path | None
    as_json: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for on the command line; ``url`` for a server that runs, else an engine that is started."""

    model: str
    engine: str | None
    python: Path | None
    arms: Sequence[str]
    drafter: str | None
    spread: Spread
    patience: float
    prefix_caching: bool
    url: str | None
    asking: Asking
    writing: Writing
    more: Sequence[str]


def run(request: Request) -> int:
    """Measure, write, print; return 1 where an arm broke off.

    Raises:
        OutriderError: nothing can be measured so.
    """
    from outrider.traffic.run import Protocol, log_folder
    from outrider.traffic.run import run as measure

    workload = _workload(request.asking)
    arms = _running(request.url) if request.url is not None else _started(request)
    asking = request.asking
    protocol = Protocol(
        concurrencies=_numbers(asking.concurrency),
        repeats=asking.repeats,
        warmup=asking.warmup,
        patience=request.patience,
        logs=log_folder(),
    )
    console = stderr()
    console.print(Text(f"logs: {protocol.logs}; {len(workload.prompts)} prompts", style="dim"), soft_wrap=True)

    def keep(measured: "Measured") -> None:
        _result(request, workload, arms, measured).save(request.writing.out)

    def tell(line: str) -> None:
        console.print(Text(line, style="dim"), soft_wrap=True)

    measured = measure(arms, workload, protocol, tell=tell, keep=keep)
    return _write(request, _result(request, workload, arms, measured))


def compare(before: Path, after: Path) -> int:
    """Print two results side by side.

    Raises:
        UsageError: one of the files is none.
    """
    from outrider.traffic.result import TrafficResult

    print_comparison(stdout(), TrafficResult.load(before), TrafficResult.load(after))
    return 0


def _write(request: Request, result: "TrafficResult") -> int:
    result.save(request.writing.out)
    if request.writing.plot is not None:
        from outrider.traffic.plot import draw

        draw(result, request.writing.plot)
    if request.writing.as_json:
        stdout().print(result.model_dump_json(indent=1), soft_wrap=True)
    else:
        print_result(stdout(), result)
    return BROKE_OFF if result.failed else 0


def _workload(asking: Asking) -> "Workload":
    from outrider.traffic.workload import Workload, chosen

    picked = chosen(_prompts(asking.prompts), asking.kinds, asking.each, asking.seed)
    return Workload(
        prompts=picked,
        max_tokens=asking.max_tokens,
        temperature=asking.temperature,
        seed=asking.seed,
        rate=asking.rate,
        chat=asking.chat,
    )


def _prompts(path: Path | None) -> "list[Prompt]":
    from outrider.commands.prompts_file import read_rows, rows_of
    from outrider.traffic.workload import Prompt, own_prompts

    rows = read_rows(path) if path is not None else rows_of(own_prompts(), "the built-in prompts")
    return [Prompt(row.prompt, row.category) for row in rows]


def _numbers(text: str) -> list[int]:
    words = text.split(",")
    if not all(word.strip().isdigit() and int(word) for word in words):
        raise UsageError(f"--concurrency {text}: expected whole numbers with commas, for example 1,4,16.")
    return [int(word) for word in words]


def _running(url: str) -> "list[Arm]":
    """Return a server that somebody started, as the only arm."""
    from outrider.doctor.intake import gather
    from outrider.traffic.result import ArmAbout
    from outrider.traffic.run import Arm

    known = gather(url=url, sleep=lambda _seconds: None).evidence
    about = ArmAbout(
        name=url,
        engine=str(known.engine.name),
        version=known.engine.version,
        method=known.method or "",
        draft_length=known.speculation.num_speculative_tokens,
        command="",
    )
    return [Arm(about, url.rstrip("/"), None)]


def _started(request: Request) -> "list[Arm]":
    """Return the arms of an engine, plain decoding first."""
    from outrider.deploy.environment import find

    if request.engine is None:
        raise UsageError("Which engine? Give --engine vllm, sglang or llama.cpp, or --url for a server that runs.")
    one = starter(request.engine)
    if not one.serves:
        raise UsageError(f"{one.title}'s own engine serves nothing yet; outrider compare measures it.")
    found = find(one, request.python)
    names = [PLAIN, *(name for name in request.arms if name != PLAIN)]
    return [_arm(request, one, found, name) for name in dict.fromkeys(names)]


def _arm(request: Request, one: Starter, found: "Found", name: str) -> "Arm":
    from outrider.adapters.start import offered, told_missing
    from outrider.commands.serve_plan import deployment_of
    from outrider.traffic.run import Arm

    engine = str(request.engine)
    deployment = deployment_of(engine, request.model, _drafted(request, name), request.spread)
    draft = deployment.draft
    if draft is not None and offered(one.offers, draft.method, found.version) is None:
        raise UsageError(told_missing(one.title, one.offers, draft.method, found.version))
    port = _free_port()
    deployment = replace(deployment, port=port, more=(*request.more, *_caching(request, engine)))
    command = one.command(deployment, python=found.python)
    return Arm(_about(engine, name, found.version, deployment.draft, command.text), f"http://127.0.0.1:{port}", command)


def _about(engine: str, name: str, version: str | None, draft: object, command: str) -> "ArmAbout":
    from outrider.adapters.start import Draft
    from outrider.traffic.result import ArmAbout

    method, length = (draft.method, draft.tokens) if isinstance(draft, Draft) else (PLAIN, None)
    return ArmAbout(
        name=f"{engine} {name}", engine=engine, version=version, method=method, draft_length=length, command=command
    )


def _drafted(request: Request, name: str) -> Drafted:
    """Read an arm: ``plain``, ``METHOD`` or ``METHOD:K``."""
    from outrider.adapters.start.deployment import WITHOUT_MODEL

    if name == PLAIN:
        return Drafted()
    method, colon, length = name.partition(":")
    if colon and not (length.isdigit() and int(length)):
        raise UsageError(f"--arm {name}: expected plain, METHOD or METHOD:K, for example dflash:7.")
    drafter = None if method in WITHOUT_MODEL else request.drafter
    return Drafted(drafter=drafter, method=method, length=int(length) if colon else None)


def _caching(request: Request, engine: str) -> tuple[str, ...]:
    """Words that keep prompts out of the cache: asked twice, they would cost nothing the second time."""
    from outrider.doctor.options.fix import WITHOUT_PREFIX_CACHE

    flag = WITHOUT_PREFIX_CACHE.get(engine)
    return () if request.prefix_caching or flag is None else (flag,)


def _free_port() -> int:
    with socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _result(request: Request, workload: "Workload", arms: "Sequence[Arm]", measured: "Measured") -> "TrafficResult":
    from outrider.provenance import provenance
    from outrider.traffic.result import TrafficResult
    from outrider.traffic.summary import rows

    asking = request.asking
    return TrafficResult(
        name=request.writing.name,
        target=request.model,
        max_tokens=asking.max_tokens,
        temperature=asking.temperature,
        rate=asking.rate,
        chat=asking.chat,
        prefix_caching=request.prefix_caching,
        warmup=asking.warmup,
        repeats=asking.repeats,
        categories=[prompt.category for prompt in workload.prompts],
        arms=[arm.about for arm in arms],
        cells=measured.cells,
        rows=rows(measured.cells, arms[0].about.name, greedy=asking.temperature == 0),
        failed=measured.failed,
        notes=["A server that runs already: its prefix cache is as it was started."] if request.url else [],
        provenance=provenance(seed=asking.seed),
    )
