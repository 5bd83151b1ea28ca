"""From a drafter of uncertain config and a recording of its target to the config that fits both."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from outrider.acceptance import Acceptance
from outrider.models.decoder import Decoder
from outrider.models.dflash.config import DFlashConfig, LayerMask
from outrider.models.dflash.formats import DraftCheckpoint, fit
from outrider.models.dflash.loading import load_dflash
from outrider.models.dflash.network import DFlash
from outrider.repair.evidence import Row, found_row, tensor_rows
from outrider.repair.given import Given, read_given
from outrider.repair.infer import Inferred, check_all_have_a_place, infer
from outrider.repair.judge import Judge
from outrider.repair.masks import LIKELIEST, Pieces, mask_tokens
from outrider.repair.opening import Unsure
from outrider.repair.readings import WINDOWS, questions, window_of
from outrider.repair.search import Search, Told, beginnings
from outrider.repair.start import WINDOW, starting_config
from outrider.repair.weigh import decided, weigh
from outrider.replay import Recording, replay

# Points that greedy acceptance cannot tell or that are not tried: field, and what it is where nothing is given.
NOT_TRIED = {
    "max_position_embeddings": ("max_positions", "not tried; the target's"),
    "attention_value_scale": ("value_scale", "not tried"),
    "output_multiplier": ("output_multiplier", "not tried; greedy drafts do not depend on it"),
    "final_logit_softcapping": ("soft_cap", "not tried; greedy drafts do not depend on it"),
}


@dataclass(frozen=True, slots=True)
class Repaired:
    """What was found.

    Attributes:
        config: the drafter as it is best read.
        rows: key by key.
        acceptance: rounds of greedy decoding with it, whole blocks.
        judge: counts what was tried.
        notes: what else should be known.
        seconds: that it took.
    """

    config: DFlashConfig
    rows: list[Row]
    acceptance: Acceptance
    judge: Judge
    notes: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class _Ground:
    """What is known before anything is tried."""

    inferred: Inferred
    given: Given
    start: DFlashConfig
    mask_tokens: list[int]
    likely: int
    windows: list[int]


def repair(
    drafter: Unsure,
    target: Decoder,
    tokenizer: Pieces,
    recording: Recording,
    *,
    tokens: Sequence[int] = (),
    windows: Sequence[int] = (),
    told: Told = lambda _line: None,
) -> Repaired:
    """Find the config under which a drafter guesses best.

    Args:
        drafter: its files.
        target: what it drafts for.
        tokenizer: the target's.
        recording: texts of the target.
        tokens: mask tokens to try beside those that the tokenizer suggests.
        windows: window sizes to try beside the usual ones.
        told: is told what is being tried.

    Raises:
        CheckpointError: the tensors are no drafter's, or one's for another target.
        UnsupportedError: a kind of drafter that is not run.
    """
    begun = time.perf_counter()
    ground = _ground(drafter, target, tokenizer, recording, tokens=tokens, windows=windows)
    network = _network(drafter, ground.start, target)
    asked = questions(ground.start, target.config, mask_tokens=ground.mask_tokens, windows=ground.windows)
    search = Search(Judge(network, recording), asked, told)
    likely = ground.mask_tokens[: ground.likely]
    tries = beginnings(ground.start, target.config.num_layers, mask_tokens=likely, windows=ground.windows)
    findings = weigh(search, search.run(tries))
    found = decided(search, findings, findings[0].best)
    final = replace(found, layers=with_default_windows(found, ground.given.config, recording.longest))
    rows = [
        *tensor_rows(ground.inferred, mask_embedding=drafter.mask_embedding),
        *(found_row(finding, search.judge, final) for finding in findings),
        *_other_rows(final, ground.given, recording, windows=bool(ground.windows)),
    ]
    told("all anchors")
    acceptance = replay(network.variant(final), recording).acceptance()
    notes = (*drafter.notes, *ground.given.notes)
    return Repaired(final, rows, acceptance, search.judge, notes, time.perf_counter() - begun)


def _network(drafter: Unsure, start: DFlashConfig, target: Decoder) -> DFlash:
    """Load the weights; what can be passed over at a starting point is."""
    allow = tuple({problem.key for problem in fit(start, target.config) if not problem.fatal})
    return load_dflash(DraftCheckpoint(drafter.checkpoint, start, (), (), allow), target)


def _ground(
    drafter: Unsure,
    target: Decoder,
    tokenizer: Pieces,
    recording: Recording,
    *,
    tokens: Sequence[int],
    windows: Sequence[int],
) -> _Ground:
    inferred, mask = infer(drafter.shapes, target.config), drafter.mask_embedding
    usual = starting_config(inferred, target.config, given=None, mask_embedding=mask)
    given = read_given(drafter.checkpoint.config, usual, drafter.checkpoint.tensors)
    start = starting_config(inferred, target.config, given=given.config, mask_embedding=mask)
    check_all_have_a_place(drafter.shapes, start.tensor_shapes())
    stated = () if given.config is None or start.mask_token is None else (start.mask_token,)
    masks = mask_tokens(tokenizer, start, (*stated, *tokens))
    sizes = _telling(recording, (*windows, *WINDOWS, window_of(start.layers) or 0))
    likely = len(stated) + len(tokens) + LIKELIEST
    return _Ground(inferred, given, _seen(start, masks[0], recording), masks, likely, sizes)


def _telling(recording: Recording, windows: Sequence[int]) -> list[int]:
    """Sizes of windows that the texts can tell from none."""
    return sorted({window for window in windows if 0 < window < recording.longest})


def _seen(start: DFlashConfig, mask_token: int, recording: Recording) -> DFlashConfig:
    """The start as the texts see it: a window as long as they are is none."""
    layers = tuple(
        replace(mask, window=None) if mask.window is not None and mask.window >= recording.longest else mask
        for mask in start.layers
    )
    return replace(start, layers=layers, mask_token=None if start.mask_embedding else mask_token)


def with_default_windows(config: DFlashConfig, given: DFlashConfig | None, longest: int) -> tuple[LayerMask, ...]:
    """Give windows to layers that the texts say nothing of: those of the given config, or the usual to causal layers.

    Args:
        config: as found.
        given: the existing config.
        longest: tokens of the longest text; no window below it was found, so that none below it is put in.
    """
    causal = [mask.causal for mask in config.layers]
    if window_of(config.layers) is not None:
        return config.layers
    known = () if given is None else given.layers
    if [mask.causal for mask in known] == causal and all((mask.window or longest) >= longest for mask in known):
        return known
    window = WINDOW if longest <= WINDOW else config.max_positions
    return tuple(replace(mask, window=window if mask.causal else None) for mask in config.layers)


def _other_rows(config: DFlashConfig, given: Given, recording: Recording, *, windows: bool) -> list[Row]:
    """Return what was not tried.

    Args:
        config: as it is written.
        given: the existing config.
        recording: the texts.
        windows: whether those were tried.
    """
    rows = []
    if not windows:
        note = f"the texts reach {recording.longest} tokens and say nothing of longer windows: give longer prompts"
        rows.append(Row(key="sliding_window", value=window_of(config.layers), origin="undetermined", note=note))
    for key, (field, note) in NOT_TRIED.items():
        value = getattr(config, field)
        if key in given.keys:
            rows.append(Row(key=key, value=value, origin="given"))
        else:
            rows.append(Row(key=key, value=value, origin="undetermined", note=note))
    return rows
