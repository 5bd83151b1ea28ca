"""The same prompts with several drafters, side by side in one run, plain decoding first.

Who goes first is rotated from prompt to prompt, so that a machine that warms up or slows down favours
nobody. A text that differs from the plain one is examined (``outrider.differences``), never passed over; only where
tokens are drawn from a drafter's own law are texts not compared, because the same law then gives other texts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from outrider.acceptance import Acceptance
from outrider.bench.timing import Work, speed, speed_ratio
from outrider.differences import Difference, examine
from outrider.engine.tracing import Recorder
from outrider.errors import UsageError
from outrider.provenance import Provenance, provenance
from outrider.results import Comparison, MethodResult

if TYPE_CHECKING:
    from outrider.engine.params import SamplingParams
    from outrider.runner import Runner
    from outrider.transcript import Completion

PLAIN = "none"
WARM_UP_TOKENS = 8

Progress = Callable[[str, int], None]
Trace = Callable[[str, int], Recorder]


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison with the texts behind it.

    Attributes:
        comparison: what is reported.
        completions: per drafter, one text a prompt.
        differences: every text that differs from the plain one; near-ties are also in the comparison.
    """

    comparison: Comparison
    completions: "dict[str, list[Completion]]"
    differences: tuple[Difference, ...]

    @property
    def real_differences(self) -> tuple[Difference, ...]:
        """Those that no near-tie explains."""
        return tuple(found for found in self.differences if not found.near_tie)


def compare(
    runner: "Runner",
    prompts: Sequence[Sequence[int]],
    drafters: Sequence[str],
    params: "SamplingParams",
    *,
    progress: Progress | None = None,
    trace: Trace | None = None,
) -> Compared:
    """Decode every prompt with every drafter.

    Args:
        runner: a loaded model; its own drafter is not used.
        prompts: token ids.
        drafters: names; ``none`` is added in front.
        params: the same for all; drawn tokens need a seed.
        progress: is told the drafter and the prompt's index before each text.
        trace: gives for a drafter and a prompt's index who is told of the rounds; the warm-up is not told.

    Raises:
        UsageError: no prompt, or a temperature without a seed.
    """
    check_seed(params)
    if not prompts:
        raise UsageError("A comparison needs at least one prompt.")
    names = [PLAIN, *(name for name in dict.fromkeys(drafters) if name != PLAIN)]
    runners = {name: runner.with_drafter(name) for name in names}
    _warm_up(runners, prompts[0], params)
    completions = _run(runners, prompts, params, progress, trace)
    drawn = set() if params.greedy else {name for name in names if runners[name].drafter.draws}
    differences = tuple(
        found
        for name in names[1:]
        if name not in drawn
        for found in _differences(runner, name, prompts, completions, params)
    )
    methods = [_method(name, completions, differences, comparable=name not in drawn) for name in names]
    record = Comparison(methods=methods, drafting=runner.loaded.drafting, provenance=_provenance(params.seed))
    return Compared(record, completions, differences)


def check_seed(params: "SamplingParams") -> None:
    """Refuse draws that cannot be repeated.

    Raises:
        UsageError: a temperature without a seed.
    """
    if not params.greedy and params.seed is None:
        raise UsageError(
            "A comparison at a temperature above 0 needs a seed (--seed): without one every text is another draw, and "
            "equal texts cannot be expected."
        )


def _warm_up(runners: "dict[str, Runner]", prompt: Sequence[int], params: "SamplingParams") -> None:
    """Let memory, caches and the drafters' own measurements of cost settle before the clock counts."""
    short = replace(params, max_tokens=min(WARM_UP_TOKENS, params.max_tokens))
    for runner in runners.values():
        runner.generate(prompt, short)


def _run(
    runners: "dict[str, Runner]",
    prompts: Sequence[Sequence[int]],
    params: "SamplingParams",
    progress: Progress | None,
    trace: Trace | None,
) -> "dict[str, list[Completion]]":
    names = list(runners)
    completions: dict[str, list[Completion]] = {name: [] for name in names}
    for index, prompt in enumerate(prompts):
        turn = index % len(names)
        for name in names[turn:] + names[:turn]:
            if progress is not None:
                progress(name, index)
            if trace is not None:
                runners[name].engine.recorder = trace(name, index)
            completions[name].append(runners[name].generate(prompt, params))
    return completions


def _differences(
    runner: "Runner",
    name: str,
    prompts: Sequence[Sequence[int]],
    completions: "dict[str, list[Completion]]",
    params: "SamplingParams",
) -> list[Difference]:
    found = []
    triples = zip(prompts, completions[PLAIN], completions[name], strict=True)
    for index, (prompt, plain, drafted) in enumerate(triples):
        if plain.tokens != drafted.tokens:
            found.append(
                examine(
                    runner.target,
                    params,
                    drafter=name,
                    prompt=index,
                    prompt_ids=prompt,
                    plain=plain.tokens,
                    drafted=drafted.tokens,
                )
            )
    return found


def _method(
    name: str, completions: "dict[str, list[Completion]]", differences: Sequence[Difference], *, comparable: bool
) -> MethodResult:
    texts = completions[name]
    own = [found for found in differences if found.drafter == name]
    acceptance = Acceptance.from_sequences([text.rounds for text in texts])
    ratio = speed_ratio(works(texts), works(completions[PLAIN]))
    return MethodResult(
        drafter=name,
        tokens=sum(len(text.pieces) for text in texts),
        rounds=acceptance.num_rounds,
        acceptance_length=acceptance.length,
        position_rates=list(acceptance.position_rates),
        tokens_per_second=speed(works(texts)) or 0.0,
        ratio=ratio.value,
        ratio_low=ratio.low,
        ratio_high=ratio.high,
        texts_equal=not own if comparable else None,
        near_ties=[found.as_near_tie() for found in own if found.near_tie],
    )


def works(texts: "Sequence[Completion]") -> list[Work]:
    """Return tokens and seconds of decoding of each text; reading the prompt is left out."""
    return [Work(len(text.pieces), text.decode_seconds) for text in texts]


def _provenance(seed: int | None) -> Provenance:
    import torch

    return provenance(threads=torch.get_num_threads(), seed=seed)
