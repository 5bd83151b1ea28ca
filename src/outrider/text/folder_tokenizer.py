"""Reads the tokenizer of a Hugging Face folder.

``tokenizer.json`` rules, its post-processor included (it says whether a begin token is added);
``tokenizer_config.json`` adds tokens, names the special ones and may hold the chat template.
It reads no sentencepiece files and runs no code of the folder.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outrider.errors import CheckpointError
from outrider.text.tokenizer import CheckpointLike, Tokenizer, configured_stop_ids

if TYPE_CHECKING:
    import tokenizers


def load_folder_tokenizer(checkpoint: CheckpointLike) -> Tokenizer:
    """Read ``tokenizer.json`` and what stands beside it."""
    folder = checkpoint.source.path
    backend = _read_backend(folder / "tokenizer.json")
    settings = {
        **_read_object(folder / "special_tokens_map.json"),
        **_read_object(folder / "tokenizer_config.json"),
    }
    _add_missing_tokens(backend, settings.get("added_tokens_decoder"), folder)
    eos_token = _token_name(settings.get("eos_token"))
    stop_ids = configured_stop_ids(checkpoint)
    eos_id = None if eos_token is None else backend.token_to_id(eos_token)
    if eos_id is not None:
        stop_ids.add(eos_id)
    return Tokenizer(
        backend,
        stop_ids=stop_ids,
        bos_token=_token_name(settings.get("bos_token")),
        eos_token=eos_token,
        chat_template=_chat_template(folder, settings),
    )


def _read_backend(path: Path) -> "tokenizers.Tokenizer":
    from tokenizers import Tokenizer as Backend

    text = _read_text(path)
    if text is None:
        raise CheckpointError(
            f"{path.parent} has no tokenizer.json. Only that file is read; slow tokenizers "
            "(sentencepiece tokenizer.model, vocab.json with merges.txt) are not. Save the model's "
            "fast tokenizer into the folder."
        )
    try:
        backend = Backend.from_str(text)
    except Exception as error:  # noqa: BLE001 - the library raises bare Exception
        raise CheckpointError(
            f"{path} is not a tokenizer: {' '.join(str(error).split())}. Download the file again."
        ) from None
    # A file saved during training may still cut or fill texts; neither belongs to the tokenizer.
    backend.no_truncation()
    backend.no_padding()
    return backend


def _add_missing_tokens(backend: "tokenizers.Tokenizer", entries: Any, folder: Path) -> None:
    from tokenizers import AddedToken

    if entries is None:
        return
    where = f"added_tokens_decoder in {folder / 'tokenizer_config.json'}"
    known = backend.get_added_tokens_decoder()
    try:
        tokens = {int(token_id): AddedToken(**fields) for token_id, fields in entries.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise CheckpointError(f"{where} does not describe tokens: {' '.join(str(error).split())}.") from None
    for token_id, token in sorted(tokens.items()):
        # A token known with other flags is added again: the config has the last word.
        if repr(known.get(token_id)) != repr(token):
            backend.add_tokens([token])
        if backend.token_to_id(token.content) != token_id:
            raise CheckpointError(
                f"{where} gives {token.content!r} the id {token_id}, tokenizer.json gives "
                f"{backend.token_to_id(token.content)}. The two files are of different models."
            )


def _chat_template(folder: Path, settings: Mapping[str, Any]) -> str | None:
    """Return the template by Hugging Face's order: own file, old JSON file, config key."""
    own = _read_text(folder / "chat_template.jinja")
    if own is not None:
        return own
    value = _read_object(folder / "chat_template.json").get("chat_template", settings.get("chat_template"))
    if isinstance(value, list):
        value = _named_templates(value, folder).get("default")
    if value is not None and not isinstance(value, str):
        raise CheckpointError(
            f"The chat_template of {folder} is {type(value).__name__}; expected text or a list of named templates."
        )
    return value


def _named_templates(entries: list[Any], folder: Path) -> dict[str, Any]:
    try:
        return {entry["name"]: entry["template"] for entry in entries}
    except (KeyError, TypeError):
        raise CheckpointError(
            f"The chat_template list of {folder} holds an entry without 'name' and 'template'."
        ) from None


def _token_name(value: Any) -> str | None:
    """Return a special token's text; old files write the token with its flags."""
    if isinstance(value, Mapping):
        value = value.get("content")
    return value if isinstance(value, str) else None


def _read_text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path} is not UTF-8 text (byte {error.start}). Download the file again.") from None
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}.") from None


def _read_object(path: Path) -> dict[str, Any]:
    text = _read_text(path)
    if text is None:
        return {}
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise CheckpointError(
            f"{path} is not valid JSON: {error.msg} at line {error.lineno}. Download the file again."
        ) from None
    if not isinstance(value, dict):
        raise CheckpointError(f"{path} holds {type(value).__name__}; expected a JSON object.")
    return value
