"""What is trained on and what is held out."""

import pytest
from train.rows import MemorySamples

from outrider.errors import UsageError
from outrider.train.documents import split


def samples_of(prompts: int, *, answers: int = 2, length: int = 12) -> MemorySamples:
    """Some answers to each prompt of four tokens."""
    texts = [
        [prompt, 1, 2, 3, *range(answer, answer + length - 4)] for prompt in range(prompts) for answer in range(answers)
    ]
    return MemorySamples(texts, [4] * len(texts))


def prompts_of(documents) -> set[tuple[int, ...]]:
    return {documents.prompt(index) for index in range(len(documents))}


def test_all_answers_to_a_prompt_are_on_the_same_side():
    found = split(samples_of(100), share=0.2, row_length=64, where="data")
    assert not prompts_of(found.train) & prompts_of(found.held_out)
    assert len(prompts_of(found.train) | prompts_of(found.held_out)) == 100
    assert 5 < len(prompts_of(found.held_out)) < 40
    assert len(found.train) + len(found.held_out) == 200


def test_a_prompt_stays_held_out_in_other_data():
    small = split(samples_of(500), share=0.1, row_length=64, where="data")
    large = split(samples_of(900, answers=1, length=20), share=0.1, row_length=64, where="data")
    assert prompts_of(small.held_out) <= prompts_of(large.held_out)


def test_some_prompts_are_held_out_however_small_the_share():
    found = split(samples_of(40), share=0.0, row_length=64, where="data")
    assert len(prompts_of(found.held_out)) == 8
    assert len(prompts_of(split(samples_of(3), share=0.0, row_length=64, where="data").held_out)) == 1


def test_long_samples_lose_their_end_and_those_without_a_response_are_left_out():
    texts = [[1] * 30, [2] * 10, [3] * 40, [4] * 20, [5] * 8]
    found = split(MemorySamples(texts, [5, 5, 32, 20, 3]), share=0.0, row_length=16, where="data")
    both = [*range(len(found.train))], [*range(len(found.held_out))]
    kept = [found.train.tokens(i).tolist() for i in both[0]] + [found.held_out.tokens(i).tolist() for i in both[1]]
    assert sorted(map(tuple, kept)) == [(1,) * 16, (2,) * 10, (5,) * 8]
    assert (found.cut_tokens, found.unused) == (14, 2)


def test_a_response_that_starts_the_text_counts_from_its_second_token():
    found = split(MemorySamples([[1, 2], [3], [4, 5, 6]], [0, 0, 1]), share=0.0, row_length=16, where="data")
    assert (len(found.train) + len(found.held_out), found.unused) == (2, 1)


@pytest.mark.parametrize(
    ("texts", "responses"),
    [([], []), ([[1, 2, 3]] * 4, [3] * 4), ([[1] * 40], [30])],
    ids=["none", "no answers", "late"],
)
def test_data_without_a_response_is_refused(texts, responses):
    with pytest.raises(UsageError, match=r"^data holds \d+ samples and none has a response"):
        split(MemorySamples(texts, responses), share=0.1, row_length=16, where="data")


def test_data_of_one_prompt_is_refused():
    with pytest.raises(UsageError, match="one prompt"):
        split(samples_of(1), share=0.1, row_length=16, where="data")


def test_other_data_has_another_fingerprint():
    one, other = (split(samples_of(n), share=0.1, row_length=64, where="data").train for n in (100, 101))
    assert one.fingerprint() != other.fingerprint()
    assert one.fingerprint() == split(samples_of(100), share=0.1, row_length=64, where="data").train.fingerprint()
