"""One visible table per kind: name -> ``"module:Class"``, resolved at first use.

A new family or drafter is one file and one line here; the contract tests pick it up from the table.
"""

from importlib import import_module
from typing import Any

from outrider.errors import UnknownNameError

FAMILIES = {
    "llama": "outrider.models.families.llama:Llama",
    "qwen2": "outrider.models.families.qwen2:Qwen2",
    "qwen3": "outrider.models.families.qwen3:Qwen3",
    "qwen3_5": "outrider.models.families.qwen3_5:Qwen35",
}
# What a config.json of text alone calls the same family.
FAMILY_ALIASES = {"qwen3_5_text": "qwen3_5"}

DRAFTERS = {
    "none": "outrider.drafters.none:NoDrafter",
    "ngram": "outrider.drafters.ngram:NgramDrafter",
    "mtp": "outrider.drafters.mtp:MTPDrafter",
    "dflash": "outrider.drafters.dflash:DFlashDrafter",
    "ddtree": "outrider.drafters.ddtree:DDTreeDrafter",
}


def resolve(kind: str, table: dict[str, str], name: str) -> Any:
    """Return the class that ``table`` holds under ``name``.

    Raises:
        UnknownNameError: with the nearest known name.
    """
    if name not in table:
        raise UnknownNameError(kind, name, table)
    module, _, attribute = table[name].partition(":")
    return getattr(import_module(module), attribute)
