"""Sampling settings: ranges, kinds, contradictions."""

import pytest

from outrider.engine.params import SamplingParams
from outrider.errors import UsageError


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"temperature": -1}, "temperature=-1"),
        ({"temperature": "0.7"}, "temperature='0.7'"),
        ({"temperature": 1e-300}, "0 .greedy. or 1e-4 and more"),
        ({"temperature": float("nan")}, "temperature=nan"),
        ({"temperature": 1, "top_p": 0}, "top_p=0: expected a number above 0"),
        ({"temperature": 1, "top_k": 2.5}, "top_k=2.5: expected a whole number"),
        ({"temperature": 1, "min_p": 1}, "min_p=1"),
        ({"max_tokens": 0}, "max_tokens=0"),
        ({"max_tokens": 2.5}, "max_tokens=2.5"),
        ({"max_tokens": True}, "max_tokens=True"),
        ({"repetition_penalty": 1e-40}, "repetition_penalty=1e-40"),
        ({"presence_penalty": 3}, "presence_penalty=3"),
        ({"logit_bias": {5: 1e39}}, "logit_bias"),
        ({"logit_bias": {"5": 1.0}}, "logit_bias"),
        ({"seed": -1}, "seed=-1"),
        ({"stop": "END"}, "a tuple of strings"),
        ({"stop": ("",)}, "not empty"),
        ({"stop_token_ids": [3]}, "a tuple of token ids"),
        ({"logprobs": 21}, "logprobs=21"),
        ({"top_p": 0.9}, "temperature 0 is greedy, so top_p would have no effect"),
        ({"top_k": 5, "min_p": 0.1}, "top_k and min_p would have no effect"),
    ],
)
def test_a_setting_out_of_range_or_without_effect_is_refused(settings, words):
    with pytest.raises(UsageError, match=words):
        SamplingParams(**settings)
