"""What is exported reads back: the same config, the same tensors, in all three formats."""

import json
from dataclasses import replace

import pytest
import torch
from tiny_model import write_tiny_model
from train.drafts import FULL, SLIDING, TINY, YARN, as_read, as_stored, random_tensors

from outrider.checkpoint import open_checkpoint, resolve
from outrider.errors import CheckpointError, UnsupportedError, UsageError
from outrider.models.config import Rope
from outrider.models.dflash.config import LayerMask, Markov
from outrider.models.dflash.formats import read_drafter
from outrider.models.dflash.formats.writing import Verifier
from outrider.models.weights import read_tensor
from outrider.train.export import DTYPES, export_gguf, export_speculators, export_zlab
from outrider.train.vocabulary import KEY, Vocabulary, read_vocabulary

AROUND = LayerMask(12, causal=False)
CONFIGS = {
    "mixed": TINY,
    "all slide, causal": replace(TINY, layers=(SLIDING,) * 3),
    "all slide, seeing the block": replace(TINY, layers=(AROUND,) * 3),
    "slide seeing the block, and full": replace(TINY, layers=(AROUND, FULL, AROUND)),
    "full": replace(TINY, layers=(FULL,) * 2, taps=(0, 1), num_target_layers=3),
    "yarn": replace(TINY, rope=YARN),
    "linear": replace(TINY, rope=Rope(700.0, "linear", {"factor": 4.0})),
}
OWN_WORDS = replace(TINY, draft_vocab_size=88, own_head=True)
SCALED = replace(TINY, embedding_scale=3.0, output_multiplier=0.5, soft_cap=30.0, value_scale=2.0, sinks=True)


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    return open_checkpoint(resolve(str(write_tiny_model(tmp_path_factory.mktemp("target") / "tiny"))))


def check_reads_back(path, config, tensors, origin, dtype):
    found = read_drafter(resolve(str(path)))
    assert found.problems == ()
    assert found.config == as_read(config, origin)
    expected = as_stored(tensors, dtype, vectors=origin != "gguf")
    assert set(found.checkpoint.tensors) == set(expected)
    for name, value in expected.items():
        read = read_tensor(found.checkpoint, name)
        if name == "d2t" and origin == "gguf":  # ids there, offsets here
            read = read - torch.arange(len(read))
        assert read.dtype == value.dtype
        assert torch.equal(read, value), name


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("config", [*CONFIGS.values(), SCALED, OWN_WORDS], ids=[*CONFIGS, "scaled", "own words"])
def test_a_zlab_folder_reads_back(tmp_path, config, dtype):
    tensors = random_tensors(config)
    export_zlab(config, tensors, tmp_path / "out", dtype)
    check_reads_back(tmp_path / "out", config, tensors, "z-lab", dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_a_speculators_folder_reads_back(tmp_path, config, dtype):
    tensors = random_tensors(config)
    export_speculators(config, tensors, tmp_path / "out", dtype, verifier=Verifier("owner/name", ("LlamaForCausalLM",)))
    check_reads_back(tmp_path / "out", config, tensors, "speculators", dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("config", [*CONFIGS.values(), SCALED, OWN_WORDS], ids=[*CONFIGS, "scaled", "own words"])
def test_a_gguf_file_reads_back(tmp_path, target, config, dtype):
    tensors = random_tensors(config)
    path = export_gguf(config, tensors, tmp_path / "out", dtype, vocabulary=read_vocabulary(target))
    check_reads_back(path, config, tensors, "gguf", dtype)


def test_a_zlab_config_holds_the_keys_of_the_newer_generation(tmp_path):
    export_zlab(TINY, random_tensors(TINY), tmp_path / "out")
    raw = json.loads((tmp_path / "out" / "config.json").read_text())
    assert raw["architectures"] == ["DFlashDraftModel"]
    assert raw["dflash_config"] == {"block_size": 6, "mask_token_id": 264, "target_layer_ids": [0]}
    assert raw["layer_types"] == ["sliding_attention", "full_attention", "sliding_attention"]
    assert (raw["sliding_window"], raw["use_sliding_window"]) == (12, True)
    assert "is_causal" not in raw  # as sliding layers are causal and full ones not
    assert raw["num_target_layers"] == 2  # dflash 0.1.0 does without it only on paper
    assert raw["dtype"] == "bfloat16"


@pytest.mark.parametrize(("name", "said"), [("all slide, seeing the block", False), ("all slide, causal", True)])
def test_causality_is_written_where_it_is_one_for_all_layers_that_slide(tmp_path, name, said):
    config = CONFIGS[name]
    export_zlab(config, random_tensors(config), tmp_path / "out")
    assert json.loads((tmp_path / "out" / "config.json").read_text())["is_causal"] is said


def test_a_speculators_config_counts_layers_by_their_inputs_and_names_the_target(tmp_path):
    export_speculators(TINY, random_tensors(TINY), tmp_path / "out", verifier=Verifier("owner/name"))
    raw = json.loads((tmp_path / "out" / "config.json").read_text())
    assert raw["aux_hidden_state_layer_ids"] == [1]
    assert raw["sliding_window_non_causal"] is False  # vLLM takes an absent one for true
    assert raw["draft_vocab_size"] == raw["transformer_layer_config"]["vocab_size"] == 265
    whole = raw["speculators_config"]
    assert whole["proposal_methods"][0]["speculative_tokens"] == 5
    assert whole["verifier"] == {"name_or_path": "owner/name", "architectures": []}


def test_a_gguf_file_carries_the_vocabulary_padded_to_the_table(tmp_path, target):
    wider = replace(TINY, vocab_size=270, mask_token=269)
    path = export_gguf(wider, random_tensors(wider), tmp_path / "out", vocabulary=read_vocabulary(target))
    metadata = read_drafter(resolve(str(path))).checkpoint.metadata
    tokens = metadata[f"{KEY}tokens"]
    assert len(tokens) == len(metadata[f"{KEY}token_type"]) == 270
    assert tokens[262:266] == ["<s>", "</s>", "<turn>", "[PAD265]"]
    assert metadata[f"{KEY}token_type"][261:266] == [1, 3, 3, 3, 5]
    assert metadata[f"{KEY}merges"][:2] == ["t h", "th e"]
    assert metadata[f"{KEY}mask_token_id"] == 269
    assert metadata["dflash.target_layers"] == [1]


def test_causality_is_said_to_llama_cpp_where_one_value_counts_for_all_layers(tmp_path, target):
    said = {}
    for name in ("all slide, causal", "all slide, seeing the block", "mixed"):
        config = CONFIGS[name]
        folder = tmp_path / name
        path = export_gguf(config, random_tensors(config), folder, vocabulary=read_vocabulary(target))
        said[name] = read_drafter(resolve(str(path))).checkpoint.metadata.get("dflash.attention.causal")
    assert said == {"all slide, causal": True, "all slide, seeing the block": False, "mixed": None}


def test_a_vocabulary_of_a_gguf_file_is_copied_without_template_and_mask(tmp_path, target):
    path = export_gguf(TINY, random_tensors(TINY), tmp_path / "out", vocabulary=read_vocabulary(target))
    first = read_drafter(resolve(str(path))).checkpoint
    assert read_vocabulary(first).entries == {
        key: value
        for key, value in first.metadata.items()
        if key.startswith("tokenizer.") and key != f"{KEY}mask_token_id"
    }


def test_a_vocabulary_larger_than_the_drafter_is_another_models(tmp_path, target):
    smaller = replace(TINY, vocab_size=200, mask_token=3)
    with pytest.raises(CheckpointError, match=r"265 tokens and the drafter 200"):
        export_gguf(smaller, random_tensors(smaller), tmp_path / "out", vocabulary=read_vocabulary(target))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "what"),
    [({"biases": True}, "biases"), ({"anchor_predicts": True}, "anchor's slot"), ({"target_hidden_size": 16}, "width")],
)
def test_what_llama_cpp_would_run_otherwise_is_not_written(tmp_path, target, change, what):
    config = replace(TINY, **change)
    with pytest.raises(UnsupportedError, match=what):
        export_gguf(config, random_tensors(config), tmp_path / "out", vocabulary=read_vocabulary(target))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"draft_vocab_size": 88, "own_head": True}, "words of its own"),
        ({"sinks": True}, "sinks"),
        ({"soft_cap": 30.0}, "capped"),
        ({"embedding_scale": 2.0}, "scaled"),
        ({"layers": (LayerMask(None, causal=True),) * 2}, "without a window"),
        ({"kind": "dspark", "markov": Markov(4, "vanilla")}, "dspark"),
    ],
)
def test_what_the_speculators_format_has_no_words_for_is_not_written(tmp_path, change, what):
    config = replace(TINY, **change)
    with pytest.raises(UnsupportedError, match=what):
        export_speculators(config, random_tensors(config), tmp_path / "out")


@pytest.mark.parametrize("layers", [(SLIDING, LayerMask(6, causal=True)), (LayerMask(None, causal=True), FULL)])
def test_masks_that_no_format_can_say_are_not_written(tmp_path, layers):
    config = replace(TINY, layers=layers)
    with pytest.raises(UnsupportedError, match="nothing is written"):
        export_zlab(config, random_tensors(config), tmp_path / "out")


def test_weights_of_another_drafter_are_refused(tmp_path):
    tensors = random_tensors(TINY)
    with pytest.raises(CheckpointError, match=r"1 tensors missing \(norm\.weight\)"):
        export_zlab(TINY, {name: value for name, value in tensors.items() if name != "norm.weight"}, tmp_path / "out")
    with pytest.raises(CheckpointError, match=r"1 unknown \(extra\)"):
        export_zlab(TINY, tensors | {"extra": torch.zeros(1)}, tmp_path / "out")
    with pytest.raises(CheckpointError, match="expected shape"):
        export_zlab(TINY, tensors | {"norm.weight": torch.zeros(3)}, tmp_path / "out")


def test_broken_weights_are_refused(tmp_path):
    tensors = random_tensors(TINY)
    tensors["norm.weight"][3] = float("nan")
    with pytest.raises(CheckpointError, match=r"norm\.weight holds values that are not finite"):
        export_zlab(TINY, tensors, tmp_path / "out")


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("kept")
    with pytest.raises(UsageError, match="not an empty folder"):
        export_zlab(TINY, random_tensors(TINY), tmp_path / "out")
    assert (tmp_path / "out" / "mine").read_text() == "kept"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_that_cannot_be_made_gives_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="Cannot write") as caught:
        export_zlab(TINY, random_tensors(TINY), tmp_path / "file" / "out")
    assert "\n" not in str(caught.value)


def test_a_vocabulary_that_is_not_byte_level_is_named(tmp_path):
    folder = write_tiny_model(tmp_path / "tiny")
    raw = json.loads((folder / "tokenizer.json").read_text())
    raw["model"]["byte_fallback"] = True
    (folder / "tokenizer.json").write_text(json.dumps(raw))
    with pytest.raises(UnsupportedError, match="name a GGUF file"):
        read_vocabulary(open_checkpoint(resolve(str(folder))))


def test_padding_keeps_what_is_there():
    vocabulary = Vocabulary({f"{KEY}tokens": ["a", "b"]})
    padded = vocabulary.padded(3)
    assert padded[f"{KEY}tokens"] == ["a", "b", "[PAD2]"]
    assert padded[f"{KEY}token_type"] == [1, 1, 5]
