r"""How a GGUF's ``tokenizer.ggml.pre`` cuts text into words before byte-pair merging.

One visible table. A name stands here only if its rule is known exactly: from the model's own
``tokenizer.json`` where that is public, from llama.cpp otherwise. Others are refused, because
nearly the right split gives other tokens than the model was trained on.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import pre_tokenizers

_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_SIGNS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3 = rf"{_CONTRACTIONS}|{_WORD}|\p{{N}}{{1,3}}|{_SIGNS}|{_SPACES}"
_QWEN2 = rf"{_CONTRACTIONS}|{_WORD}|\p{{N}}|{_SIGNS}|{_SPACES}"
_QWEN35 = (
    rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}"
    rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_SPACES}"
)


@dataclass(frozen=True, slots=True)
class WordRule:
    """One way to cut text.

    Attributes:
        splits: patterns applied one after the other; each match and each gap becomes a piece.
        composed: the text is brought to Unicode form NFC first.
        whole_words: a word that is itself a token is taken as it is, without merging.
        adds_bos: a begin token is added unless the file says otherwise.
    """

    splits: tuple[str, ...]
    composed: bool = False
    whole_words: bool = False
    adds_bos: bool = False

    def build(self) -> "pre_tokenizers.PreTokenizer":
        """Return the rule as a pre-tokenizer, bytes written as characters last."""
        from tokenizers import Regex, pre_tokenizers

        steps: list[pre_tokenizers.PreTokenizer] = [
            pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in self.splits
        ]
        steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False))
        return pre_tokenizers.Sequence(steps)


_SINGLE_DIGITS = WordRule((r"\p{N}", _GPT2))
_LLAMA3_RULE = WordRule((_LLAMA3,), whole_words=True, adds_bos=True)

WORD_RULES = {
    "default": WordRule(
        (r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"),
    ),
    "gpt-2": WordRule((_GPT2,)),
    "llama-bpe": _LLAMA3_RULE,
    "llama-v3": _LLAMA3_RULE,
    "llama3": _LLAMA3_RULE,
    "qwen2": WordRule((_QWEN2,), composed=True),
    "qwen35": WordRule((_QWEN35,), composed=True),
    "refact": _SINGLE_DIGITS,
    "smollm": _SINGLE_DIGITS,
    "starcoder": _SINGLE_DIGITS,
}
