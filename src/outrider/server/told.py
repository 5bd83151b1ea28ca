"""From pieces and rounds to what the API says of them: usage, acceptance, origins, log-probabilities."""

from collections.abc import Iterable, Sequence

from outrider.acceptance import Acceptance, Round
from outrider.engine.tracing import RoundRecord
from outrider.server.answers import (
    AcceptanceAnswer,
    ChatLogprob,
    ChatLogprobs,
    CompletionDetails,
    CompletionLogprobs,
    NodeAnswer,
    PromptDetails,
    RoundAnswer,
    TokenAnswer,
    TopLogprob,
    Usage,
)
from outrider.server.messages import Progress
from outrider.text.tokenizer import Tokenizer
from outrider.transcript import Piece

LOWEST = -9999.0  # JSON has no infinity; a word that cannot come has this, as in OpenAI's answers


class Tally:
    """What one request took, over its texts, so far.

    Args:
        prompts: tokens of each prompt; one that several choices share counts once.
    """

    def __init__(self, prompts: Iterable[int]) -> None:
        self._prompt_tokens = sum(prompts)
        self._tokens = self._cached = 0
        self._rounds: list[list[Round]] = []

    def add(self, progress: Progress) -> None:
        """Count what a step brought."""
        self._tokens += len(progress.pieces)
        if progress.end is not None:
            self._cached += progress.end.cached
            self._rounds.append(list(progress.end.rounds))

    @property
    def completion_tokens(self) -> int:
        """Tokens written."""
        return self._tokens

    @property
    def acceptance(self) -> Acceptance:
        """Of the texts that ended."""
        return Acceptance.from_sequences(self._rounds)

    def usage(self) -> Usage:
        """Return it as OpenAI has it."""
        acceptance = self.acceptance
        return Usage(
            prompt_tokens=self._prompt_tokens,
            completion_tokens=self._tokens,
            total_tokens=self._prompt_tokens + self._tokens,
            prompt_tokens_details=PromptDetails(cached_tokens=min(self._cached, self._prompt_tokens)),
            completion_tokens_details=CompletionDetails(
                accepted_prediction_tokens=acceptance.num_accepted,
                rejected_prediction_tokens=acceptance.num_drafted - acceptance.num_accepted,
            ),
        )

    def told(self) -> AcceptanceAnswer:
        """Return acceptance by position."""
        acceptance = self.acceptance
        return AcceptanceAnswer(
            rounds=acceptance.num_rounds,
            drafted=acceptance.num_drafted,
            accepted=acceptance.num_accepted,
            length=acceptance.length,
            rate=acceptance.rate,
            position_rates=list(acceptance.position_rates),
        )


class Words:
    """Token ids as words."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def text(self, token: int) -> str:
        """Return a token's text; of a part of a character, which has none, the vocabulary's own writing."""
        text = self._tokenizer.token_text(token)
        return self._tokenizer.piece(token) or text if "\ufffd" in text else text

    def tokens(self, progress: Progress) -> list[TokenAnswer]:
        """Return where each token of a step came from."""
        last = "bonus" if progress.counts.drafted else "plain"
        return [
            TokenAnswer(
                token=piece.token,
                text=self.text(piece.token),
                kind="draft" if piece.depth else last,
                depth=piece.depth,
            )
            for piece in progress.pieces
        ]

    def round(self, record: RoundRecord) -> RoundAnswer:
        """Return a round with its tree."""
        reach = record.reach or [None] * len(record.tokens)
        nodes = [
            NodeAnswer(token=token, text=self.text(token), parent=parent, target=target, reach=hoped)
            for token, parent, target, hoped in zip(record.tokens, record.parents, record.target, reach, strict=True)
        ]
        return RoundAnswer(
            anchor=self.text(record.anchor),
            nodes=nodes,
            path=list(record.path),
            bonus=self.text(record.bonus),
            seconds=record.seconds,
        )

    def chat_logprobs(self, pieces: Sequence[Piece]) -> ChatLogprobs:
        """Return those of a chat's tokens; each piece has one."""
        return ChatLogprobs(content=[self._chat_logprob(piece) for piece in pieces])

    def _chat_logprob(self, piece: Piece) -> ChatLogprob:
        assert piece.logprob is not None  # noqa: S101 -- asked for with the request
        own = self._top(piece.token, piece.logprob.chosen)
        top = [self._top(token, value) for token, value in piece.logprob.top]
        return ChatLogprob(**own.model_dump(), top_logprobs=top)

    def _top(self, token: int, value: float) -> TopLogprob:
        text = self.text(token)
        return TopLogprob(token=text, logprob=max(value, LOWEST), bytes=list(text.encode()))

    def completion_logprobs(self, pieces: Sequence[Piece], offset: int) -> CompletionLogprobs:
        """Return those of a completion's tokens; ``offset`` is where their text begins in the whole."""
        told = CompletionLogprobs(tokens=[], token_logprobs=[], top_logprobs=[], text_offset=[])
        for piece in pieces:
            assert piece.logprob is not None  # noqa: S101 -- asked for with the request
            told.tokens.append(self.text(piece.token))
            told.token_logprobs.append(max(piece.logprob.chosen, LOWEST))
            told.top_logprobs.append({self.text(token): max(value, LOWEST) for token, value in piece.logprob.top})
            told.text_offset.append(offset)
            offset += len(piece.text)
        return told
