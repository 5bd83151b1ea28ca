"""Serves an application over an engine on an address, until told to stop; then lets what runs end."""

import asyncio
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from outrider.checkpoint.checkpoint import open_checkpoint
from outrider.checkpoint.source import resolve
from outrider.errors import UsageError
from outrider.server.app import make_app
from outrider.server.context import Context
from outrider.server.engine_client import EngineClient
from outrider.server.measures import Measures
from outrider.server.messages import Loading, Ready
from outrider.server.prompts import Prompts
from outrider.server.settings import Settings
from outrider.server.templates import Templates
from outrider.text.tokenizer import Tokenizer, load_tokenizer

BACKLOG = 2048  # connections that the system holds until they are taken
KEEP_ALIVE_S = 75  # an idle connection; longer than most balancers keep theirs, so that they close first
LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where to listen.

    Attributes:
        certificate, private_key: PEM files; with them it is HTTPS.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    certificate: Path | None = None
    private_key: Path | None = None

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        return self.host in LOOPBACK

    def url(self, port: int) -> str:
        """Return where it is reached."""
        scheme = "http" if self.certificate is None else "https"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{port}"


def listen(address: Address) -> socket.socket:
    """Take the address, so that what is wrong with it is said before a model is loaded.

    Raises:
        UsageError: it cannot be had.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    taken = socket.socket(family, socket.SOCK_STREAM)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((address.host, address.port))
    except OSError as error:
        taken.close()
        raise UsageError(
            f"{address.host}:{address.port} cannot be listened on: {error.strerror}. Give another --port or --host."
        ) from None
    return taken


def tokenizer_of(model: str) -> Tokenizer:
    """Return the tokenizer of a model, without its weights."""
    return load_tokenizer(open_checkpoint(resolve(model), weights=False))


class Serving:
    """One server with its engine.

    Args:
        loading: what to load.
        settings: who may use it, and how much.
        address: where.
    """

    def __init__(self, loading: Loading, settings: Settings, address: Address) -> None:
        self._loading, self._settings, self._address = loading, settings, address
        self._server: uvicorn.Server | None = None

    async def run(self, taken: socket.socket, tokenizer: Tokenizer, tell: Callable[[str, Ready], None]) -> None:
        """Load the model, serve until ``stop``, then end what runs.

        Args:
            taken: the address, bound.
            tokenizer: of the model.
            tell: is called with the URL once requests are served.

        Raises:
            OutriderError: the model cannot be loaded.
        """
        limits = self._settings.limits
        measures = Measures(self._settings.name)
        templates = Templates(tokenizer, seconds=limits.template_s)
        client = EngineClient(self._loading, waiting=limits.waiting, measures=measures)
        try:
            ready = await client.start()
            prompts = Prompts(tokenizer, templates)
            context = Context(client=client, prompts=prompts, settings=self._settings, measures=measures)
            server = self._server = uvicorn.Server(self._config(context))
            for one in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(one, self.stop)
            taken.listen(BACKLOG)  # from here on nobody is turned away
            tell(self._address.url(taken.getsockname()[1]), ready)
            await server._serve(sockets=[taken])  # noqa: SLF001 -- serve() takes the signals, and ends us with them
        finally:
            await client.close()
            await templates.close()

    def stop(self) -> None:
        """Take no more connections and let what runs end; asked twice, end it."""
        if self._server is not None:
            self._server.force_exit = self._server.should_exit
            self._server.should_exit = True

    def _config(self, context: Context) -> uvicorn.Config:
        address = self._address
        return uvicorn.Config(
            make_app(context),
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=round(self._settings.limits.drain_s),
            ssl_certfile=address.certificate,
            ssl_keyfile=address.private_key,
        )
