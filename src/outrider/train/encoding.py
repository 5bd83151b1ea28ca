"""How prompts become tokens: through the chat template that serving uses, thinking on or off.

It also knows the words around an empty user turn, from which a model writes prompts of its own.
"""

from collections.abc import Sequence

from outrider.errors import UsageError
from outrider.text.chat import RejectedChatError, render_chat
from outrider.text.tokenizer import Tokenizer
from outrider.train.rows import Messages

_MARK = "\u2063PROMPT\u2063"  # stands for the user's words; templates may trim spaces, not this


class Encoder:
    """Turns conversations into the tokens that the target is served.

    Args:
        tokenizer: the target's; without a chat template, prompts are plain texts to continue.
        thinking: passed to the template as ``enable_thinking``; None leaves it to the template.

    Raises:
        UsageError: ``thinking`` is set and the template does not know it.
    """

    def __init__(self, tokenizer: Tokenizer, *, thinking: bool | None = None) -> None:
        self.tokenizer = tokenizer
        if thinking is not None and "enable_thinking" not in (tokenizer.chat_template or ""):
            raise UsageError(
                "The model's chat template knows no enable_thinking; leave out "
                f"{'--thinking' if thinking else '--no-thinking'}."
            )
        self._variables = {} if thinking is None else {"enable_thinking": thinking}

    @property
    def is_chat(self) -> bool:
        """Whether prompts go through a template."""
        return self.tokenizer.chat_template is not None

    def encode(self, conversations: Sequence[Messages]) -> list[tuple[int, ...] | UsageError]:
        """Return the ids of each prompt, up to where the answer begins; or why one has none.

        Raises:
            CheckpointError: the template is broken.
        """
        texts = [self._text(messages) for messages in conversations]
        good = [text for text in texts if isinstance(text, str)]
        encoded = iter(self.tokenizer.encode_many(good, add_special=not self.is_chat))
        return [tuple(next(encoded)) if isinstance(text, str) else text for text in texts]

    def _text(self, messages: Messages) -> str | UsageError:
        try:
            text = self._render(messages, answer=True) if self.is_chat else messages[-1]["content"]
            text.encode()
        except UnicodeEncodeError as error:
            return UsageError(f"not valid Unicode: a lone surrogate at character {error.start}.")
        except RejectedChatError as error:
            return error
        return text

    def empty_turn(self) -> tuple[tuple[int, ...], frozenset[int]]:
        """Return the ids that open a user turn, and the tokens that end one.

        Raises:
            UsageError: the model has no chat template, or one that drops or changes the user's words.
        """
        if not self.is_chat:
            raise UsageError("--self needs a chat template: the model writes a user turn. This model has none.")
        before, mark, after = self._render(({"role": "user", "content": _MARK},), answer=False).partition(_MARK)
        if not mark:
            raise UsageError("--self: the chat template does not show a user turn as it is written; leave --self out.")
        ends = set(self.tokenizer.stop_ids)
        closing = self.tokenizer.encode(after, add_special=False)
        if closing and self.tokenizer.is_special(closing[0]):
            ends.add(closing[0])
        opening = tuple(self.tokenizer.encode(before, add_special=False))
        if not opening:
            raise UsageError("--self: the chat template puts nothing before a user turn to begin from.")
        return opening, frozenset(ends)

    def _render(self, messages: Messages, *, answer: bool) -> str:
        return render_chat(
            self.tokenizer.chat_template,
            messages,
            add_generation_prompt=answer,
            bos_token=self.tokenizer.bos_token,
            eos_token=self.tokenizer.eos_token,
            **self._variables,
        )
