"""Runs the pair healthy and with each fault, on texts recorded once."""

from collections.abc import Callable, Sequence

from outrider.doctor.ablation.counts import Counts
from outrider.doctor.ablation.fault import Fault
from outrider.doctor.ablation.faults import HEALTHY, usual_faults
from outrider.doctor.ablation.inject import Pair, replay_with
from outrider.doctor.ablation.table import AblationTable, Entry
from outrider.errors import UsageError
from outrider.models.decoder import Decoder
from outrider.models.dflash.formats import DraftCheckpoint, fit, refuse
from outrider.models.dflash.loading import read_mask_embedding, read_weight
from outrider.replay import Recording, record


def pair_of(target: Decoder, drafter: DraftCheckpoint) -> Pair:
    """Take a drafter's files as the pair's tensors.

    Raises:
        CheckpointError: it does not fit the target, or its values are damaged.
    """
    refuse(f"{drafter.checkpoint.source.path} with this target", fit(drafter.config, target.config), drafter.allow)
    return Pair(target, drafter.config, lambda name: read_weight(drafter, name), read_mask_embedding(drafter))


def ablate(
    pair: Pair,
    prompts: Sequence[Sequence[int]],
    *,
    faults: Sequence[Fault] | None = None,
    max_tokens: int = 128,
    stop_ids: frozenset[int] = frozenset(),
    told: Callable[[str], None] = lambda _line: None,
) -> AblationTable:
    """Let the target write, and measure the pair on its texts with each fault put in.

    Args:
        pair: target and drafter.
        prompts: token ids.
        faults: which; None for all that the doctor knows.
        max_tokens: new tokens of each text.
        stop_ids: tokens that end a text.
        told: is told what is being done.

    Raises:
        UsageError: no prompts, or texts too short for a round.
    """
    told("the target writes")
    recording = record(pair.target, prompts, max_tokens=max_tokens, stop_ids=stop_ids, report=told)
    return ablate_recorded(pair, recording, faults=faults, told=told)


def ablate_recorded(
    pair: Pair,
    recording: Recording,
    *,
    faults: Sequence[Fault] | None = None,
    told: Callable[[str], None] = lambda _line: None,
) -> AblationTable:
    """Measure the pair with each fault on texts that are there already (see ``ablate``)."""
    texts = tuple(text for text in recording.texts if len(text.anchors))
    if not texts:
        raise UsageError("An ablation needs texts with at least two written tokens; found none: raise max_tokens.")
    usable = Recording(texts)
    asked = usual_faults(pair.config, pair.target.shape.num_layers) if faults is None else faults
    entries = tuple(Entry(fault, measure(fault, pair, usable, told)) for fault in asked)
    return AblationTable(measure(HEALTHY, pair, usable, told), entries)


def measure(fault: Fault, pair: Pair, recording: Recording, told: Callable[[str], None]) -> Counts:
    """Count the rounds of each text with one fault put in."""
    told(fault.label)
    drafted = fault.damage.drafted or fault.misread(pair.config).max_tokens
    return Counts.of(replay_with(fault, pair, recording).acceptance(drafted), drafted)
