"""What a config says against itself, against its tensors, and against a target. Headers only."""

from collections.abc import Iterator, Mapping
from typing import Protocol

from outrider.checkpoint import TensorInfo
from outrider.models.dflash.config import DFlashConfig
from outrider.models.dflash.formats.aliases import MASK_EMBEDDING
from outrider.models.dflash.formats.problems import Problem

TAPS_KEY = {"z-lab": "target_layer_ids", "speculators": "aux_hidden_state_layer_ids", "gguf": "target_layers"}
SHIFT = {"z-lab": 0, "speculators": 1, "gguf": 1}
LAST = "last_block_tap"
UNEXPECTED = "unexpected_tensors"
SHOWN = 3
VOCABULARY_SIZED = ("embed_tokens.weight", "candidate_selector.", "markov_head.markov_w")


class Target(Protocol):
    """What a drafter depends on in its target."""

    @property
    def hidden_size(self) -> int:
        """Width of what taps give."""
        ...

    @property
    def num_layers(self) -> int:
        """Blocks."""
        ...

    @property
    def vocab_size(self) -> int:
        """Rows of its embedding table."""
        ...

    @property
    def max_positions(self) -> int:
        """Tokens its context holds."""
        ...


def config_problems(config: DFlashConfig) -> Iterator[Problem]:
    """Yield what contradicts itself in a config whose keys could be read."""
    yield from _tap_problems(config)
    if config.num_target_layers is not None:
        yield from _depth_problems(config, config.num_target_layers, "num_target_layers")
    yield from _word_problems(config)
    if config.markov is not None and config.markov.kind == "rnn" and not config.anchor_predicts:
        yield Problem(
            "markov_head_type",
            "expected sample_from_anchor true with 'rnn', found false: the recurrence then starts at the anchor's "
            "slot, which is not run; only a drafter trained with a predicting anchor can be run.",
            fatal=True,
        )
    if config.block_size > config.max_positions:
        yield Problem(
            "block_size",
            f"a block of {config.block_size} exceeds max_position_embeddings={config.max_positions}; correct either.",
            fatal=True,
        )
    if config.max_tokens < 1:
        yield Problem("block_size", f"expected at least 2 slots, found {config.block_size}; correct it.", fatal=True)
    shape = config.convolution
    if shape is not None and config.hidden_size % shape.group:
        yield Problem(
            "conv_group_size",
            f"hidden_size={config.hidden_size} is no multiple of {shape.group}; correct either.",
            fatal=True,
        )


def _tap_problems(config: DFlashConfig) -> Iterator[Problem]:
    key, shift = TAPS_KEY[config.origin], SHIFT[config.origin]
    written = [tap + shift for tap in config.taps]
    if min(config.taps) < 0:
        meaning = "the output of the embedding" if min(config.taps) == -1 else "no layer"
        yield Problem(
            key,
            f"{min(written)} means {meaning}, which is no tap here; expected numbers of at least {shift}.",
            fatal=True,
        )
    if len(set(written)) < len(written):
        yield Problem(
            key,
            f"{written} lists a layer twice, so fc reads the same features twice; correct it (allowed, it does).",
        )
    elif sorted(written) != written:
        yield Problem(
            key,
            f"{written} is not in rising order, and engines that sort the list feed fc the wrong columns; sort it and "
            "the columns of fc.weight alike (allowed, the order is kept).",
        )


def _depth_problems(config: DFlashConfig, depth: int, what: str) -> Iterator[Problem]:
    key, shift = TAPS_KEY[config.origin], SHIFT[config.origin]
    beyond = [tap + shift for tap in config.taps if tap >= depth]
    if beyond:
        yield Problem(
            key,
            f"{beyond[0]} lies beyond {what}={depth}, whose last is {depth - 1 + shift}; correct either"
            f"{'' if what == 'num_target_layers' else ', or take the target it was trained for'}.",
            fatal=what != "num_target_layers",
        )
    elif depth - 1 in config.taps:
        yield Problem(
            LAST,
            f"{key} lists {depth - 1 + shift}, the target's last block: Transformers gives that after the final norm, "
            "engines before it, and no config says which it was trained on (allowed, before the norm).",
        )


def _word_problems(config: DFlashConfig) -> Iterator[Problem]:
    if config.mask_token is not None and config.mask_token >= config.vocab_size and not config.mask_embedding:
        yield Problem(
            "mask_token_id",
            f"{config.mask_token} lies outside the vocabulary of {config.vocab_size}; correct either.",
            fatal=True,
        )
    words = config.draft_vocab_size
    if words is not None and words > config.vocab_size:
        yield Problem(
            "draft_vocab_size", f"{words} exceeds vocab_size={config.vocab_size}; correct either.", fatal=True
        )
    if config.selector is not None and words is not None:
        yield Problem(
            "draft_vocab_size", "a selector needs the whole vocabulary; a reduced one is not run with it.", fatal=True
        )
    if config.selector is not None and config.selector.top_k > config.vocab_size:
        yield Problem(
            "selector_top_k", f"{config.selector.top_k} exceeds vocab_size={config.vocab_size}; correct it.", fatal=True
        )


def tensor_problems(config: DFlashConfig, tensors: Mapping[str, TensorInfo]) -> Iterator[Problem]:
    """Yield what the config calls for and the files do not hold, and the reverse.

    Args:
        config: read from the files.
        tensors: under z-lab names.
    """
    wanted = config.tensor_shapes()
    if config.draft_vocab_size is not None and "d2t" not in tensors:
        yield Problem(
            "d2t",
            f"the head has {config.draft_vocab_size} of {config.vocab_size} words and the files lack d2t, the table of "
            "which; add it, or draft ids would be taken for target ids.",
            fatal=True,
        )
    yield from _fc_problems(config, tensors)
    missing = [name for name in wanted if name not in tensors and name != "d2t"]
    if missing:
        yield Problem(
            "tensors",
            f"{len(missing)} of {len(wanted)} are missing, first {_listed(missing)}; config and weights belong to "
            "different drafters, or the download is incomplete.",
            fatal=True,
        )
    yield from _shape_problems(wanted | {MASK_EMBEDDING: (config.hidden_size,)}, tensors)
    extra = [name for name in tensors if name not in wanted and name not in (MASK_EMBEDDING, "d2t")]
    if extra:
        yield Problem(
            UNEXPECTED,
            f"the config has no use for {len(extra)} tensors: {_listed(extra)}; a key that calls for them is missing, "
            "or the drafter is of a kind that is not known (allowed, they are not used).",
        )


def _shape_problems(wanted: Mapping[str, tuple[int, ...]], tensors: Mapping[str, TensorInfo]) -> Iterator[Problem]:
    wrong: dict[str, tuple[int, ...]] = {}
    for name, shape in wanted.items():
        found = tensors[name].shape if name in tensors and name != "fc.weight" else shape
        if name == MASK_EMBEDDING and found[:-1] == (1,):  # a table of one row
            found = found[1:]
        if found != shape:
            wrong[name] = found
    if len(wrong) > SHOWN:
        name, found = next(iter(wrong.items()))
        yield Problem(
            "tensors",
            f"{len(wrong)} of {len(wanted)} have other shapes than the config implies, first {name}: implied "
            f"{list(wanted[name])}, found {list(found)}; config and weights belong to different drafters.",
            fatal=True,
        )
        return
    for name, found in wrong.items():
        yield Problem(name, f"the config implies {list(wanted[name])}, found {list(found)}.", fatal=True)


def _fc_problems(config: DFlashConfig, tensors: Mapping[str, TensorInfo]) -> Iterator[Problem]:
    if "fc.weight" not in tensors:
        return
    shape, key = tensors["fc.weight"].shape, TAPS_KEY[config.origin]
    taps, width = len(config.taps), config.target_hidden_size
    if shape == (config.hidden_size, taps * width):
        return
    if len(shape) == 2 and shape[0] == config.hidden_size:  # noqa: PLR2004 -- a matrix
        fits = f"{shape[1] // width} taps" if shape[1] % width == 0 else f"target_hidden_size={shape[1] / taps:g}"
        yield Problem(
            key,
            f"fc.weight reads {shape[1]} features, and {taps} taps of {width} give {taps * width}; {fits} would fit.",
            fatal=True,
        )
    else:
        wanted = [config.hidden_size, taps * width]
        yield Problem("fc.weight", f"the config implies {wanted}, found {list(shape)}.", fatal=True)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def fit(config: DFlashConfig, target: Target) -> tuple[Problem, ...]:
    """Return what keeps a drafter from drafting for a target."""
    return (*_width_problems(config, target), *_target_depth_problems(config, target), *_target_words(config, target))


def _width_problems(config: DFlashConfig, target: Target) -> Iterator[Problem]:
    if config.target_hidden_size != target.hidden_size:
        yield Problem(
            "target_hidden_size",
            f"fc reads features of {config.target_hidden_size}, the target's have {target.hidden_size}; take the "
            "target it was trained for.",
            fatal=True,
        )
    shares = not (config.own_embedding and config.own_head)
    if shares and config.hidden_size != target.hidden_size:
        yield Problem(
            "hidden_size",
            f"it shares embeddings or head of width {target.hidden_size} and is {config.hidden_size} wide; take the "
            "target it was trained for.",
            fatal=True,
        )


def _target_depth_problems(config: DFlashConfig, target: Target) -> Iterator[Problem]:
    yield from _depth_problems(config, target.num_layers, "the target's layers")
    if config.num_target_layers not in (None, target.num_layers):
        yield Problem(
            "num_target_layers",
            f"trained on {config.num_target_layers} layers, the target has {target.num_layers}; take the target it was "
            "trained for (allowed, its taps are used as they are).",
        )
    if config.max_positions < target.max_positions:
        yield Problem(
            "max_position_embeddings",
            f"its positions end at {config.max_positions}, the target's at {target.max_positions}; acceptance falls "
            "beyond, the text does not change (allowed, it goes on drafting).",
        )


def _target_words(config: DFlashConfig, target: Target) -> Iterator[Problem]:
    if config.vocab_size != target.vocab_size:
        sized = any(name.startswith(VOCABULARY_SIZED) for name in config.tensor_shapes())
        whole_head = config.own_head and config.draft_vocab_size is None
        yield Problem(
            "vocab_size",
            f"it is made for {config.vocab_size} words, the target has {target.vocab_size}; take the target it was "
            f"trained for{'' if sized or whole_head else ', or correct it if one of them counts padding (allowed)'}.",
            fatal=sized or whole_head,
        )
    if config.mask_embedding or config.own_embedding or config.mask_token is None:
        return
    if config.mask_token >= target.vocab_size:
        yield Problem(
            "mask_token_id",
            f"{config.mask_token} has no row in the target's embeddings of {target.vocab_size}; take the target it was "
            "trained for, which may have been enlarged.",
            fatal=True,
        )
