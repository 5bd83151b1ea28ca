"""Replays a draft network over recorded texts: blocks at many anchors in one pass, in bounded memory.

A head that corrects a slot by the word before it is given the text's own word: up to the first wrong guess that is
what its greedy chain gives it, so accepted lengths are the same.
Shape letters: A anchors, K slots that predict, V words of the drafter, T tokens, F features, C candidates.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from outrider.engine.cache import Cache
from outrider.models.dflash.heads import Correction
from outrider.models.dflash.network import DFlash, Draft
from outrider.replay.recording import RecordedText, Recording
from outrider.replay.result import Replay, ReplayedText

CHUNK = 512  # tokens remembered in one pass
LOGITS = 1 << 26  # numbers of the logits of one pass, at most (256 MB)
SLOTS = 1024  # slots of all blocks of one pass, at most: each is a column of its attention
FLOOR = -20.0  # log-probabilities are not taken below it: one word that a drafter cannot say must not outweigh a text


def replay(
    network: DFlash, recording: Recording, anchors: Sequence[Sequence[int]] | None = None, *, walk_only: bool = False
) -> Replay:
    """Guess at every anchor of every text and compare with the text.

    Args:
        network: the draft model, on the target that wrote the texts.
        recording: the texts.
        anchors: of each text the positions to guess at, ascending, each in its ``anchors``; None for all.
        walk_only: follow the guesses of an anchor up to the first wrong one and no further; saves most of the head's
            work. No log-probabilities then, and what lies behind a wrong guess counts as wrong.
    """
    wanted = recording.anchors if anchors is None else anchors
    pairs = zip(recording.texts, wanted, strict=True)
    return Replay(tuple(_replay(network, text, list(some), walk_only=walk_only) for text, some in pairs))


@torch.inference_mode()
def _replay(network: DFlash, text: RecordedText, positions: list[int], *, walk_only: bool) -> ReplayedText:
    most = network.config.max_tokens
    right_AK = np.zeros((len(positions), most), dtype=np.bool_)
    log_probs_AK = np.full((len(positions), most), np.nan)
    # A head that corrects a slot by the word before it carries a state from slot to slot: it is asked them all.
    walking = walk_only and network.correction is None
    if positions:
        size = _anchors_a_pass(network)
        read_T = text.tokens_T[: positions[-1] + 1]  # nothing behind the last anchor is seen
        cache = _remember(network, text, positions[-1], min(size, len(positions)))
        for start in range(0, len(positions), size):
            some = positions[start : start + size]
            hidden_AKH = network.hidden_within(read_T, cache, 0, some)
            part = slice(start, start + len(some))
            if walking:
                right_AK[part] = _walk(network, hidden_AKH, text.tokens_T, some)
            else:
                draft = Draft(hidden_AKH, network.logits(hidden_AKH))
                right_AK[part], log_probs_AK[part] = _compare(network, draft, text.tokens_T, some)
    return ReplayedText(
        text.first, len(text.tokens_T), text.limit, np.array(positions, dtype=np.int64), right_AK, log_probs_AK
    )


def _walk(network: DFlash, hidden_AKH: Tensor, tokens_T: Tensor, positions: list[int]) -> NDArray[np.bool_]:
    """Whether each slot's best word is the text's and all before it were, [A, K]; others' logits are not made."""
    right_AK = np.zeros(hidden_AKH.shape[:2], dtype=np.bool_)
    held_A = torch.arange(len(positions), device=network.device)
    places_A = torch.tensor(positions, device=network.device)
    for slot in range(hidden_AKH.shape[1]):
        held_A = held_A[places_A[held_A] + slot + 1 < len(tokens_T)]
        if not len(held_A):
            break
        best_A = network.logits(hidden_AKH[held_A, slot, None])[:, 0].argmax(-1)
        if network.words is not None:
            best_A = network.words[best_A]
        held_A = held_A[best_A == tokens_T[places_A[held_A] + slot + 1]]
        right_AK[held_A.cpu().numpy(), slot] = True
    return right_AK


def _anchors_a_pass(network: DFlash) -> int:
    config = network.config
    words = config.draft_vocab_size or network.target_vocab
    return max(1, min(LOGITS // (config.max_tokens * words), SLOTS // config.block_size))


def _remember(network: DFlash, text: RecordedText, count: int, blocks: int) -> Cache:
    """Make the context keys of the first ``count`` tokens, in a cache with room for so many blocks behind the text."""
    cache = network.new_cache(slots=1, max_len=count + 1 + blocks * network.config.block_size)
    features_TF = text.features(network.config.taps, count).to(network.device)
    for start in range(0, count, CHUNK):
        some_1TF = features_TF[None, start : start + CHUNK]
        lengths_B = torch.tensor([start], device=network.device)
        network.remember(some_1TF, cache, slice(0, 1), lengths_B, span=start + some_1TF.shape[1])
    return cache


def _compare(
    network: DFlash, draft: Draft, tokens_T: Tensor, positions: list[int]
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Whether each slot's best word is the text's, and the log-probability of the text's word, both [A, K]."""
    slots_K = torch.arange(network.config.max_tokens, device=network.device)
    before_AK = torch.tensor(positions, device=network.device)[:, None] + slots_K
    inside_AK = before_AK + 1 < len(tokens_T)
    last = len(tokens_T) - 1
    previous_AK, wanted_AK = tokens_T[before_AK.clamp(max=last)], tokens_T[(before_AK + 1).clamp(max=last)]
    best_AK = _best(network, draft, previous_AK)
    own_AK = wanted_AK if network.words is None else _own_words(network.words, network.target_vocab)[wanted_AK]
    chosen_AK = draft.logits_BKV.gather(2, own_AK.clamp(min=0)[..., None])[..., 0]
    log_probs_AK = (chosen_AK - draft.logits_BKV.logsumexp(-1)).double()
    log_probs_AK = log_probs_AK.masked_fill(own_AK < 0, FLOOR).clamp(min=FLOOR).masked_fill(~inside_AK, float("nan"))
    return ((best_AK == wanted_AK) & inside_AK).cpu().numpy(), log_probs_AK.cpu().numpy()


def _best(network: DFlash, draft: Draft, previous_AK: Tensor) -> Tensor:
    """Each slot's best word, as the target counts; a head that corrects logits does so in place."""
    best_AK = _corrected(network.correction, draft, previous_AK) if network.correction else draft.logits_BKV.argmax(-1)
    return best_AK if network.words is None else network.words[best_AK]


def _corrected(correction: Correction, draft: Draft, previous_AK: Tensor) -> Tensor:
    """Correct slot after slot along the text; words that the head does not consider keep their logits."""
    state, best = correction.start(len(previous_AK)), []
    for slot, logits_AV in enumerate(draft.logits_BKV.unbind(1)):
        words_AC = None
        if correction.candidates is not None:
            words_AC = logits_AV.topk(correction.candidates, -1).indices
        hidden_AH, previous_A1 = draft.hidden_BKH[:, slot], previous_AK[:, slot, None]
        bias_A1C, state = correction.step(hidden_AH, previous_A1, state, words_AC)
        if words_AC is None:
            logits_AV.add_(bias_A1C[:, 0])
            best.append(logits_AV.argmax(-1))
        else:
            logits_AV.scatter_add_(1, words_AC, bias_A1C[:, 0])
            best.append(words_AC.gather(1, logits_AV.gather(1, words_AC).argmax(-1, keepdim=True))[:, 0])
    return torch.stack(best, 1)


def _own_words(words_V: Tensor, target_vocab: int) -> Tensor:
    """The drafter's index of each of the target's words, -1 for those it does not have."""
    own = torch.full((target_vocab,), -1, dtype=torch.int64, device=words_V.device)
    own[words_V] = torch.arange(len(words_V), device=words_V.device)
    return own
