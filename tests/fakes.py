"""Drafters that want to break the engine. Each keeps the texts it is told of, as real ones do."""

from collections.abc import Callable, Mapping

import numpy as np
import torch

from outrider.engine.costs import Costs
from outrider.engine.interfaces import Committed, Slot
from outrider.engine.tree import Proposal

Law = Callable[[tuple[int, ...]], np.ndarray]


class Free(Costs):
    """A machine on which nodes cost nothing, so that a drafter always drafts."""

    def of(self, width: int, rows: int = 1) -> float:
        return 1.0

    def knows(self, rows: int) -> bool:
        return True


class FakeDrafter:
    """Keeps the text of each slot; a subclass guesses from it."""

    name = "fake"
    max_nodes = 12
    taps: tuple[int, ...] = ()
    draws = False

    def __init__(self, seed: int = 0) -> None:
        self.texts: dict[int, list[int]] = {}
        self.prompts: dict[int, tuple[int, ...]] = {}
        self.rng = np.random.default_rng(seed)

    def begin(self, slot: int, prompt: tuple[int, ...]) -> None:
        assert slot not in self.texts, "two sequences in one slot"
        self.texts[slot] = list(prompt)
        self.prompts[slot] = prompt

    def share(self, source, slot, count) -> bool:
        return False

    def propose(self, slots: list[Slot | None], costs: Costs) -> list[Proposal]:
        return [Proposal() if slot is None else self._checked(slot) for slot in slots]

    def _checked(self, slot: Slot) -> Proposal:
        assert slot.anchor == self.texts[slot.slot][-1], "the drafter was not told the whole text"
        return self.guess(slot)

    def guess(self, slot: Slot) -> Proposal:
        raise NotImplementedError

    def observe(self, committed: Committed) -> None:
        for slot, tokens in zip(committed.slots, committed.tokens, strict=True):
            if slot >= 0:
                self.texts[slot] += tokens

    def end(self, slot: int) -> None:
        del self.texts[slot], self.prompts[slot]


class RandomTree(FakeDrafter):
    """Trees of any shape with any words; sometimes none at all; deeper than there is room for."""

    def __init__(self, vocab: int, seed: int = 0, *, lowest: int = 0) -> None:
        super().__init__(seed)
        self._vocab = vocab
        self._lowest = lowest

    def guess(self, slot: Slot) -> Proposal:
        pairs: list[tuple[int, int]] = []
        for node in range(1, 1 + int(self.rng.integers(self._lowest, self.max_nodes + 1))):
            pair = (int(self.rng.integers(node)), int(self.rng.integers(self._vocab)))
            while pair in pairs:
                pair = (int(self.rng.integers(node)), int(self.rng.integers(self._vocab)))
            pairs.append(pair)
        return Proposal(tuple(t for _, t in pairs), tuple(p for p, _ in pairs))


class Flood(RandomTree):
    """Always as many nodes as it said it would."""

    def __init__(self, vocab: int, seed: int = 0) -> None:
        super().__init__(vocab, seed, lowest=self.max_nodes)


class Oracle(FakeDrafter):
    """Knows the continuation: proposes some of it, hidden among wrong siblings with children of their own."""

    max_nodes = 24

    def __init__(self, known: Mapping[tuple[int, ...], list[int]], vocab: int, seed: int = 0) -> None:
        super().__init__(seed)
        self._known, self._vocab = known, vocab

    def right(self, slot: int) -> list[int]:
        done = len(self.texts[slot]) - len(self.prompts[slot])
        return self._known[self.prompts[slot]][done:]

    def guess(self, slot: Slot) -> Proposal:
        tokens: list[int] = []
        parents: list[int] = []
        spine = 0
        for right in self.right(slot.slot)[: int(self.rng.integers(0, 7))]:
            others = [t for t in range(self._vocab) if t != right]
            family = self.rng.choice(others, int(self.rng.integers(0, 3)), replace=False).tolist()
            family.insert(int(self.rng.integers(len(family) + 1)), right)
            first = len(tokens) + 1
            tokens += family
            parents += [spine] * len(family)
            spine = first + family.index(right)
            if len(family) > 1:  # a child under a wrong sibling or under the right one: never both alike
                stray = first + (family.index(right) + 1) % len(family)
                tokens.append(int(self.rng.integers(self._vocab)))
                parents.append(stray)
        return Proposal(tuple(tokens), tuple(parents))


class AlwaysWrong(Oracle):
    """Chains that start with a word the target will not say."""

    def guess(self, slot: Slot) -> Proposal:
        right = self.right(slot.slot)[0]
        first = (right + 1 + int(self.rng.integers(self._vocab - 1))) % self._vocab
        rest = self.rng.integers(self._vocab, size=int(self.rng.integers(0, 5))).tolist()
        return Proposal.chain([first, *rest])


class SampledChain(FakeDrafter):
    """Chains of random length drawn from a law of its own, which it hands over."""

    def __init__(self, law: Law, seed: int = 0, *, longest: int = 3) -> None:
        super().__init__(seed)
        self._law, self._longest = law, longest

    def guess(self, slot: Slot) -> Proposal:
        text = tuple(self.texts[slot.slot])
        laws: list[np.ndarray] = []
        depth = min(slot.max_depth, int(self.rng.integers(self._longest + 1)))
        for _ in range(depth):
            laws.append(self._law(text))
            text += (self.pick(laws[-1]),)
        if not laws:
            return Proposal()
        return Proposal.chain(text[-depth:], torch.from_numpy(np.stack(laws)))

    def pick(self, law: np.ndarray) -> int:
        return int(self.rng.choice(len(law), p=law))


class Dishonest(SampledChain):
    """Proposes the likeliest word and says it was drawn: lossless verification is impossible."""

    def pick(self, law: np.ndarray) -> int:
        return int(law.argmax())


class Recorder(RandomTree):
    """Keeps the hidden states and taps of every committed position, as a drafter with layers does."""

    taps = (0, 2)

    def __init__(self, vocab: int, seed: int = 0) -> None:
        super().__init__(vocab, seed)
        self.states: dict[int, list[torch.Tensor]] = {}
        self.finished: dict[tuple[int, ...], torch.Tensor] = {}

    def begin(self, slot: int, prompt: tuple[int, ...]) -> None:
        super().begin(slot, prompt)
        self.states[slot] = []

    def observe(self, committed: Committed) -> None:
        super().observe(committed)
        out = committed.out
        joined = torch.cat([out.hidden_BNH, *(out.taps[tap] for tap in self.taps)], -1)
        for row, slot in enumerate(committed.slots):
            if slot >= 0:
                kept = 1 + int(committed.walk.accepted_B[row])
                self.states[slot].append(joined[row, committed.walk.path_BN[row, :kept]])

    def end(self, slot: int) -> None:
        self.finished[tuple(self.texts[slot])] = torch.cat(self.states.pop(slot))
        super().end(slot)
