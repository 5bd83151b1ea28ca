"""Our network, with its cache, against the dense one of ``reference.py``, in float64."""

from dataclasses import dataclass, replace
from itertools import pairwise

import pytest
import torch
from dflash.random_drafter import (
    CAUSAL,
    MASKS,
    VARIANTS,
    WINDOW,
    config_of,
    network_of,
    random_drafter,
    random_features,
    random_target,
)
from dflash.reference import Tensors, draft_hidden, draft_logits
from torch import Tensor

from outrider.models.dflash.config import DFlashConfig
from outrider.models.dflash.network import DFlash, Draft

TOLERANCE = 1e-6
BATCH = 4
LONG = 5 * WINDOW + 3


@dataclass
class Fixture:
    """One drafter, ours and the dense one."""

    config: DFlashConfig
    tensors: Tensors
    embed: Tensor
    head: Tensor
    network: DFlash

    def expected(self, features_TF: Tensor, anchor: int) -> Tensor:
        return draft_logits(self.config, self.tensors, self.embed, self.head, features_TF, anchor)


def fixture_of(config: DFlashConfig, seed: int = 0) -> Fixture:
    target, embed, head = random_target(config, seed)
    tensors = random_drafter(config, seed)
    return Fixture(config, tensors, embed, head, network_of(config, tensors, target))


class Feed:
    """Rows that remember and draft as an engine has them do."""

    def __init__(self, network: DFlash, batch: int = 1) -> None:
        self.network, self.rows = network, slice(0, batch)
        self.cache = network.new_cache(slots=batch, max_len=2 * LONG)
        self.lengths_B = torch.zeros(batch, dtype=torch.int64)

    def remember(self, features_BNF: Tensor, new: list[int]) -> None:
        """Show all given rows; only the first ``new`` of each count."""
        span = int(self.lengths_B.max()) + features_BNF.shape[1]
        self.network.remember(features_BNF, self.cache, self.rows, self.lengths_B, span=span)
        self.lengths_B = self.lengths_B + torch.tensor(new)

    def draft(self, anchors: list[int]) -> Draft:
        span = int(self.lengths_B.max()) + self.network.config.block_size
        return self.network.draft(torch.tensor(anchors), self.cache, self.rows, self.lengths_B, span=span)


def assert_equal(found: Tensor, expected: Tensor) -> None:
    assert found.shape == expected.shape
    assert found.dtype == torch.float64
    assert float((found - expected).abs().max()) <= TOLERANCE


@pytest.mark.parametrize("block", [4, 8, 16, 24])
@pytest.mark.parametrize("masks", MASKS)
def test_logits_equal_the_dense_ones_at_contexts_around_and_beyond_the_window(masks, block):
    made = fixture_of(config_of(layers=MASKS[masks], block_size=block), seed=block)
    for context in (0, 1, WINDOW - 1, WINDOW, WINDOW + 1, 2 * WINDOW + 1, LONG):
        features_TF = random_features(made.config, context, seed=context)
        feed = Feed(made.network)
        feed.remember(features_TF[None], [context])
        assert_equal(feed.draft([7]).logits_BKV[0], made.expected(features_TF, 7))


@pytest.mark.parametrize("variant", VARIANTS)
def test_logits_of_every_variant_equal_the_dense_ones(variant):
    made = fixture_of(config_of(variant), seed=1)
    features_TF = random_features(made.config, LONG)
    feed = Feed(made.network)
    feed.remember(features_TF[None], [LONG])
    draft = feed.draft([11])
    assert_equal(draft.logits_BKV[0], made.expected(features_TF, 11))
    hidden_NH = draft_hidden(made.config, made.tensors, made.embed, features_TF, 11)
    assert_equal(draft.hidden_BKH[0], hidden_NH[-made.config.max_tokens :])


@pytest.mark.parametrize("masks", MASKS)
def test_a_context_fed_in_chunks_is_the_context_fed_at_once(masks):
    made = fixture_of(config_of(layers=MASKS[masks]))
    features_TF = random_features(made.config, LONG)
    feed = Feed(made.network)
    for start, end in pairwise([0, 1, 4, 4 + WINDOW, 20, LONG]):
        feed.remember(features_TF[None, start:end], [end - start])
    assert_equal(feed.draft([3]).logits_BKV[0], made.expected(features_TF, 3))


@pytest.mark.parametrize("batch", [1, BATCH])
@pytest.mark.parametrize("variant", ["plain", "sinks", "anchor predicts", "dflash2", "head of fewer words"])
@pytest.mark.parametrize("masks", ["full", "sliding causal", "sliding non-causal", "mixed"])
def test_rounds_of_any_accepted_length_leave_no_trace_of_rejected_rows(masks, variant, batch):
    made = fixture_of(config_of(variant, layers=MASKS[masks]), seed=batch)
    block = made.config.block_size
    generator = torch.Generator().manual_seed(5)
    texts_BTF = random_features(made.config, batch, LONG, seed=1)
    feed = Feed(made.network, batch)
    feed.remember(texts_BTF[:, :9], [9, 2, 0, 5][:batch])
    while int(feed.lengths_B.max()) + block <= LONG:
        anchors = torch.randint(made.config.vocab_size, (batch,), generator=generator).tolist()
        logits_BKV = feed.draft(anchors).logits_BKV
        for row, (anchor, length) in enumerate(zip(anchors, feed.lengths_B.tolist(), strict=True)):
            assert_equal(logits_BKV[row], made.expected(texts_BTF[row, :length], anchor))
        verified_BNF = 50 + random_features(made.config, batch, block, seed=int(feed.lengths_B.sum()))
        accepted = _accepted(int(feed.lengths_B.sum()), batch, block, generator)
        for row, (length, kept) in enumerate(zip(feed.lengths_B.tolist(), accepted, strict=True)):
            verified_BNF[row, : kept + 1] = texts_BTF[row, length : length + kept + 1]
        feed.remember(verified_BNF, [kept + 1 for kept in accepted])


def _accepted(seen: int, batch: int, block: int, generator: torch.Generator) -> list[int]:
    """None and all of a block in turn, else anything."""
    drawn = torch.randint(block, (batch,), generator=generator).tolist()
    return [(0, block - 1, kept)[(seen + row) % 3] for row, kept in enumerate(drawn)]


def test_a_row_does_not_depend_on_its_neighbours():
    made = fixture_of(config_of())
    texts_BTF = random_features(made.config, BATCH, LONG)
    lengths = [LONG, 1, WINDOW, 0]
    feed = Feed(made.network, BATCH)
    feed.remember(texts_BTF, lengths)
    together = feed.draft([5, 6, 7, 8]).logits_BKV
    for row, length in enumerate(lengths):
        alone = Feed(made.network)
        alone.remember(texts_BTF[row : row + 1, :length], [length])
        assert_equal(alone.draft([5 + row]).logits_BKV[0], together[row])


def test_slots_of_the_cache_that_are_not_first_serve_as_well():
    made = fixture_of(config_of())
    features_TF = random_features(made.config, LONG)
    feed = Feed(made.network, 3)
    feed.rows, feed.lengths_B = slice(2, 3), torch.zeros(1, dtype=torch.int64)
    feed.remember(features_TF[None], [LONG])
    assert_equal(feed.draft([9]).logits_BKV[0], made.expected(features_TF, 9))


def test_a_variant_reads_the_same_weights_under_other_masks_and_scales():
    made = fixture_of(config_of())
    other = replace(made.config, layers=(CAUSAL,) * 3, mask_token=3, embedding_scale=2.0, soft_cap=4.0, block_size=5)
    features_TF = random_features(made.config, LONG)
    feed = Feed(made.network.variant(other))
    feed.remember(features_TF[None], [LONG])
    expected = draft_logits(other, made.tensors, made.embed, made.head, features_TF, 2)
    assert_equal(feed.draft([2]).logits_BKV[0], expected)


def test_a_variant_with_another_rope_turns_context_and_block_by_it():
    made = fixture_of(config_of())
    other = replace(made.config, rope=config_of("llama3 rope").rope)
    features_TF = random_features(made.config, LONG)
    feed = Feed(made.network.variant(other))
    feed.remember(features_TF[None], [LONG])
    expected = draft_logits(other, made.tensors, made.embed, made.head, features_TF, 2)
    assert_equal(feed.draft([2]).logits_BKV[0], expected)
