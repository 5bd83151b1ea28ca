"""``docs/formats.md`` names every key that the readers know, and every tensor that they refuse."""

from pathlib import Path

import outrider
from outrider.models.dflash.formats import aliases, gguf, speculators, zlab

PAGE = (Path(outrider.__file__).parents[2] / "docs" / "formats.md").read_text()
# Told in the table under the name of their group.
GROUPED = {"rope.scaling.": "`rope.scaling.*`", "dflash_config": "`dflash_config`"}


def unnamed(keys) -> list[str]:
    named = {key: next((name for start, name in GROUPED.items() if key.startswith(start)), f"`{key}`") for key in keys}
    return [key for key, name in named.items() if name not in PAGE]


def test_every_key_of_z_lab_is_named():
    assert unnamed(zlab.UNDERSTOOD) == []


def test_every_key_that_means_nothing_is_named():
    assert unnamed(zlab.MEANINGLESS) == []


def test_every_key_of_speculators_is_named():
    assert unnamed(speculators.OWN | speculators.LAYER) == []


def test_every_key_of_gguf_is_named():
    own = [key for key in gguf.UNDERSTOOD if key != "mask_token_id"]
    assert unnamed([*own, "tokenizer.ggml.mask_token_id"]) == []


def test_every_tensor_that_is_passed_over_or_refused_is_named():
    assert unnamed(name.rstrip(".") for name in (*aliases.IGNORED, *aliases.FOREIGN)) == []
