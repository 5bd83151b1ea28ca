"""The options that several commands share, and how their words become settings.

Imported when the command line starts, so nothing heavy may be imported here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from outrider.drafters.options import Budget, DraftOptions
from outrider.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from outrider.engine.params import SamplingParams


class Dtype(StrEnum):
    """Of the weights in memory."""

    auto = "auto"
    float32 = "float32"
    float16 = "float16"
    bfloat16 = "bfloat16"


class Load(StrEnum):
    """Real weights, or random ones of the same shapes."""

    real = "real"
    dummy = "dummy"


def option(*names: str, text: str, **more: Any) -> Any:
    """Declare an option whose default goes without saying."""
    return typer.Option(*names, help=text, show_default=False, **more)


def given(group: "DataclassInstance") -> list[str]:
    """Return the options of a group that differ from their defaults, as they are typed."""
    usual, hints = type(group)(), get_type_hints(type(group), include_extras=True)
    changed = [one.name for one in fields(group) if getattr(group, one.name) != getattr(usual, one.name)]
    told = [hints[name].__metadata__[0] for name in changed]
    # Within Annotated the first spelling stands where otherwise a default would.
    return [str(next(iter((one.default, *one.param_decls)))) for one in told]


Model = Annotated[
    str,
    typer.Argument(
        help="A folder, a GGUF file, a known name (smollm2-135m), or owner/name on the hub.",
        show_default=False,
    ),
]
MaxLen = Annotated[
    int | None,
    option(
        "--max-len",
        text="Longest sequence, prompt and output together; as needed if left out.",
        min=1,
    ),
]
Trace = Annotated[
    Path | None,
    option("--trace", metavar="FILE", text="Write every round to this file; outrider trace shows it."),
]
Json = Annotated[bool, option("--json", text="Print the result as JSON, and nothing else.")]


@dataclass(frozen=True, kw_only=True)
class Loading:
    """The form of a model's weights, and where they go."""

    dtype: Annotated[
        Dtype, typer.Option("--dtype", help="Of the weights; auto is float32 on a CPU, bfloat16 on a GPU.")
    ] = Dtype.auto
    device: Annotated[str, typer.Option("--device", help="cpu, cuda, ...; auto takes a GPU if any.")] = "auto"


@dataclass(frozen=True, kw_only=True)
class Drafting:
    """The draft model, and how it is used."""

    draft_model: Annotated[
        str | None,
        option(
            "--draft-model", metavar="PATH", text="For drafters that have weights: folder, GGUF file or owner/name."
        ),
    ] = None
    draft_tokens: Annotated[
        int | None, option("--draft-tokens", metavar="N", text="Draft tokens a round; as many as pay if left out.")
    ] = None
    budget: Annotated[
        str,
        typer.Option("--budget", metavar="N|auto", help="Nodes of a draft tree; auto: as many as pay (mtp: a chain)."),
    ] = "auto"
    spine: Annotated[bool, option("--spine", text="A draft tree holds the chain of best words before it branches.")] = (
        False
    )
    draft_sampling: Annotated[
        bool,
        typer.Option(
            "--draft-sampling/--no-draft-sampling",
            help="At a temperature, draw chains from the drafter's law, or take its likeliest words: accepted less "
            "often, but a seed then gives the text that it gives without drafts.",
        ),
    ] = True
    allow: Annotated[
        list[str] | None,
        option("--allow", metavar="KEY", text="Pass over this key of the draft model's config; repeatable."),
    ] = None

    def options(self) -> DraftOptions:
        """Return the checked settings.

        Raises:
            UsageError: a value out of range, or a budget that is no number.
        """
        return DraftOptions(
            tokens=self.draft_tokens,
            budget=_budget(self.budget),
            spine=self.spine,
            sampled=self.draft_sampling,
            allow=tuple(self.allow or ()),
        )


def _budget(text: str) -> Budget:
    if text == "auto":
        return "auto"
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"--budget {text!r}: expected auto or a whole number of at least 1.") from None


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How words are chosen, and where a text ends."""

    max_tokens: Annotated[int, typer.Option("--max-tokens", help="At most this many new tokens.")] = 256
    temperature: Annotated[float, typer.Option("--temperature", help="0 is greedy; above 0 tokens are drawn.")] = 0.0
    top_k: Annotated[int, option("--top-k", text="Keep the k likeliest words; 0 keeps all.")] = 0
    top_p: Annotated[float, option("--top-p", text="Keep the likeliest words that hold this share.")] = 1.0
    min_p: Annotated[
        float, option("--min-p", text="Drop words below this share of the likeliest one's probability.")
    ] = 0.0
    repetition_penalty: Annotated[
        float, option("--repetition-penalty", text="Above 1 makes words of prompt and output rarer.")
    ] = 1.0
    presence_penalty: Annotated[
        float, option("--presence-penalty", text="Taken from the logit of each word of the output.")
    ] = 0.0
    frequency_penalty: Annotated[
        float, option("--frequency-penalty", text="Taken once for every time the word occurred.")
    ] = 0.0
    logit_bias: Annotated[
        list[str] | None,
        option("--logit-bias", text="Add VALUE to a token's logit; repeatable.", metavar="ID=VALUE"),
    ] = None
    seed: Annotated[
        int | None,
        option("--seed", text="Same seed, same text, with drafts and without, save where drafts are drawn."),
    ] = None
    stop: Annotated[
        list[str] | None, option("--stop", metavar="TEXT", text="End before this text appears; repeatable.")
    ] = None
    stop_token_id: Annotated[
        list[int] | None, option("--stop-token-id", metavar="ID", text="End with this token; repeatable.")
    ] = None
    ignore_eos: Annotated[bool, option("--ignore-eos", text="Go on past the model's own end of text.")] = False

    def params(self, *, logprobs: int | None = None) -> "SamplingParams":
        """Return the checked settings.

        Raises:
            UsageError: a value out of range, a contradiction, or a bias that is not ``ID=VALUE``.
        """
        from outrider.engine.params import SamplingParams

        settings = {**vars(self), "logit_bias": _bias(self.logit_bias or ()), "stop": tuple(self.stop or ())}
        stop_token_ids = tuple(settings.pop("stop_token_id") or ())
        return SamplingParams(**settings, stop_token_ids=stop_token_ids, logprobs=logprobs)


def _bias(texts: Sequence[str]) -> dict[int, float]:
    bias = {}
    for text in texts:
        token, _, value = text.partition("=")
        try:
            bias[int(token)] = float(value)
        except ValueError:
            raise UsageError(
                f"--logit-bias {text!r}: expected ID=VALUE, a token's number and what to add to its logit, e.g. 42=-5."
            ) from None
    return bias
