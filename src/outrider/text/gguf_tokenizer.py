"""Builds the tokenizer that a GGUF file carries: byte-level BPE (``tokenizer.ggml.model`` = gpt2).

How text is cut into words is in ``pretokenizers``. Other kinds of vocabulary are refused by name.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from outrider.errors import CheckpointError, UnsupportedError
from outrider.text.pretokenizers import WORD_RULES, WordRule
from outrider.text.tokenizer import CheckpointLike, Tokenizer, configured_stop_ids

if TYPE_CHECKING:
    import tokenizers

_KEY = "tokenizer.ggml."
# gguf.TokenType; not imported, since importing gguf costs more than building the tokenizer.
_UNKNOWN, _CONTROL, _USER_DEFINED = 2, 3, 4

# Many files name one end token and use two: the end of a turn and the end of the document.
END_TOKENS = frozenset({"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end_of_text|>"})


def load_gguf_tokenizer(checkpoint: CheckpointLike) -> Tokenizer:
    """Build the tokenizer from the file's metadata."""
    vocabulary = _Vocabulary(checkpoint.metadata, str(checkpoint.source.path))
    rule = vocabulary.word_rule()
    backend = vocabulary.build(rule)
    template = checkpoint.metadata.get("tokenizer.chat_template")
    return Tokenizer(
        backend,
        stop_ids=vocabulary.stop_ids() | configured_stop_ids(checkpoint),
        bos_token=vocabulary.special("bos"),
        eos_token=vocabulary.special("eos"),
        chat_template=template if isinstance(template, str) else None,
    )


class _Vocabulary:
    """The ``tokenizer.ggml.*`` values of one file, checked."""

    def __init__(self, metadata: Mapping[str, Any], where: str) -> None:
        self._metadata = metadata
        self._where = where
        kind = metadata.get(f"{_KEY}model")
        if kind is None:
            raise CheckpointError(
                f"{where} carries no tokenizer ({_KEY}model is missing). Give the model's Hugging Face folder."
            )
        if kind != "gpt2":
            raise UnsupportedError(
                f"{where} carries a tokenizer of kind {kind!r}; only 'gpt2' (byte-level BPE) "
                "is read from a GGUF file. Give the model's Hugging Face folder."
            )
        self.tokens: list[str] = self._strings("tokens")
        self.ids = {token: token_id for token_id, token in enumerate(self.tokens)}
        if len(self.ids) != len(self.tokens):
            raise CheckpointError(f"{_KEY}tokens in {where} holds {len(self.tokens) - len(self.ids)} token(s) twice.")

    def word_rule(self) -> WordRule:
        name = self._metadata.get(f"{_KEY}pre")
        rule = WORD_RULES.get(name) if isinstance(name, str) else None
        if rule is None:
            found = "is missing" if name is None else f"is {name!r}"
            raise UnsupportedError(
                f"{_KEY}pre in {self._where} {found}; known: {', '.join(sorted(WORD_RULES))}. "
                "Give the model's Hugging Face folder."
            )
        return rule

    def build(self, rule: WordRule) -> "tokenizers.Tokenizer":
        from tokenizers import Tokenizer as Backend
        from tokenizers import decoders, models, normalizers

        merges = self._merges()
        try:
            model = models.BPE(vocab=self.ids, merges=merges, ignore_merges=rule.whole_words)
        except Exception as error:  # noqa: BLE001 - the library raises bare Exception
            raise CheckpointError(
                f"{_KEY}merges and {_KEY}tokens in {self._where} do not fit each other: {' '.join(str(error).split())}."
            ) from None
        backend = Backend(model)
        if rule.composed:
            backend.normalizer = normalizers.NFC()
        backend.pre_tokenizer = rule.build()
        backend.decoder = decoders.ByteLevel()
        self._mark_tokens(backend)
        self._add_edges(backend, adds_bos=rule.adds_bos)
        return backend

    def special(self, name: str) -> str | None:
        token_id = self._special_id(name)
        return None if token_id is None else self.tokens[token_id]

    def stop_ids(self) -> set[int]:
        named = {self._special_id(name) for name in ("eos", "eot", "eom")}
        return {i for i in named if i is not None} | {self.ids[token] for token in END_TOKENS if token in self.ids}

    def _mark_tokens(self, backend: "tokenizers.Tokenizer") -> None:
        """Tell the library which tokens are taken whole from the text."""
        from tokenizers import AddedToken

        types = self._token_types()
        marked = (_UNKNOWN, _CONTROL, _USER_DEFINED)
        backend.add_tokens(
            [
                AddedToken(token, normalized=False, special=kind != _USER_DEFINED)
                for token, kind in zip(self.tokens, types, strict=True)
                if kind in marked or token in END_TOKENS
            ]
        )

    def _add_edges(self, backend: "tokenizers.Tokenizer", *, adds_bos: bool) -> None:
        from tokenizers import processors

        edges = {
            "bos": self._metadata.get(f"{_KEY}add_bos_token", adds_bos),
            "eos": self._metadata.get(f"{_KEY}add_eos_token", False),
        }
        used = {name: self._special_id(name) for name, wanted in edges.items() if wanted}
        missing = [name for name, token_id in used.items() if token_id is None]
        if missing:
            raise CheckpointError(
                f"{self._where} asks for a {missing[0]} token around each text and names none "
                f"({_KEY}{missing[0]}_token_id is missing)."
            )
        if used:
            edged = [name for name in ("bos", "$A", "eos") if name == "$A" or name in used]
            backend.post_processor = processors.TemplateProcessing(
                single=" ".join(edged), special_tokens=list(used.items())
            )

    def _special_id(self, name: str) -> int | None:
        token_id = self._metadata.get(f"{_KEY}{name}_token_id")
        if token_id is None:
            return None
        if not isinstance(token_id, int) or not 0 <= token_id < len(self.tokens):
            raise CheckpointError(
                f"{_KEY}{name}_token_id in {self._where} is {token_id!r}; the vocabulary has {len(self.tokens)} tokens."
            )
        return token_id

    def _token_types(self) -> list[int]:
        types = self._metadata.get(f"{_KEY}token_type")
        if types is None:
            return [1] * len(self.tokens)
        if len(types) != len(self.tokens):
            raise CheckpointError(
                f"{_KEY}token_type in {self._where} has {len(types)} entries for {len(self.tokens)} tokens."
            )
        return list(types)

    def _merges(self) -> list[tuple[str, str]]:
        merges = []
        for line in self._strings("merges"):
            left, space, right = line.partition(" ")
            if not (left and space and right):
                raise CheckpointError(
                    f"{_KEY}merges in {self._where} holds {line!r}; expected two pieces with a space between."
                )
            merges.append((left, right))
        return merges

    def _strings(self, name: str) -> list[str]:
        values = self._metadata.get(f"{_KEY}{name}")
        if not isinstance(values, list) or not values or not isinstance(values[0], str):
            raise CheckpointError(
                f"{_KEY}{name} in {self._where} is missing or no list of strings. "
                "Download the file again, or give the model's Hugging Face folder."
            )
        return values
