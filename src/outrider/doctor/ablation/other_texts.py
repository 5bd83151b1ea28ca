"""Measures what changes the texts and not the pair: prompts told otherwise, and several texts decoded at once.

Counts stay paired by prompt with those of the table. Shape letters: X texts, K draft positions.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from outrider.acceptance import Acceptance, Round
from outrider.doctor.ablation.counts import Counts
from outrider.doctor.ablation.fault import Fault
from outrider.doctor.ablation.faults import HEALTHY
from outrider.doctor.ablation.inject import Pair, replay_with
from outrider.doctor.ablation.retold import Retold
from outrider.doctor.ablation.table import AblationTable, Entry
from outrider.drafters.dflash import DFlashDrafter
from outrider.drafters.options import DraftOptions
from outrider.drafters.setting import Setting
from outrider.engine.costs import Costs
from outrider.engine.engine import Engine
from outrider.engine.params import SamplingParams
from outrider.models.dflash.network import DFlash
from outrider.replay import record

AT_ONCE = 4
BATCH = Fault(
    name="batch",
    strength=f"{AT_ONCE} at once",
    cause="other",
    how="texts share passes; what is drafted must not change",
)
"""No suspect: the engine here is exact at any batch, and others' kernels are not here to be tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the table's texts were made from.

    Attributes:
        prompts: token ids.
        max_tokens: new tokens of each text.
        stop_ids: tokens that end a text.
    """

    prompts: Sequence[Sequence[int]]
    max_tokens: int
    stop_ids: frozenset[int] = frozenset()

    @property
    def params(self) -> SamplingParams:
        """As the engine wants them."""
        return SamplingParams(max_tokens=self.max_tokens)


def with_other_texts(
    table: AblationTable,
    pair: Pair,
    asked: Asked,
    tellings: Sequence[Retold],
    *,
    told: Callable[[str], None] = lambda _line: None,
) -> AblationTable:
    """Return the table with what other texts add to it.

    Args:
        table: of the prompts as they are.
        pair: as it is.
        asked: what the table's texts were made from.
        tellings: the same prompts told otherwise.
        told: is told what is being done.
    """
    entries = tuple(Entry(one.fault, measure_retold(one, pair, asked, told)) for one in tellings)
    told(BATCH.label)
    checks = (Entry(BATCH, measure_batch(pair, asked)),) if len(asked.prompts) > 1 else ()
    return replace(table, entries=(*table.entries, *entries), checks=checks)


def measure_retold(one: Retold, pair: Pair, asked: Asked, told: Callable[[str], None]) -> Counts:
    """Let the target write to prompts told otherwise, and count the rounds."""
    told(one.fault.label)
    written = record(pair.target, one.prompts, max_tokens=asked.max_tokens, stop_ids=asked.stop_ids, report=told)
    return _counts((text.rounds() for text in replay_with(HEALTHY, pair, written).texts), pair)


def measure_batch(pair: Pair, asked: Asked) -> Counts:
    """Decode the prompts with the drafter, several at once; count their rounds."""
    longest = max(map(len, asked.prompts)) + asked.max_tokens
    network = DFlash(pair.config, pair.read, pair.target, pair.mask_embedding)
    options = DraftOptions(tokens=pair.config.max_tokens)
    drafter = DFlashDrafter.build(Setting(AT_ONCE, longest, network, options))
    engine = Engine(
        pair.target, drafter, slots=AT_ONCE, max_len=longest, device=pair.target.device, costs=Costs(learn=False)
    )
    sequences = [engine.add(tuple(prompt), asked.params, stop_ids=asked.stop_ids) for prompt in asked.prompts]
    for _event in engine.run():
        pass
    return _counts((sequence.rounds for sequence in sequences), pair)


def _counts(rounds: Iterable[Iterable[Round]], pair: Pair) -> Counts:
    return Counts.of(Acceptance.from_sequences(rounds), pair.config.max_tokens)
