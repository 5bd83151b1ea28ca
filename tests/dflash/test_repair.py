"""What tensors determine, what a search finds again, and what is said where nothing can be found.

The pair's own masks are a mixture that no config can say (sliding layers of both kinds of causality): its first layer
is told from the others by nothing but that, and is left out of what is asserted.
"""

import io
import json
import zlib
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from command_line import run_cli
from dflash.pair import BLOCK, DRAFTER, MASK, TARGET, VOCAB, WINDOW, WORDS, Pair
from dflash.random_drafter import CAUSAL, FULL, MASKS, VARIANTS, YARN, config_of, random_drafter
from dflash.rounds import prompts_of
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers

from outrider import cli
from outrider.checkpoint import Source
from outrider.errors import CheckpointError, UnsupportedError, UsageError
from outrider.models.config import DecoderConfig, Rope
from outrider.models.dflash.config import Confidence, DFlashConfig, LayerMask
from outrider.models.dflash.formats import read_drafter
from outrider.models.dflash.formats.writing import zlab_config
from outrider.models.loading import decoder_config
from outrider.repair import judge, search
from outrider.repair.infer import check_all_have_a_place, infer
from outrider.repair.masks import mask_tokens
from outrider.repair.opening import open_unsure
from outrider.repair.readings import questions, settled
from outrider.repair.run import Repaired, repair, with_default_windows
from outrider.repair.start import starting_config, tap_lists
from outrider.replay import record, replay

PROMPTS = prompts_of(4, 12, 20)
NEW = 32
FALSIFIED = {
    "architectures": ["DFlashDraftModel"],
    "num_hidden_layers": 7,
    "head_dim": 4,
    "layer_types": ["sliding_attention"] * 3,
    "sliding_window": WINDOW,
    "use_sliding_window": True,
    "rope_theta": 1e7,
    "dflash_config": {"block_size": 16, "mask_token_id": 3, "target_layer_ids": [2, 1, 0]},
}


# What the tensors determine.


def target_of(config: DFlashConfig) -> DecoderConfig:
    return decoder_config(
        {
            "model_type": "llama",
            "vocab_size": config.vocab_size,
            "hidden_size": config.target_hidden_size,
            "intermediate_size": 40,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 256,
            "rms_norm_eps": 1e-5,
            "rope_theta": 1e4,
        }
    )


def shapes_of(config: DFlashConfig) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in random_drafter(config).items() if name != "mask_embedding"}


KINDS = VARIANTS | {f"dspark {kind}": {"markov": kind} for kind in ("gated", "rnn")} | {"confidence alone": {}}


def variant(name: str) -> DFlashConfig:
    kind = KINDS[name].get("markov")
    if name == "confidence alone":
        return config_of(kind="dspark", anchor_predicts=True, confidence=Confidence(with_markov=False))
    if not isinstance(kind, str):
        return config_of(name)
    config = config_of("dspark")
    return replace(config, markov=replace(config.markov, kind=kind))


@pytest.mark.parametrize("kind", KINDS)
def test_tensors_determine_sizes_and_parts_of_every_kind(kind):
    config = variant(kind)
    found = infer(shapes_of(config), target_of(config))
    assert found.num_layers == len(config.layers)
    assert found.num_taps == len(config.taps)
    for name in ("kind", "hidden_size", "num_heads", "num_kv_heads", "head_dim", "intermediate_size", "vocab_size"):
        assert getattr(found, name) == getattr(config, name)
    for name in ("draft_vocab_size", "own_embedding", "own_head", "biases", "sinks", "convolution", "markov"):
        assert getattr(found, name) == getattr(config, name)
    assert found.confidence == config.confidence
    assert found.selector_rank == (config.selector and config.selector.rank)
    start = starting_config(found, target_of(config), given=None, mask_embedding=config.mask_embedding)
    check_all_have_a_place(shapes_of(config), start.tensor_shapes())


def checked(shapes: dict[str, tuple[int, ...]], target: DecoderConfig) -> DFlashConfig:
    start = starting_config(infer(shapes, target), target, given=None, mask_embedding=False)
    check_all_have_a_place(shapes, start.tensor_shapes())
    return start


BROKEN = {
    "fc.weight": ((32, 90), "90 numbers a token"),
    "layers.0.self_attn.q_norm.weight": (None, r"no tensor layers\.0\.self_attn\.q_norm\.weight"),
    "layers.0.self_attn.k_proj.weight": ((25, 32), "no whole number of heads of 12"),
    "layers.1.mlp.up_proj.weight": ((41, 32), "the others imply"),
    "layers.2.mlp.up_proj.weight": (None, "is missing"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_tensors_that_cannot_be_a_drafters_are_refused_by_name(name):
    config = config_of()
    shape, message = BROKEN[name]
    shapes = {key: value for key, value in (shapes_of(config) | {name: shape}).items() if value is not None}
    with pytest.raises(CheckpointError, match=message) as caught:
        checked(shapes, target_of(config))
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_tensor_without_a_place_is_refused():
    config = config_of()
    shapes = shapes_of(config) | {"layers.0.surprise.weight": (3, 3), "t2d": (61,)}
    with pytest.raises(UnsupportedError, match=r"first layers\.0\.surprise\.weight"):
        check_all_have_a_place(shapes, config.tensor_shapes())


@pytest.mark.parametrize(("blocks", "count"), [(36, 5), (64, 5), (30, 5), (4, 2), (3, 3), (2, 1)])
def test_lists_of_taps_to_start_from_lie_in_the_target(blocks, count):
    lists = tap_lists(blocks, count)
    assert len(set(lists)) == len(lists) >= 1
    for taps in lists:
        assert len(set(taps)) == count
        assert set(taps) <= set(range(blocks))


def test_published_lists_of_taps_are_the_first_to_start_from():
    assert tap_lists(36, 5)[0] == (1, 9, 17, 25, 33)  # Qwen3-8B-DFlash-b16
    assert tap_lists(64, 5)[0] == (1, 16, 31, 46, 61)  # Qwen3.6-27B-DFlash


# The config that is written.


SAID = {name: variant(name) for name in KINDS if name != "wider target"} | {
    "yarn": config_of(rope=Rope(1e4, "yarn", YARN)),
    **{name: config_of(layers=layers) for name, layers in MASKS.items() if "mixed non" not in name and name != "mixed"},
}


@pytest.mark.parametrize("name", SAID)
def test_what_is_written_is_read_as_the_same_drafter(tmp_path, name):
    masks = {"mixed": (CAUSAL, CAUSAL, FULL)}
    config = replace(SAID[name], taps=(0, 1, 2), num_target_layers=4)
    if config.layers == MASKS["mixed"]:
        config = replace(config, layers=masks["mixed"])
    if any(mask.causal and mask.window is None for mask in config.layers) and FULL in config.layers:
        config = replace(config, layers=settled([*config.layers]))
    config = replace(config, layers=with_default_windows(config, None, 10))
    tensors = {key: tensor.float().contiguous() for key, tensor in random_drafter(config).items()}
    save_file(tensors, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(zlab_config(config) | {"outrider_repair": {"measured": []}}))
    read = read_drafter(Source(tmp_path, "folder", "test"))
    assert read.problems == ()
    assert read.config == config


def test_a_mixture_of_masks_that_no_config_can_say_is_refused():
    with pytest.raises(UnsupportedError, match="nothing is written"):
        zlab_config(DRAFTER)
    with pytest.raises(UnsupportedError, match="windows"):
        zlab_config(config_of(layers=(CAUSAL, LayerMask(12, causal=True), FULL)))


def test_layers_that_the_texts_say_nothing_of_get_usual_windows_or_the_given_ones():
    causal = LayerMask(None, causal=True)
    found = config_of(layers=(causal, causal, FULL))
    usual = (LayerMask(2048, causal=True), LayerMask(2048, causal=True), FULL)
    assert with_default_windows(found, None, 100) == usual
    given = config_of(layers=(LayerMask(512, causal=True), LayerMask(512, causal=True), FULL))
    assert with_default_windows(found, given, 100) == given.layers
    assert with_default_windows(found, given, 600) == usual  # windows of 512 were tried, and lost
    assert with_default_windows(found, None, 3000)[0].window == found.max_positions
    assert with_default_windows(config_of(layers=(FULL,) * 3), given, 100) == (FULL,) * 3


@dataclass
class Pieces:
    """A tokenizer of so many words, the last of them special."""

    vocab_size: int
    special: int

    def piece(self, token_id: int) -> str:
        return "<|MASK|>" if token_id == 7 else f"w{token_id}"

    def is_special(self, token_id: int) -> bool:
        return token_id >= self.vocab_size - self.special


def test_tokens_to_try_begin_with_the_given_those_named_so_and_the_first_beyond_the_tokenizer():
    config = config_of()
    found = mask_tokens(Pieces(50, 3), config, (33, 1000))
    assert found[:3] == [33, 7, 50]
    assert set(found) == {33, 7, 47, 48, 49, *range(50, 61)}


# The search, on a made-up drafter.


@dataclass
class Distance:
    """A judge who knows the truth and says how far a reading is from it, less exactly at fewer anchors."""

    truth: DFlashConfig
    readings: set[tuple[str, int]] = field(default_factory=set)
    num_readings = num_blocks = 0

    def worth(self, config: DFlashConfig, slots: int | None, level: int) -> float:
        self.readings.add((repr(config), level))
        seed = zlib.crc32(repr((config.taps, config.mask_token, config.layers, level)).encode())
        noise = np.random.default_rng(seed).normal(0, (0.2, 0.02)[level])
        far = sum(abs(tap - right) ** 0.5 for tap, right in zip(config.taps, self.truth.taps, strict=True))
        masks = sum(mine != right for mine, right in zip(config.layers, self.truth.layers, strict=True))
        wrong = masks + 2 * (config.mask_token != self.truth.mask_token) + (config.rope != self.truth.rope)
        return noise - far - wrong - abs(config.block_size - self.truth.block_size) / 8

    def score(self, config: DFlashConfig, level: int) -> SimpleNamespace:
        return SimpleNamespace(length=2.0)


@pytest.mark.parametrize("taps", [(1, 9, 17, 25, 33), (5, 19, 30, 12, 2), (35, 3, 4, 31, 20)])
def test_a_search_over_a_deep_target_finds_taps_and_their_order_in_few_readings(taps):
    causal = LayerMask(None, causal=True)
    truth = config_of(taps=taps, layers=(causal, FULL, causal), mask_token=41, block_size=12, rope=Rope(1e6))
    start = replace(truth, taps=(0, 1, 2, 3, 4), layers=(FULL,) * 3, mask_token=60, block_size=16, rope=Rope(1e4))
    target = replace(target_of(truth), num_layers=36)
    tokens = [60, *range(30, 60)]
    asked = questions(start, target, mask_tokens=tokens, windows=())
    distance = Distance(truth)
    found = search.Search(distance, asked, lambda line: None).run(
        search.beginnings(start, 36, mask_tokens=tokens[:2], windows=())
    )
    assert replace(found, norm_eps=truth.norm_eps, embedding_scale=truth.embedding_scale) == truth
    assert len(distance.readings) < 500


# The search, on the trained pair.


def write_weights(folder: Path, pair: Pair, config: dict | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    save_file(pair.tensors, folder / "model.safetensors")
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    return folder


def repaired(folder: Path, pair: Pair, **options) -> Repaired:
    recording = record(pair.target, PROMPTS, max_tokens=NEW)
    return repair(open_unsure(str(folder), report=print), pair.target, Pieces(WORDS + 2, 1), recording, **options)


@pytest.fixture
def hasty(monkeypatch):
    """A search that looks at little: for what does not depend on what it finds."""
    monkeypatch.setattr(judge, "SAMPLES", (2, 4, 12))
    monkeypatch.setattr(search, "SWEEPS", 1)


@pytest.fixture(scope="module")
def from_falsehood(pair, tmp_path_factory) -> Repaired:
    return repaired(write_weights(tmp_path_factory.mktemp("false"), pair, FALSIFIED), pair)


def test_a_search_finds_what_a_false_config_hides(pair, from_falsehood):
    found, rows = from_falsehood.config, {row.key: row for row in from_falsehood.rows}
    assert (found.mask_token, found.taps[1], found.anchor_predicts) == (MASK, DRAFTER.taps[1], False)
    assert found.layers[0].window == WINDOW
    assert found.layers[-1] == DRAFTER.layers[-1]
    assert found.rope == DRAFTER.rope
    assert rows["block_size"].best.value == BLOCK
    assert rows["target_layer_ids[0]"].best.value in (0, DRAFTER.taps[0])  # all but the same in this target
    for key in ("mask_token_id", "target_layer_ids[1]", "sliding_window", "causal[2]", "sample_from_anchor"):
        assert rows[key].origin == "measured", rows[key]
        assert 0 < rows[key].low <= rows[key].difference <= rows[key].high
        assert rows[key].best.log_prob > rows[key].second.log_prob
    assert rows["num_hidden_layers"].origin == "tensors"
    truth = replay(pair.network, record(pair.target, PROMPTS, max_tokens=NEW)).acceptance()
    assert from_falsehood.acceptance.length > truth.length - 0.5
    assert from_falsehood.judge.num_blocks < 8000


def test_what_cannot_be_told_is_said_to_be_undetermined_and_keeps_its_default(from_falsehood):
    rows = {row.key: row for row in from_falsehood.rows}
    assert (rows["rms_norm_eps"].origin, rows["rms_norm_eps"].value) == ("undetermined", 1e-6)
    assert rows["rms_norm_eps"].note == "default kept"
    assert rows["max_position_embeddings"].value == TARGET.max_positions
    assert rows["max_position_embeddings"].origin == "undetermined"


@pytest.mark.usefixtures("hasty")
def test_a_window_that_no_text_is_longer_than_is_undetermined(pair, tmp_path):
    found = repaired(write_weights(tmp_path, pair, FALSIFIED | {"sliding_window": 4096}), pair)
    window = next(row for row in found.rows if row.key == "sliding_window")
    assert window.origin == "undetermined"
    assert f"the texts reach {20 + NEW} tokens" in window.note
    assert window.best is None


# The command.


@pytest.fixture(scope="module")
def target_folder(pair, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("target")
    save_file(pair.target_tensors, folder / "model.safetensors")
    config = {
        "model_type": "qwen3",
        "vocab_size": VOCAB,
        "hidden_size": TARGET.hidden_size,
        "intermediate_size": TARGET.intermediate_size,
        "num_hidden_layers": TARGET.num_layers,
        "num_attention_heads": TARGET.num_heads,
        "num_key_value_heads": TARGET.num_kv_heads,
        "head_dim": TARGET.head_dim,
        "max_position_embeddings": TARGET.max_positions,
        "rms_norm_eps": TARGET.norm_eps,
        "rope_theta": TARGET.rope.theta,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
    }
    (folder / "config.json").write_text(json.dumps(config))
    words = {f"w{word}": word for word in range(VOCAB - 1)}
    tokenizer = Tokenizer(models.WordLevel(words, "w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(["w24", "w25"])
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture(scope="module")
def prompts_file(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("prompts") / "prompts.jsonl"
    rows = [{"prompt": " ".join(f"w{word}" for word in prompt)} for prompt in PROMPTS]
    file.write_text("\n".join(map(json.dumps, rows)))
    return file


@pytest.fixture(scope="module")
def from_nothing(pair, tmp_path_factory, target_folder, prompts_file) -> tuple[Path, str]:
    """The folder of a drafter without a config after the command has run on it, and what the command printed."""
    folder, printed = write_weights(tmp_path_factory.mktemp("bare"), pair), io.StringIO()
    options = ("--prompts", prompts_file, "--max-tokens", NEW, "--window", WINDOW)
    with redirect_stdout(printed):
        code = cli.run([str(word) for word in ("repair", folder, "--target", target_folder, *options)])
    assert code == 0
    return folder, printed.getvalue()


def test_the_command_writes_a_config_that_runs_and_says_what_was_measured(from_nothing):
    folder, printed = from_nothing
    assert "rename it to config.json" in printed
    written = json.loads((folder / "config.repaired.json").read_text())
    told = written["outrider_repair"]
    assert {"mask_token_id", "target_layer_ids[1]", "sliding_window"} <= set(told["measured"])
    assert "rms_norm_eps" in told["undetermined"]
    (folder / "config.repaired.json").rename(folder / "config.json")
    read = read_drafter(Source(folder, "folder", "test")).config
    assert (read.mask_token, read.taps[1], read.layers[0].window) == (MASK, DRAFTER.taps[1], WINDOW)


@pytest.mark.usefixtures("hasty")
def test_where_no_reading_works_nothing_is_written_and_the_exit_code_is_1(
    pair, tmp_path, target_folder, prompts_file, capsys
):
    generator = torch.Generator().manual_seed(3)
    scrambled = {
        name: tensor[torch.randperm(len(tensor), generator=generator)] for name, tensor in pair.tensors.items()
    }
    save_file(scrambled, tmp_path / "model.safetensors")
    seen = run_cli(capsys, "repair", tmp_path, "--target", target_folder, "--prompts", prompts_file, "--json")
    assert seen.code == 1, seen
    result = json.loads(seen.out)
    assert not result["works"]
    assert result["acceptance_length"] < 1.2
    assert not (tmp_path / "config.repaired.json").exists()


def test_a_config_that_somebody_else_wrote_is_not_overwritten(pair, tmp_path, target_folder, capsys):
    folder = write_weights(tmp_path, pair)
    (folder / "config.repaired.json").write_text("{}")
    seen = run_cli(capsys, "repair", folder, "--target", target_folder)
    assert "was not written by outrider repair" in seen.check_one_line_error()
    assert (folder / "config.repaired.json").read_text() == "{}"
    seen = run_cli(capsys, "repair", folder, "--target", target_folder, "--out", tmp_path / "none" / "config.json")
    assert "there is no folder" in seen.check_one_line_error()


def test_a_folder_without_weights_and_a_gguf_file_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match="no weights"):
        open_unsure(str(tmp_path), report=print)
    (tmp_path / "drafter.gguf").write_bytes(b"GGUF")
    with pytest.raises(UsageError, match="carries its config"):
        open_unsure(str(tmp_path / "drafter.gguf"), report=print)
