"""What front and engine tell each other, pickled over a pipe. Free of torch."""

from dataclasses import dataclass, field

from outrider.acceptance import Round
from outrider.drafters.options import DraftOptions
from outrider.engine.params import SamplingParams
from outrider.engine.sequence import FinishReason
from outrider.engine.tracing import RoundRecord
from outrider.transcript import Piece


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """What the engine is made of; see ``outrider.load``."""

    model: str
    drafter: str = "none"
    draft_model: str | None = None
    draft: DraftOptions = field(default_factory=DraftOptions)
    dtype: str = "auto"
    device: str = "auto"
    slots: int = 4
    max_len: int | None = None
    dummy: bool = False


@dataclass(frozen=True, slots=True)
class Start:
    """To the engine: complete a prompt.

    Attributes:
        job: the front's number for it.
        prompt: token ids.
        draft_depth: deepest guess that may be drafted; 0 none, None as the drafter likes.
        rounds: tell each round with its tree.
    """

    job: int
    prompt: tuple[int, ...]
    params: SamplingParams
    draft_depth: int | None = None
    rounds: bool = False


@dataclass(frozen=True, slots=True)
class Cancel:
    """To the engine: nobody waits for a job any more."""

    job: int


Command = Start | Cancel


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """From the engine: it is loaded.

    Attributes:
        drafter: name of its method.
        slots, max_len: sequences at once, and their longest.
        vocab_size: of the target.
        device, dtype: of the target.
        seconds: that loading took.
    """

    drafter: str
    slots: int
    max_len: int
    vocab_size: int
    device: str
    dtype: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Failed:
    """From the engine: it could not be loaded, or a step went wrong; it ends.

    Attributes:
        reason: what to tell whoever runs the server.
        expected: whether it was raised on purpose.
    """

    reason: str
    expected: bool


@dataclass(frozen=True, slots=True)
class Refused:
    """From the engine: a job that cannot run."""

    job: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How a job ended.

    Attributes:
        finish_reason: why.
        rounds: counts of each round.
        cached: tokens of the prompt that did not have to be read.
        queue_s, prefill_s, decode_s: waiting for a slot, reading the prompt, all rounds.
    """

    finish_reason: FinishReason
    rounds: tuple[Round, ...]
    cached: int
    queue_s: float
    prefill_s: float
    decode_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What one step brought to one job.

    Attributes:
        pieces: new tokens; their texts joined are the new text.
        counts: of the round.
        record: the round with its tree, where that was asked for.
        end: with the last piece.
    """

    job: int
    pieces: tuple[Piece, ...]
    counts: Round
    record: RoundRecord | None = None
    end: End | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepped:
    """From the engine: one step is done.

    Attributes:
        progress: of the jobs that got tokens.
        running: sequences in slots.
        waiting: sequences without one.
        filled: share of the cache's rows that hold committed tokens of running sequences.
    """

    progress: tuple[Progress, ...]
    running: int
    waiting: int
    filled: float


Told = Ready | Failed | Refused | Stepped
