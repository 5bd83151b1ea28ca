"""The real model, briefly: drafts change no text. The long comparison is a benchmark."""

import pytest

pytestmark = pytest.mark.model

PROMPT = "List the numbers from one to twenty as words, one a line.\nOne\nTwo\nThree\n"


@pytest.mark.parametrize("settings", [{}, {"temperature": 0.7, "seed": 5}], ids=["greedy", "sampled"])
def test_look_up_drafts_leave_the_text_of_a_real_model_as_it_is(real_model, settings):
    plain = real_model.generate(PROMPT, max_tokens=24, **settings)
    drafted = real_model.with_drafter("ngram").generate(PROMPT, max_tokens=24, **settings)
    assert drafted.tokens == plain.tokens
    assert drafted.text == plain.text
    assert sum(r.drafted for r in drafted.rounds) > 0
