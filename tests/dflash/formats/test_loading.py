"""From files to a network: what is drafted is what the weights in the files say, in every format and variant."""

import os
import pickle

import pytest
import torch
from dflash.drafter_files import write_drafter
from dflash.formats.drafters import DFLASH2, DSPARK, config_of, features_of, logits_of, source_of, weights
from dflash.formats.test_speculators import write_speculators
from tiny_model import write_tiny_model

from outrider.errors import CheckpointError, UsageError
from outrider.models.dflash.formats import read_drafter
from outrider.models.dflash.loading import load_dflash

VARIANTS = {
    "plain": {},
    "no biases": {"attention_bias": False},
    "sinks": {"attention_sink_bias": True},
    "scaled values": {"attention_value_scale": 0.6},
    "scales and cap": {"input_embedding_scale": 5.0, "output_multiplier": 0.3, "final_logit_softcapping": 2.0},
    "not causal": {"is_causal": False},
    "causal": {"is_causal": True},
    "a third of the words": {"draft_vocab_size": 88},
    "dflash2": DFLASH2,
    "dspark": DSPARK,
    "anchor predicts": {"sample_from_anchor": True},
}


def vector(seed=3):
    return torch.randn(32, generator=torch.Generator().manual_seed(seed))


def assert_drafts(target, path, tensors, *allow):
    network = target.load(path, *allow)
    features = features_of(network.config)
    expected = target.expected(network.config, tensors, features)
    found = logits_of(network, features)
    assert found.shape == expected.shape
    assert torch.allclose(found, expected, rtol=0, atol=1e-9)
    return network


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_z_lab_folder_drafts_what_its_weights_say(tmp_path, target, variant):
    changes = VARIANTS[variant]
    assert_drafts(target, write_drafter(tmp_path, **changes), weights(**changes))


@pytest.mark.parametrize("kind", ["dflash", "dflash2", "dspark"])
def test_a_speculators_folder_drafts_what_its_weights_say(tmp_path, target, kind):
    heads = {"dflash": {}, "dflash2": DFLASH2, "dspark": DSPARK}[kind]
    own = {key: value for key, value in heads.items() if key != "is_causal"}
    assert_drafts(target, write_speculators(tmp_path, kind, drafter=heads, **own), weights(**heads))


def test_own_tables_are_used_in_place_of_the_targets(tmp_path, target):
    tables = {"embed_tokens.weight": torch.randn(265, 32), "lm_head.weight": torch.randn(265, 32)}
    assert_drafts(target, write_drafter(tmp_path, tensors=tables), weights() | tables)


def test_words_of_a_reduced_vocabulary_are_target_ids(tmp_path, target):
    network = target.load(write_drafter(tmp_path, draft_vocab_size=80))
    assert network.words.tolist() == [3 * word for word in range(80)]


@pytest.mark.parametrize("shape", [(32,), (1, 32)])
def test_a_mask_embedding_among_the_tensors_stands_in_the_masked_slots(tmp_path, target, shape):
    folder = write_drafter(tmp_path, mask_token_id=None, tensors={"mask_embedding": vector().view(shape)})
    assert_drafts(target, folder, weights() | {"mask_embedding": vector()})


@pytest.mark.parametrize("held", ["vector", "with its token"])
def test_a_mask_embedding_in_its_own_file_stands_in_the_masked_slots(tmp_path, target, held):
    folder = write_drafter(tmp_path)
    whole = vector() if held == "vector" else {"mask_token_id": 264, "embedding": vector()}
    torch.save(whole, folder / "mask_embedding.pt")
    assert config_of(folder).mask_embedding
    assert_drafts(target, folder, weights() | {"mask_embedding": vector()})


def refused(target, path, *allow):
    with pytest.raises(CheckpointError) as caught:
        target.load(path, *allow)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_code_in_a_mask_embedding_is_not_run(tmp_path, target):
    trace = tmp_path / "trace"

    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(trace),)

    folder = write_drafter(tmp_path / "drafter")
    (folder / "mask_embedding.pt").write_bytes(pickle.dumps(Evil()))
    assert "Cannot read" in refused(target, folder)
    torch.save(Evil(), folder / "mask_embedding.pt")
    assert "Cannot read" in refused(target, folder)
    assert not trace.exists()


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 broken", b"\x80\x02."])
def test_a_damaged_mask_embedding_is_said(tmp_path, target, data):
    folder = write_drafter(tmp_path)
    (folder / "mask_embedding.pt").write_bytes(data)
    assert "mask_embedding.pt" in refused(target, folder)


@pytest.mark.parametrize(
    ("held", "words"),
    [
        (torch.ones(16), "expected a vector of 32, found [16]"),
        ({"embedding": [1.0]}, "expected a vector of 32, found list"),
        ({"mask_token_id": 3, "embedding": torch.ones(32)}, "for the mask token 3, the config names 264"),
    ],
)
def test_a_mask_embedding_that_does_not_belong_is_said(tmp_path, target, held, words):
    folder = write_drafter(tmp_path)
    torch.save(held, folder / "mask_embedding.pt")
    assert words in refused(target, folder)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (torch.arange(40) + 230, "found ids from 230 to 308"),
        (torch.arange(40) * 0 - 1, "found ids from -1 to 38"),
        (-torch.arange(40), "found ids from 0 to 0, 1 of them different"),
    ],
)
def test_a_table_of_words_that_cannot_be_is_said(tmp_path, target, table, words):
    folder = write_drafter(tmp_path, draft_vocab_size=40, tensors={"d2t": table})
    assert words in refused(target, folder)


def test_weights_that_are_not_finite_are_said(tmp_path, target):
    folder = write_drafter(tmp_path, tensors={"norm.weight": torch.full((32,), torch.nan)})
    assert "norm.weight holds values that are not finite" in refused(target, folder)


@pytest.mark.parametrize("changes", [{}, DFLASH2, DSPARK, {"draft_vocab_size": 40}])
def test_dummy_weights_need_no_values(tmp_path, target, changes):
    draft = read_drafter(source_of(write_drafter(tmp_path, **changes)))
    network = load_dflash(draft, target.decoder, dummy=True)
    assert logits_of(network, features_of(draft.config)).isfinite().all()


FITS = {
    "taps of another width": (
        {"target_hidden": 48, "target_hidden_size": 48},
        "target_hidden_size: fc reads features of 48, the target's have 32",
        False,
    ),
    "another depth": ({"num_target_layers": 36}, "num_target_layers: trained on 36 layers, the target has 2", True),
    "a tap beyond": (
        {"num_target_layers": None, "target_layer_ids": [2]},
        "target_layer_ids: 2 lies beyond the target's layers=2, whose last is 1",
        False,
    ),
    "a tap on the last block": ({"num_target_layers": None, "target_layer_ids": [1]}, "last_block_tap: ", True),
    "more words": ({"vocab_size": 300, "mask_token_id": 3}, "vocab_size: it is made for 300 words", True),
    "S6 a head of more words": (
        {"vocab_size": 300, "mask_token_id": 3, "tensors": {"lm_head.weight": torch.ones(300, 32)}},
        "vocab_size: it is made for 300 words",
        False,
    ),
    "a selector of more words": (DFLASH2 | {"vocab_size": 300}, "vocab_size: it is made for 300 words", False),
    "a Markov head of more words": (DSPARK | {"vocab_size": 300}, "vocab_size: it is made for 300 words", False),
    "F12 fewer positions": (
        {"max_position_embeddings": 256},
        "max_position_embeddings: its positions end at 256",
        True,
    ),
    "another width": (
        {"hidden_size": 48, "target_hidden_size": 32},
        "hidden_size: it shares embeddings or head of width 32 and is 48 wide",
        False,
    ),
}


@pytest.mark.parametrize("name", FITS)
def test_a_drafter_of_another_target_is_refused(tmp_path, target, name):
    changes, words, may = FITS[name]
    folder = write_drafter(tmp_path, **changes)
    message = refused(target, folder)
    assert f"{folder} with this target is not run as a drafter. {words}" in message
    if may:
        target.load(folder, words.partition(":")[0])
    else:
        assert words in refused(target, folder, words.partition(":")[0])


def test_f8_a_mask_token_without_a_row_in_the_target_is_refused(tmp_path, target):
    folder = write_drafter(tmp_path, vocab_size=300, mask_token_id=280)
    assert "280 has no row in the target's embeddings of 265" in refused(target, folder, "vocab_size")


def test_the_width_may_differ_where_nothing_is_shared(tmp_path):
    from dflash.formats.drafters import Target

    wide = Target(write_tiny_model(tmp_path / "wide", hidden_size=48, intermediate_size=64))
    tables = {"embed_tokens.weight": torch.randn(265, 32), "lm_head.weight": torch.randn(265, 32)}
    folder = write_drafter(tmp_path / "drafter", target_hidden=48, target_hidden_size=48, tensors=tables)
    assert_drafts(wide, folder, weights(target_hidden=48) | tables)


def test_a_last_block_tap_is_read_before_the_norm(tmp_path, target):
    folder = write_drafter(tmp_path, target_layer_ids=[0, 1], num_target_layers=2)
    assert_drafts(target, folder, weights(target_layer_ids=[0, 1]), "last_block_tap")


@pytest.mark.parametrize(
    ("config", "found"), [({}, "nothing was found wrong"), ({"target_layer_ids": [1]}, "last_block")]
)
def test_allowing_what_is_not_wrong_is_refused(tmp_path, target, config, found):
    folder = write_drafter(tmp_path, **config)
    allow = ["last_block_tap"] if config else []
    with pytest.raises(UsageError, match=f"--allow nothing_like_this.*{found}"):
        target.load(folder, *allow, "nothing_like_this")
