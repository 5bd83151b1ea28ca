"""One sequence as text: pieces as they come, stop strings found across tokens, the completion at the end."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from outrider.acceptance import Acceptance, Round
from outrider.engine.events import Logprob, Origin, TokenEvent
from outrider.engine.sequence import FinishReason, Sequence
from outrider.text.stream import Detokenizer, StopStrings
from outrider.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Piece:
    """What one token added.

    Attributes:
        text: that became final with it; may be empty (half a character, a possible stop string).
        origin: whether the token was accepted from a draft or decided by the target.
        depth: of an accepted token in its draft tree, from 1; 0 where the target decided.
    """

    text: str
    token: int
    origin: Origin
    depth: int
    logprob: Logprob | None


@dataclass(frozen=True, slots=True)
class Completion:
    """A finished text and how it came about.

    Attributes:
        text: without stop string and special tokens.
        pieces: one a token; their texts joined are the text.
        rounds: counts of each round.
        prefill_seconds: reading the prompt, all but its last token.
        round_seconds: each round; the first one ends with the first new token.
    """

    text: str
    pieces: tuple[Piece, ...]
    prompt_tokens: int
    finish_reason: FinishReason
    rounds: tuple[Round, ...]
    prefill_seconds: float
    round_seconds: tuple[float, ...]

    @property
    def decode_seconds(self) -> float:
        """All rounds together."""
        return sum(self.round_seconds)

    @property
    def tokens(self) -> tuple[int, ...]:
        """Token ids of the output."""
        return tuple(piece.token for piece in self.pieces)

    @property
    def acceptance(self) -> Acceptance:
        """Counts, rates and lengths of this text."""
        return Acceptance.from_sequences([list(self.rounds)])

    @property
    def accepted_by_depth(self) -> tuple[int, ...]:
        """Tokens that were accepted from depth 1, 2, ... of their trees."""
        depths = [piece.depth for piece in self.pieces]
        return tuple(depths.count(depth) for depth in range(1, max(depths, default=0) + 1))

    @property
    def tokens_per_second(self) -> float:
        """New tokens a second of decoding, the prompt's time left out."""
        return len(self.pieces) / self.decode_seconds if self.decode_seconds else 0.0


class Transcript:
    """Follows one sequence; ``watch`` is called by the engine for each token, ``take`` for each event.

    Attributes:
        sequence: the engine's side of it, set when it is queued.
        pieces: what has come so far.
    """

    def __init__(self, tokenizer: Tokenizer, stop: tuple[str, ...]) -> None:
        self.sequence: Sequence
        self._detokenizer = Detokenizer(tokenizer)
        self._stops = StopStrings(stop)
        self._texts: list[str] = []
        self.pieces: list[Piece] = []

    def watch(self, token: int) -> bool:
        """Turn a token into text; say whether a stop string is complete."""
        text, stop = self._stops.push(self._detokenizer.push(token))
        self._texts.append(text)
        return stop is not None

    def take(self, event: TokenEvent) -> None:
        """Add the piece of a token; the last one carries what was held back."""
        text = self._texts[len(self.pieces)]
        if event.finish_reason is not None:
            text += self._rest()
        piece = Piece(text, event.token, event.origin, event.depth, event.logprob)
        self.pieces.append(piece)

    @property
    def finished(self) -> bool:
        """Whether the last piece has come."""
        return self.sequence.finish_reason is not None

    def cut(self, read: int) -> None:
        """Forget the pieces that nobody read; without them the text is a cancelled one."""
        if read < len(self.pieces):
            del self.pieces[read:]
            self.sequence.finish_reason = "cancelled"

    def _rest(self) -> str:
        text, _ = self._stops.push(self._detokenizer.flush())
        return text + self._stops.flush()

    def completion(self) -> Completion:
        """Return the finished text."""
        sequence = self.sequence
        assert sequence.finish_reason is not None  # noqa: S101 -- our own invariant: asked at the end
        return Completion(
            text="".join(piece.text for piece in self.pieces),
            pieces=tuple(self.pieces),
            prompt_tokens=len(sequence.prompt),
            finish_reason=sequence.finish_reason,
            rounds=tuple(sequence.rounds),
            prefill_seconds=sequence.read_at - sequence.begun_at,
            round_seconds=tuple(end - start for start, end in pairwise([sequence.read_at, *sequence.round_ends])),
        )


class Stream(Iterator[Piece]):
    """A text as it comes: one piece a token; whoever stops reading cancels the rest.

    Args:
        transcript: of a sequence that is queued.
        step: runs the engine on, for all sequences.
        drop: takes the sequence out of the engine, if it is still there.
    """

    def __init__(self, transcript: Transcript, *, step: Callable[[], None], drop: Callable[[Transcript], None]) -> None:
        self._transcript, self._step, self._drop = transcript, step, drop
        self._read = 0

    def __next__(self) -> Piece:
        transcript = self._transcript
        while self._read == len(transcript.pieces):
            if transcript.finished:
                raise StopIteration
            try:
                self._step()
            except BaseException:  # an interrupt too: nothing stays behind in the engine
                self.close()
                raise
        self._read += 1
        return transcript.pieces[self._read - 1]

    def close(self) -> None:
        """Cancel what was not read."""
        self._drop(self._transcript)
        self._transcript.cut(self._read)

    def completion(self) -> Completion:
        """Return what was read: the whole text, or a cancelled one, and then no more comes."""
        self.close()
        return self._transcript.completion()

    def __del__(self) -> None:
        self.close()
