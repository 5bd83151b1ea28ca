"""The options that several commands share, and how their words become settings.

Imported when the command line starts, so nothing heavy may be imported here.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from outrider.errors import UnknownNameError, UsageError
from outrider.registry import DRAFTERS

if TYPE_CHECKING:
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


def _option(*names: str, text: str, **more: Any) -> Any:
    return typer.Option(*names, help=text, show_default=False, **more)


Model = Annotated[
    str,
    typer.Argument(
        help="A folder, a GGUF file, a known name (smollm2-135m), or owner/name on the hub.",
        show_default=False,
    ),
]
DtypeOption = Annotated[
    Dtype, typer.Option("--dtype", help="Of the weights; auto is float32 on a CPU, bfloat16 on a GPU.")
]
Device = Annotated[str, typer.Option("--device", help="cpu, cuda, ...; auto takes a GPU if any.")]
MaxLen = Annotated[
    int | None,
    _option(
        "--max-len",
        text="Longest sequence, prompt and output together; as needed if left out.",
        min=1,
    ),
]
Json = Annotated[bool, _option("--json", text="Print the result as JSON, and nothing else.")]

MaxTokens = Annotated[int, typer.Option("--max-tokens", help="At most this many new tokens.")]
Temperature = Annotated[float, typer.Option("--temperature", help="0 is greedy; above 0 tokens are drawn.")]
TopK = Annotated[int, _option("--top-k", text="Keep the k likeliest words; 0 keeps all.")]
TopP = Annotated[float, _option("--top-p", text="Keep the likeliest words that hold this share.")]
MinP = Annotated[float, _option("--min-p", text="Drop words below this share of the likeliest one's probability.")]
RepetitionPenalty = Annotated[
    float, _option("--repetition-penalty", text="Above 1 makes words of prompt and output rarer.")
]
PresencePenalty = Annotated[
    float, _option("--presence-penalty", text="Taken from the logit of each word of the output.")
]
FrequencyPenalty = Annotated[float, _option("--frequency-penalty", text="Taken once for every time the word occurred.")]
LogitBias = Annotated[
    list[str] | None,
    _option("--logit-bias", text="Add VALUE to a token's logit; repeatable.", metavar="ID=VALUE"),
]
Seed = Annotated[int | None, _option("--seed", text="Same seed, same text, whatever the drafter.")]
Stop = Annotated[list[str] | None, _option("--stop", metavar="TEXT", text="End before this text appears; repeatable.")]
StopTokenId = Annotated[
    list[int] | None, _option("--stop-token-id", metavar="ID", text="End with this token; repeatable.")
]
IgnoreEos = Annotated[bool, _option("--ignore-eos", text="Go on past the model's own end of text.")]


def sampling_params(
    *,
    logit_bias: Sequence[str] | None,
    stop: Sequence[str] | None,
    stop_token_id: Sequence[int] | None,
    **settings: Any,
) -> "SamplingParams":
    """Return the checked settings.

    Raises:
        UsageError: a value out of range, a contradiction, or a bias that is not ``ID=VALUE``.
    """
    from outrider.engine.params import SamplingParams

    return SamplingParams(
        logit_bias=dict(_bias(text) for text in logit_bias or ()),
        stop=tuple(stop or ()),
        stop_token_ids=tuple(stop_token_id or ()),
        **settings,
    )


def _bias(text: str) -> tuple[int, float]:
    token, _, value = text.partition("=")
    try:
        return int(token), float(value)
    except ValueError:
        raise UsageError(
            f"--logit-bias {text!r}: expected ID=VALUE, a token's number and what to add to its logit, e.g. 42=-5."
        ) from None


def check_drafter(name: str) -> str:
    """Return the name; an unknown one is refused before a model is loaded for it.

    Raises:
        UnknownNameError: with the nearest known name.
    """
    if name not in DRAFTERS:
        raise UnknownNameError("drafter", name, DRAFTERS)
    return name
