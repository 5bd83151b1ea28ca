"""The engine: many sequences at once over one target, one drafter and one cache. Knows token ids, not text."""

import time
from collections.abc import Iterator
from itertools import count

import torch

from outrider.acceptance import Round
from outrider.engine.ahead import Ahead, Read, form_of
from outrider.engine.costs import Costs
from outrider.engine.events import Logprob, Origin, TokenEvent
from outrider.engine.interfaces import Committed, Drafter, Slot, Target
from outrider.engine.logprobs import path_logprobs
from outrider.engine.params import SamplingParams
from outrider.engine.reuse import Reuse
from outrider.engine.rules import Rules
from outrider.engine.scheduler import Load, Scheduler
from outrider.engine.sequence import Sequence, Watch
from outrider.engine.step import Outcome, Rows, Stepper
from outrider.engine.tracing import Recorder, round_records
from outrider.engine.tree import DraftTree, Proposal
from outrider.errors import UsageError, VerificationError

BESIDE = 128  # likewise, on a CPU while others decode: there a chunk of 512 takes as long as a dozen rounds
CHUNK = 512  # prompt tokens read in one pass: long enough for matrix products, short enough to let others decode


class Engine:
    """Runs sequences: ``add`` them, call ``step`` until they end, ``cancel`` at any time.

    Args:
        target: the model whose text is wanted.
        drafter: what proposes.
        slots: sequences at once.
        max_len: longest sequence, prompt and output together.
        device: where the target lives.
        costs: what rounds cost by width; learnt as the engine runs.
        on_device: greedy rounds stay on the device where the drafter has a form for that (``engine.ahead``).

    Attributes:
        recorder: is told of every round, where set (``engine/tracing.py``).
    """

    def __init__(
        self,
        target: Target,
        drafter: Drafter,
        *,
        slots: int,
        max_len: int,
        device: torch.device,
        costs: Costs | None = None,
        on_device: bool = False,
    ) -> None:
        self.target, self.drafter, self.device = target, drafter, device
        self.costs = costs or Costs()
        self._scheduler = Scheduler(slots=slots, max_len=max_len)
        form = form_of(drafter) if on_device else None
        late = 0 if form is None else form.depth + form.width  # rows of a round that the host did not know of
        cache = target.new_cache(slots=slots, max_len=max_len + 1 + drafter.max_nodes + late)
        self._ahead = None if form is None else Ahead(target, cache, form, slots=slots, idle=max_len, device=device)
        self._stepper = Stepper(target, cache, drafter.taps, device)
        self._rules: dict[int, Rules] = {}
        self._ids = count()
        self._stepping = False
        self._cancelled: list[Sequence] = []
        self._reuse = Reuse(self._stepper, drafter, self._scheduler)
        self.recorder: Recorder | None = None

    def add(
        self,
        prompt: tuple[int, ...],
        params: SamplingParams,
        *,
        stop_ids: frozenset[int] = frozenset(),
        watch: Watch | None = None,
        draft_depth: int | None = None,
    ) -> Sequence:
        """Queue a prompt.

        Args:
            prompt: token ids.
            params: sampling settings.
            stop_ids: tokens that end the text, beside those of ``params``.
            watch: sees each new token; True ends the text (stop strings).
            draft_depth: deepest guess that may be drafted; 0 none at all, None as deep as the drafter likes.

        Raises:
            UsageError: the prompt is empty, does not fit, or holds an id outside the vocabulary.
        """
        self._check_ids(prompt, "prompt")
        self._check_ids(tuple(params.logit_bias), "logit_bias")
        self._check_ids(params.stop_token_ids, "stop_token_ids")
        ends = frozenset(params.stop_token_ids) | (frozenset() if params.ignore_eos else stop_ids)
        sequence = Sequence(id=next(self._ids), prompt=prompt, params=params, stop_ids=ends, draft_depth=draft_depth)
        if watch is not None:
            sequence.watch = watch
        self._scheduler.add(sequence)
        return sequence

    def _check_ids(self, ids: tuple[int, ...], where: str) -> None:
        wrong = self._unknown_id(ids)
        if wrong is not None:
            last = self.target.shape.vocab_size - 1
            raise UsageError(f"Token id {wrong} in {where}: expected 0 to {last}, the target's vocabulary.")

    def _unknown_id(self, ids: tuple[int, ...]) -> int | None:
        size = self.target.shape.vocab_size
        return next((token for token in ids if not 0 <= token < size), None)

    def cancel(self, sequence: Sequence) -> None:
        """Take a sequence out; nothing happens if it has ended. In the middle of a step it leaves with its end."""
        if sequence.finish_reason is None:
            sequence.finish_reason = "cancelled"
            self._cancelled.append(sequence)
        if not self._stepping:
            self._sweep()

    def _sweep(self) -> None:
        """Free what cancelled sequences hold."""
        for sequence in self._cancelled:
            self._scheduler.cancel(sequence.id)
            self._release(sequence)
        self._cancelled.clear()

    @property
    def busy(self) -> bool:
        """Whether anything waits or runs."""
        return self._scheduler.busy

    @property
    def load(self) -> Load:
        """How full it is."""
        return self._scheduler.load

    def run(self) -> Iterator[TokenEvent]:
        """Step until nothing is left."""
        while self.busy:
            yield from self.step()

    @torch.inference_mode()
    def step(self) -> list[TokenEvent]:
        """Read at most one chunk of prompts, then run one round for all that have read theirs."""
        self._stepping = True  # a watch, or the end of a dropped stream, may cancel in the middle
        try:
            return self._step()
        finally:
            self._stepping = False
            self._sweep()

    def _step(self) -> list[TokenEvent]:
        for sequence in self._scheduler.admit():
            self._begin(sequence)
        self._read_some()
        batch = self._scheduler.decoding()
        if self._ahead is None:
            return self._round(batch) if batch else []
        return self._step_ahead(self._ahead, batch)

    def _step_ahead(self, ahead: Ahead, batch: list[Sequence | None]) -> list[TokenEvent]:
        """Start a round before the last one is read; where one cannot be started on the device, read that first."""
        if batch and self.recorder is None and ahead.takes(batch):
            return self._take_read(ahead, ahead.launch(batch, self._first_slot(batch)))
        events = self._take_read(ahead, ahead.drain())
        batch = self._scheduler.decoding()
        if batch:
            ahead.forget()
            events += self._round(batch)
        return events

    def _take_read(self, ahead: Ahead, read: Read) -> list[TokenEvent]:
        """Hand out the tokens of a round that was read late."""
        events: list[TokenEvent] = []
        for sequence, tokens in read:
            sequence.round_ends.append(time.perf_counter())
            new = self._extend(sequence, tuple(tokens), None)
            kept = min(len(tokens) - 1, len(new))
            sequence.rounds.append(Round(drafted=ahead.drafted, depth=ahead.depth, accepted=kept))
            events += new
            if sequence.finish_reason is not None and not sequence.cancelled:
                self._scheduler.finish(sequence)
                self._release(sequence)
        return events

    def _first_slot(self, batch: list[Sequence | None]) -> int:
        return next(s for s in batch if s is not None).slot

    def _begin(self, sequence: Sequence) -> None:
        sequence.begun_at = sequence.read_at = time.perf_counter()
        rules = Rules(sequence.params, self.target.shape.vocab_size, self.device)
        rules.see_prompt(list(sequence.prompt))
        self._rules[sequence.slot] = rules
        self._reuse.make_room(sequence)
        self._stepper.begin(sequence.slot)
        self.drafter.begin(sequence.slot, sequence.prompt)
        self._reuse.begin(sequence)

    def _read_some(self) -> None:
        """Read prompts in turn, no more tokens than a chunk."""
        beside = self.device.type == "cpu" and self._scheduler.decoding()
        left = min(CHUNK, BESIDE) if beside else CHUNK
        while left > 0 and (sequence := self._scheduler.prefilling()) is not None:
            self._reuse.look_beside(sequence)
            if not sequence.prefilled:
                left -= self._read(sequence, left)

    def _read(self, sequence: Sequence, most: int) -> int:
        """Read a part of a prompt; return how many tokens."""
        start, end = sequence.committed, min(sequence.committed + most, len(sequence.prompt) - 1)
        rows = Rows(slice(sequence.slot, sequence.slot + 1), (start,))
        outcome = self._stepper.read_chunk(rows, sequence.prompt[start:end])
        sequence.committed = end
        self.drafter.observe(Committed((sequence.slot,), ((),), outcome.tree, outcome.walk, outcome.out))
        if self.device.type == "cuda":  # else the next round would be charged with this chunk
            torch.cuda.synchronize(self.device)
        sequence.read_at = time.perf_counter()
        return end - start

    def _round(self, batch: list[Sequence | None]) -> list[TokenEvent]:
        begun = time.perf_counter()
        first = self._first_slot(batch)
        slots = range(first, first + len(batch))
        self._reuse.written_over(slots)
        rows = Rows(
            slice(first, first + len(batch)),
            tuple(self._scheduler.committed(slot) for slot in slots),
        )
        proposals = self.drafter.propose([self._view(s) for s in batch], self.costs)
        self._check_proposals(proposals)
        tree = DraftTree.of([s.anchor if s else 0 for s in batch], proposals, self.device)
        rules = [self._rules[s.slot] if s else None for s in batch]
        outcome = self._stepper.run_round(rows, tree, rules)
        events = self._take(batch, proposals, outcome)
        seconds = time.perf_counter() - begun
        self.costs.observe(tree.width, seconds, rows=len(batch))
        if self.recorder is not None:
            for record in round_records(batch, rows, proposals, outcome, seconds=seconds):
                self.recorder(record)
        return events

    def _check_proposals(self, proposals: list[Proposal]) -> None:
        """Refuse what the cache has no room for and what is no word: a fault of the drafter."""
        for proposal in proposals:
            if len(proposal.tokens) > self.drafter.max_nodes:
                raise VerificationError(
                    f"Drafter {self.drafter.name!r} proposed {len(proposal.tokens)} nodes; it declares at most "
                    f"{self.drafter.max_nodes} (max_nodes)."
                )
            wrong = self._unknown_id(proposal.tokens)
            if wrong is not None:
                raise VerificationError(
                    f"Drafter {self.drafter.name!r} proposed token {wrong}; the target has "
                    f"{self.target.shape.vocab_size} words."
                )

    def _take(self, batch: list[Sequence | None], proposals: list[Proposal], outcome: Outcome) -> list[TokenEvent]:
        """Read the walk, the one place where the host waits for the device, and hand out its tokens."""
        tree, walk = outcome.tree, outcome.walk
        accepted = walk.accepted_B.tolist()
        paths = tree.tokens_BN.gather(1, walk.path_BN).tolist()
        bonus = walk.bonus_B.tolist()
        events: list[TokenEvent] = []
        taken: list[tuple[int, ...]] = []
        for row, sequence in enumerate(batch):
            if sequence is None or sequence.cancelled:
                taken.append(())
                continue
            sequence.round_ends.append(time.perf_counter())
            tokens = (*paths[row][1 : 1 + accepted[row]], bonus[row])
            wanted = sequence.params.logprobs
            logprobs = None if wanted is None else path_logprobs(outcome, row, tokens, wanted)
            new = self._extend(sequence, tokens, logprobs)
            # Where the text ends inside the path, what came after was not kept.
            kept = min(accepted[row], len(new))
            proposal = proposals[row]
            sequence.rounds.append(Round(drafted=len(proposal.tokens), depth=proposal.depth, accepted=kept))
            events += new
            taken.append(tuple(event.token for event in new))
        self._observe(batch, taken, outcome)
        return events

    def _extend(self, sequence: Sequence, tokens: tuple[int, ...], logprobs: list[Logprob] | None) -> list[TokenEvent]:
        """Add a walk's tokens up to where the text ends."""
        events = []
        for index, token in enumerate(tokens):
            ended = sequence.take(token)
            depth = index + 1 if index < len(tokens) - 1 else 0
            origin: Origin = "draft" if depth else "target"
            logprob = logprobs[index] if logprobs else None
            events.append(TokenEvent(sequence.id, token, origin, depth, logprob, sequence.finish_reason))
            if ended:
                break
        sequence.committed = sequence.length - 1
        return events

    def _observe(self, batch: list[Sequence | None], taken: list[tuple[int, ...]], outcome: Outcome) -> None:
        slots = tuple(-1 if s is None or s.cancelled else s.slot for s in batch)
        self.drafter.observe(Committed(slots, tuple(taken), outcome.tree, outcome.walk, outcome.out))
        for sequence, tokens in zip(batch, taken, strict=True):
            if sequence is None or sequence.cancelled:
                continue
            self._rules[sequence.slot].see_output(list(tokens))
            if sequence.finish_reason is not None:
                self._scheduler.finish(sequence)
                self._release(sequence)

    def _release(self, sequence: Sequence) -> None:
        if sequence.slot >= 0:
            self._reuse.keep(sequence)
            self.drafter.end(sequence.slot)
            self._rules.pop(sequence.slot, None)  # an interrupt may come before there are any

    def _view(self, sequence: Sequence | None) -> Slot | None:
        if sequence is None:
            return None
        return Slot(
            slot=sequence.slot,
            anchor=sequence.anchor,
            max_depth=sequence.guesses,
            position=sequence.length,
            rules=self._rules[sequence.slot],
        )
