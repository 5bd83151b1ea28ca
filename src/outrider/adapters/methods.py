"""Methods as engines call them, under the names of the evidence file."""

import re
from typing import Literal, get_args

Method = Literal[
    "dflash", "dflash2", "dspark", "ddtree", "mtp", "eagle", "eagle3", "draft_model", "ngram", "other"
]  # fmt: skip
METHODS: tuple[Method, ...] = get_args(Method)

_PATTERNS = (
    (r"ddtree", "ddtree"),
    (r"dspark", "dspark"),
    (r"dflash[-_]?2", "dflash2"),
    (r"dflash", "dflash"),
    (r"mtp|nextn", "mtp"),
    (r"eagle[-_]?3", "eagle3"),
    (r"eagle", "eagle"),
    (r"n-?gram|suffix|prompt[-_ ]?lookup", "ngram"),
    (r"draft[-_]?(model|simple)|standalone", "draft_model"),
)


def method_of(*said: object) -> str | None:
    """Return the method that the first of these texts names."""
    for text in said:
        if not isinstance(text, str):
            continue
        found = next((name for pattern, name in _PATTERNS if re.search(pattern, text, re.IGNORECASE)), None)
        if found is not None:
            return found
    return None
