"""Heads that correct a slot's logits by the token chosen before it: DFlash2's selector, DSpark's Markov head.

Shape letters: B batch rows, W paths of a row, C candidates of a slot, H hidden, R rank, V words.
"""

from copy import copy
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from outrider.models.dflash.config import DFlashConfig, Markov
from outrider.models.layers import BlockReader


class Correction(Protocol):
    """Scores that depend on the path."""

    @property
    def candidates(self) -> int | None:
        """Best words of a slot that it chooses among; None for all."""
        ...

    def start(self, batch: int) -> Tensor:
        """State before the first slot, [B, 1, ...]; empty where there is none."""
        ...

    def read_as(self, config: DFlashConfig) -> "Correction":
        """Return the same weights under another config."""
        ...

    def step(
        self, hidden_BH: Tensor, previous_BW: Tensor, state: Tensor, words_BC: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Score one slot's words after each path.

        Args:
            hidden_BH: of the slot.
            previous_BW: target id of the last token of each path.
            state: of each path, [B, W, ...].
            words_BC: the words to score, in the drafter's own ids; None for all.

        Returns:
            What is added to the slot's logits, [B, W, C], and the paths' new state.
        """
        ...


class Selector:
    """DFlash2: <A[previous] * (P hidden), S[word]> over the best candidates of a slot (z-lab, dflash 0.1.0)."""

    def __init__(self, config: DFlashConfig, reader: BlockReader) -> None:
        assert config.selector is not None  # noqa: S101 -- who builds it has asked
        self.candidates: int | None = config.selector.top_k
        name = "candidate_selector."
        self._predecessors_VR = reader.vector(f"{name}predecessor_codebook")
        self._successors_VR = reader.vector(f"{name}successor_codebook")
        self._projection = reader.linear(f"{name}hidden_projection")

    def read_as(self, config: DFlashConfig) -> "Selector":
        """Choose among another number of candidates."""
        assert config.selector is not None  # noqa: S101 -- the weights are a selector's
        other = copy(self)
        other.candidates = config.selector.top_k
        return other

    def start(self, batch: int) -> Tensor:
        """No state."""
        return self._predecessors_VR.new_empty(batch, 1, 0)

    def step(
        self, hidden_BH: Tensor, previous_BW: Tensor, state: Tensor, words_BC: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Score the candidates (see ``Correction``)."""
        assert words_BC is not None  # noqa: S101 -- ``candidates`` says that it never scores all
        wanted_BWR = functional.embedding(previous_BW, self._predecessors_VR) * self._projection(hidden_BH)[:, None]
        offered_BCR = functional.embedding(words_BC, self._successors_VR)
        return torch.einsum("bwr,bcr->bwc", wanted_BWR, offered_BCR), state


class MarkovHead:
    """DSpark: W2 f(W1[previous], hidden), f by kind (arXiv 2607.05147; speculators 0.9)."""

    candidates: int | None = None

    def __init__(self, markov: Markov, reader: BlockReader) -> None:
        self._markov = markov
        name = "markov_head."
        self._previous_VR = reader.vector(f"{name}markov_w1.weight")
        self._words_VR = reader.vector(f"{name}markov_w2.weight")
        joint = {"gated": "gate_proj", "rnn": "joint_proj"}.get(markov.kind)
        self._joint = None if joint is None else reader.linear(f"{name}{joint}", bias=True)

    def read_as(self, config: DFlashConfig) -> "MarkovHead":  # noqa: ARG002 -- nothing of it is a matter of reading
        """Return itself."""
        return self

    def start(self, batch: int) -> Tensor:
        """Zeros for the recurrence; no state otherwise."""
        return self._previous_VR.new_zeros(batch, 1, self._markov.rank if self._markov.kind == "rnn" else 0)

    def step(
        self, hidden_BH: Tensor, previous_BW: Tensor, state: Tensor, words_BC: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Score words (see ``Correction``)."""
        made_BWR, state = self._make(hidden_BH, functional.embedding(previous_BW, self._previous_VR), state)
        if words_BC is None:
            return made_BWR @ self._words_VR.T, state
        return torch.einsum("bwr,bcr->bwc", made_BWR, functional.embedding(words_BC, self._words_VR)), state

    def _make(self, hidden_BH: Tensor, previous_BWR: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        if self._joint is None:
            return previous_BWR, state
        hidden_BWH = hidden_BH[:, None].expand(-1, previous_BWR.shape[1], -1)
        if self._markov.kind == "gated":
            return self._project(hidden_BWH, previous_BWR).sigmoid() * previous_BWR, state
        gate, new, out = self._project(state, previous_BWR, hidden_BWH).chunk(3, -1)
        keep = gate.sigmoid()
        return out.tanh(), keep * state + (1 - keep) * new.tanh()

    def _project(self, *parts: Tensor) -> Tensor:
        assert self._joint is not None  # noqa: S101 -- our own invariant
        joined = torch.cat(parts, -1)
        return self._joint(joined.flatten(0, 1)).view(*joined.shape[:-1], -1)


def read_correction(config: DFlashConfig, reader: BlockReader) -> Correction | None:
    """Return the head that corrects by path, if the drafter has one."""
    if config.selector is not None:
        return Selector(config, reader)
    if config.markov is not None:
        return MarkovHead(config.markov, reader)
    return None


class ConfidenceHead:
    """DSpark: whether a slot's token will be accepted, from its hidden state and the token before."""

    def __init__(self, config: DFlashConfig, reader: BlockReader) -> None:
        self._projection = reader.linear("confidence_head.proj", bias=True)
        with_markov = config.confidence is not None and config.confidence.with_markov and config.markov is not None
        self._previous_VR = reader.vector("markov_head.markov_w1.weight") if with_markov else None

    def __call__(self, hidden_BKH: Tensor, previous_BK: Tensor) -> Tensor:
        """Return the probability of each slot's token, [B, K], given the token before it (target ids)."""
        read = hidden_BKH
        if self._previous_VR is not None:
            read = torch.cat((read, functional.embedding(previous_BK, self._previous_VR)), -1)
        logits_BK: Tensor = self._projection(read.flatten(0, 1)).view(read.shape[:-1])
        return logits_BK.sigmoid()


def read_confidence(config: DFlashConfig, reader: BlockReader) -> ConfidenceHead | None:
    """Return the head that foresees acceptance, if the drafter has one."""
    return None if config.confidence is None else ConfidenceHead(config, reader)
