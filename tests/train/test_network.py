"""The network in training is the network that is served: same hidden states for the same blocks."""

from dataclasses import replace

import pytest
import torch
from dflash.random_drafter import (
    MASKS,
    VARIANTS,
    config_of,
    network_of,
    random_drafter,
    random_features,
    random_target,
)
from train.rows import batch_of

from outrider.errors import UnsupportedError
from outrider.models.dflash.config import DFlashConfig
from outrider.train.lesson import Lesson, make_blocks
from outrider.train.network import DraftNetwork, Shown, Tables
from outrider.train.visibility import visible

TRAINED = [name for name in VARIANTS if config_of(name).kind == "dflash"]
LENGTHS, RESPONSES = (21, 9, 30, 17, 13), (6, 2, 11, 16, 1)


def texts_of(config: DFlashConfig) -> list[list[int]]:
    generator = torch.Generator().manual_seed(3)
    return [torch.randint(config.vocab_size - 1, (length,), generator=generator).tolist() for length in LENGTHS]


def trained_network(config: DFlashConfig, tensors, embed, head) -> DraftNetwork:
    network = DraftNetwork(config, Tables(embed, head, tensors.get("mask_embedding"))).double()
    network.take(tensors)
    return network


def shown_of(batch, blocks, config, features_BTF, *, flex=False) -> Shown:
    seen = visible(blocks, config.layers, flex=flex)
    return Shown(features_BTF, blocks.ids_BAN, blocks.positions_BS, seen, batch.blocks_P)


def features_of(batch, features: list[torch.Tensor], texts: list[list[int]]) -> torch.Tensor:
    """Lay the features of each text where its tokens lie."""
    features_BTF = torch.zeros(*batch.tokens_BT.shape, features[0].shape[-1], dtype=torch.float64)
    for row, column in batch.document_BT.ge(0).nonzero().tolist():
        if batch.position_BT[row, column] == 0:
            number = next(
                i for i, text in enumerate(texts) if batch.tokens_BT[row, column : column + len(text)].tolist() == text
            )
            features_BTF[row, column : column + len(texts[number])] = features[number]
    return features_BTF


def served_hidden(network, text, features_TF, anchor):
    config = network.config
    cache = network.new_cache(slots=1, max_len=len(text) + config.block_size)
    network.remember(features_TF[None], cache, slice(0, 1), torch.tensor([0]), span=len(text))
    draft = network.draft_within(torch.tensor(text[: anchor + 1]), cache, 0, [anchor])
    return draft.hidden_BKH[0], draft.logits_BKV[0]


def check_equal(config: DFlashConfig) -> None:
    """Compare every block of a batch with what the served network makes of it."""
    tensors = random_drafter(config)
    target, embed, head = random_target(config)
    texts = texts_of(config)
    features = [random_features(config, len(text), seed=number) for number, text in enumerate(texts)]
    batch = batch_of(texts, RESPONSES, block_size=config.block_size)
    blocks = make_blocks(batch, Lesson.served(config))
    network, served = trained_network(config, tensors, embed, head), network_of(config, tensors, target)
    with torch.no_grad():
        hidden_PKH = network(shown_of(batch, blocks, config, features_of(batch, features, texts)))
        logits_PKV = network.logits(hidden_PKH)
    assert len(hidden_PKH) == len(batch.blocks_P) > 6
    for block, place in enumerate(batch.blocks_P.tolist()):
        row, anchor = divmod(place, batch.anchors_BA.shape[1])
        column = int(batch.anchors_BA[row, anchor])
        position = int(batch.position_BT[row, column])
        start = column - position
        number = next(
            i for i, text in enumerate(texts) if batch.tokens_BT[row, start : start + len(text)].tolist() == text
        )
        hidden_KH, logits_KV = served_hidden(served, texts[number], features[number], position)
        torch.testing.assert_close(hidden_PKH[block], hidden_KH, rtol=0, atol=1e-9)
        torch.testing.assert_close(logits_PKV[block], logits_KV, rtol=0, atol=1e-9)


@pytest.mark.parametrize("variant", TRAINED)
def test_a_block_in_training_is_the_block_that_is_served(variant):
    check_equal(config_of(variant))


@pytest.mark.parametrize("masks", MASKS)
def test_layers_see_in_training_what_they_see_when_served(masks):
    check_equal(config_of(layers=MASKS[masks]))


def test_float32_differs_by_rounding_alone():
    config = config_of()
    tensors = {name: tensor.float() for name, tensor in random_drafter(config).items()}
    _, embed, head = random_target(config)
    texts = texts_of(config)
    batch = batch_of(texts, RESPONSES, block_size=config.block_size)
    blocks = make_blocks(batch, Lesson.served(config))
    features = [random_features(config, len(text), seed=number) for number, text in enumerate(texts)]
    shown = shown_of(batch, blocks, config, features_of(batch, features, texts))
    single = DraftNetwork(config, Tables(embed.float(), head.float()))
    single.take(tensors)
    with torch.no_grad():
        exact = trained_network(config, tensors, embed, head)(shown)
        rounded = single(replace(shown, features_BTF=shown.features_BTF.float()))
    torch.testing.assert_close(rounded.double(), exact, rtol=0, atol=1e-5)


@pytest.mark.filterwarnings("ignore:flex_attention called without")
def test_flex_attention_sees_what_the_dense_mask_shows():
    config = config_of()
    tensors = random_drafter(config)
    _, embed, head = random_target(config)
    network = trained_network(config, tensors, embed, head)
    texts = texts_of(config)
    batch = batch_of(texts, RESPONSES, block_size=config.block_size)
    blocks = make_blocks(batch, Lesson.served(config))
    features = [random_features(config, len(text), seed=number) for number, text in enumerate(texts)]
    features_BTF = features_of(batch, features, texts)
    with torch.no_grad():  # on a CPU it has no backward pass
        dense, flex = (network(shown_of(batch, blocks, config, features_BTF, flex=flex)) for flex in (False, True))
    torch.testing.assert_close(flex, dense, rtol=0, atol=1e-9)


@pytest.mark.parametrize("variant", TRAINED)
def test_the_tensors_have_the_names_and_shapes_of_the_format(variant):
    config = config_of(variant)
    _, embed, head = random_target(config)
    network = DraftNetwork(config, Tables(embed, head))
    assert {name: tuple(tensor.shape) for name, tensor in network.weights().items()} == config.tensor_shapes()


@pytest.mark.parametrize("variant", ["dflash2", "dspark"])
def test_successors_are_refused(variant):
    config = config_of(variant)
    _, embed, head = random_target(config)
    with pytest.raises(UnsupportedError, match="expected dflash"):
        DraftNetwork(config, Tables(embed, head))
