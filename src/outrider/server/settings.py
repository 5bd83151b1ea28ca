"""What whoever runs the server decides: who may use it, and how much one request may take. Free of torch."""

from dataclasses import dataclass, field

from outrider.errors import UsageError

MEBI = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one request, and all of them together, may take.

    Attributes:
        body_bytes: of a request.
        choices: texts of one request: prompts times ``n``.
        waiting: texts that may wait for a slot.
        open_requests: requests that are answered at once, streams among them.
        deadline_s: from a request's arrival to its last token.
        body_s: for a request's body to arrive.
        stall_s: for a client to take what is ready for it.
        template_s: for the chat template to render.
        drain_s: for what runs to end, when the server is told to.
    """

    body_bytes: int = 4 * MEBI
    choices: int = 16
    waiting: int = 64
    open_requests: int = 512
    deadline_s: float = 600.0
    body_s: float = 30.0
    stall_s: float = 60.0
    template_s: float = 5.0
    drain_s: float = 30.0

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if getattr(self, name) <= 0 and name != "waiting":
                raise UsageError(f"Limit {name}={getattr(self, name)}: expected more than 0.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A server's settings.

    Attributes:
        name: under which the model is served.
        keys: of the API; empty lets everybody in.
        hosts: names that a request may call the server by; empty allows any.
        limits: what requests may take.
    """

    name: str
    keys: tuple[str, ...] = field(default=(), repr=False)
    hosts: tuple[str, ...] = ()
    limits: Limits = Limits()
