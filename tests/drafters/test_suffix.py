"""The index of earlier places against a search through the whole text."""

from hypothesis import given
from hypothesis import strategies as st

from outrider.drafters.suffix import MAX_MATCH, MAX_PLACES, SuffixIndex

TEXTS = st.lists(st.integers(0, 2), min_size=1, max_size=70)


def search(text: list[int]) -> list[tuple[int, int]]:
    """Place and length of every earlier place whose past equals the end, by comparing slices."""
    found = []
    for place in range(1, len(text)):
        length = 0
        while length < MAX_MATCH and text[place - length - 1 : place] == text[len(text) - length - 1 :]:
            length += 1
            if length == place:
                break
        if length:
            found.append((place, length))
    latest = sorted(found)[-MAX_PLACES:]
    return sorted(latest, key=lambda match: (-match[1], -match[0]))


@given(TEXTS, st.integers(0, 70))
def test_matches_are_those_of_a_search_however_the_text_came(text, prompt):
    index = SuffixIndex(tuple(text[:prompt]))
    for token in text[prompt:]:
        index.append(token)
    assert [(match.place, match.length) for match in index.matches()] == search(text)


def test_a_word_that_is_new_has_no_match():
    assert SuffixIndex((1, 2, 3)).matches() == []


def test_agreement_is_counted_up_to_a_limit_and_old_places_are_forgotten():
    matches = SuffixIndex((5,) * 200).matches()
    assert len(matches) == MAX_PLACES
    assert matches[0].place == 199
    assert {match.length for match in matches} == {MAX_MATCH}
