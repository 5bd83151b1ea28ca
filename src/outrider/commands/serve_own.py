"""``outrider serve MODEL``: the embedded engine behind the OpenAI API, until it is told to stop."""

import asyncio
import os
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from outrider.commands.drafter_check import check_drafters
from outrider.commands.opening import is_here
from outrider.commands.options import Drafting, Loading, given
from outrider.commands.screen import stderr
from outrider.commands.serve_options import Drafted, Run, Spread
from outrider.commands.serve_own_options import Own
from outrider.errors import UsageError
from outrider.registry import DRAFTERS

if TYPE_CHECKING:
    from outrider.server.messages import Ready
    from outrider.server.run import Address
    from outrider.server.settings import Settings

KEY_VARIABLE = "OUTRIDER_API_KEY"
BLOCK_DRAFTER = "dflash"  # what runs a draft model where no method is named


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for on the command line."""

    model: str
    drafted: Drafted
    spread: Spread
    run: Run
    own: Own
    loading: Loading
    more: list[str]


def run(request: Request) -> int:
    """Serve until Ctrl-C or SIGTERM, and let what runs end.

    Raises:
        OutriderError: it cannot be served so; says why.
    """
    _check(request)
    drafter, drafting = how_to_draft(request.model, request.drafted)
    from outrider.server import messages
    from outrider.server.logs import log_to_stderr
    from outrider.server.run import Serving, listen, tokenizer_of

    settings, address = _settings(request), _address(request)
    taken = listen(address)
    loading = messages.Loading(
        model=request.model,
        drafter=drafter,
        draft_model=drafting.draft_model,
        draft=drafting.options(),
        dtype=request.loading.dtype.value,
        device=request.loading.device,
        slots=request.own.slots,
        max_len=request.spread.max_len,
    )
    console = stderr()
    if not is_here(request.model):
        console.print(Text(f"fetching {request.model}", style="dim"))
    tokenizer = tokenizer_of(request.model)
    console.print(Text(f"loading {request.model}", style="dim"))
    log_to_stderr()
    asyncio.run(Serving(loading, settings, address).run(taken, tokenizer, _tell(settings)))
    return 0


def _check(request: Request) -> None:
    """Refuse options of other engines, which would be passed over."""
    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        raise UsageError("Serving needs FastAPI and uvicorn: pip install 'outrider[serve]'.")
    own = {"--host", "--max-len", "--port"}
    foreign = [name for name in (*given(request.spread), *given(request.run)) if name not in own]
    if request.more:
        foreign.append("-- WORDS")
    if foreign:
        raise UsageError(
            f"{foreign[0]} is for engines of others, and none was named: give --engine vllm, sglang or llama.cpp, "
            "or leave it out to serve the embedded engine."
        )
    if (request.own.certificate is None) != (request.own.private_key is None):
        raise UsageError("HTTPS needs both: --tls-certificate and --tls-key.")
    for file in (request.own.certificate, request.own.private_key):
        if file is not None and not file.is_file():
            raise UsageError(f"{file}: expected a PEM file; there is none.")


def refuse(own: Own, loading: Loading) -> None:
    """Refuse our own engine's options where another is started, which would not see them.

    Raises:
        UsageError: names the first.
    """
    ours = [*given(own), *given(loading)]
    if ours:
        raise UsageError(
            f"{ours[0]} is for our own engine: leave out --engine, or give the engine's own words after --."
        )


def how_to_draft(model: str, drafted: Drafted) -> tuple[str, Drafting]:
    """Return a name of the table of drafters, and its options.

    ``--drafter`` may be such a name, as with ``outrider generate``, or a draft model.

    Raises:
        OutriderError: they contradict each other.
    """
    name, draft_model = drafted.method, drafted.drafter
    if draft_model in DRAFTERS:
        if name is not None and name != draft_model:
            raise UsageError(f"--method {name} and --drafter {draft_model} contradict each other: give one of them.")
        name, draft_model = draft_model, None
    if name is None:
        name = "none" if draft_model is None else BLOCK_DRAFTER
    drafting = Drafting(draft_model=draft_model, draft_tokens=drafted.length)
    return name, check_drafters([name], drafting, model)


def _settings(request: Request) -> "Settings":
    from outrider.server.run import LOOPBACK
    from outrider.server.settings import Limits, Settings

    path = Path(request.model).expanduser()
    name = request.own.name or (path.resolve().stem if path.is_file() else path.resolve().name)
    if not path.exists() and request.own.name is None:
        name = request.model
    hosts = LOOPBACK if request.spread.host in LOOPBACK else ()
    limits = Limits(waiting=request.own.waiting, deadline_s=request.own.deadline)
    return Settings(name=name, keys=_keys(request.own.key_file), hosts=hosts, limits=limits)


def _keys(file: Path | None) -> tuple[str, ...]:
    """Return the keys of file and environment; never from the command line, which everybody on the machine can read."""
    keys = [os.environ.get(KEY_VARIABLE, "")]
    if file is not None:
        try:
            keys += file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{file}: expected API keys, one a line; it cannot be read ({error}).") from None
    found = tuple(key.strip() for key in keys if key.strip())
    if file is not None and not found:
        raise UsageError(f"{file} holds no API key: expected one a line.")
    return found


def _address(request: Request) -> "Address":
    from outrider.server.run import Address

    own, port = request.own, request.run.port
    return Address(
        host=request.spread.host,
        port=8000 if port is None else port,
        certificate=own.certificate,
        private_key=own.private_key,
    )


def _tell(settings: "Settings") -> Any:
    def tell(url: str, ready: "Ready") -> None:
        console = stderr()
        console.print(
            Text(
                f"{settings.name} answers at {url}/v1 (drafter {ready.drafter}, {ready.slots} slots of {ready.max_len} "
                f"tokens, {ready.dtype} on {ready.device}, loaded in {ready.seconds:.1f} s); a page at {url}/",
                style="green",
            ),
            soft_wrap=True,
        )
        if not settings.hosts and not settings.keys:
            warning = f"warning: open to whoever reaches it: give --api-key-file FILE or set {KEY_VARIABLE}."
            console.print(Text(warning, style="yellow"), soft_wrap=True)
        sys.stderr.flush()

    return tell
