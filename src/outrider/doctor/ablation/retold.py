"""The same prompts told otherwise: without the chat template, with its thinking mode on or off. Free of torch.

These change what the target writes and leave the pair as it is: a drafter that learnt from chats meets other texts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from outrider.doctor.ablation.fault import Fault
from outrider.errors import UsageError
from outrider.text.tokenizer import Tokenizer
from outrider.train.encoding import Encoder

SWITCH = "enable_thinking"
OFF = Fault(
    name="template",
    strength="off",
    cause="chat_template_or_thinking",
    how="prompts are texts to continue, without the chat template",
)
THINKING = {
    thinking: Fault(
        name="thinking",
        strength="on" if thinking else "off",
        cause="chat_template_or_thinking",
        how="the chat template is told so",
    )
    for thinking in (True, False)
}
RETOLD = (OFF, *THINKING.values())


@dataclass(frozen=True, slots=True)
class Retold:
    """Prompts as another client would send them.

    Attributes:
        fault: what is other.
        prompts: token ids, of the same texts in the same order.
    """

    fault: Fault
    prompts: Sequence[Sequence[int]]


def retold(
    tokenizer: Tokenizer, texts: Sequence[str], prompts: Sequence[Sequence[int]]
) -> tuple[tuple[Retold, ...], tuple[str, ...]]:
    """Return the tellings that differ, and of those that cannot be had why.

    Args:
        tokenizer: the target's.
        texts: the prompts as text, one user turn each.
        prompts: their ids as they are.

    Raises:
        UsageError: the template refuses a prompt with thinking on or off.
    """
    template = tokenizer.chat_template
    if template is None:
        return (), ("template and thinking: not applicable, the target has no chat template",)
    missing = () if SWITCH in template else (f"thinking: not applicable, the chat template has no {SWITCH}",)
    told = [one for one in _tellings(tokenizer, texts) if list(map(tuple, one.prompts)) != list(map(tuple, prompts))]
    return tuple(told), missing


def _tellings(tokenizer: Tokenizer, texts: Sequence[str]) -> Iterator[Retold]:
    yield Retold(OFF, [tuple(tokenizer.encode(text, add_special=True)) for text in texts])
    if SWITCH in (tokenizer.chat_template or ""):
        for thinking, fault in THINKING.items():
            yield Retold(fault, _thinking(tokenizer, texts, thinking=thinking))


def _thinking(tokenizer: Tokenizer, texts: Sequence[str], *, thinking: bool) -> list[tuple[int, ...]]:
    encoded = Encoder(tokenizer, thinking=thinking).encode([({"role": "user", "content": text},) for text in texts])
    refused = next((one for one in encoded if isinstance(one, UsageError)), None)
    if refused is not None:
        raise refused
    return [one for one in encoded if not isinstance(one, UsageError)]
