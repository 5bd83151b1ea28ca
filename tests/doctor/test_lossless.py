"""Against real servers on loopback: honest ones, and ones that corrupt in one condition."""

from contextlib import ExitStack
from itertools import count

import pytest
from doctor.lossless_stub import serving

from outrider.doctor.lossless import check
from outrider.doctor.lossless.compare import Asked, compare, near_tie
from outrider.doctor.lossless.server import Answer
from outrider.errors import UsageError


@pytest.fixture
def serve():
    with ExitStack() as stack:
        yield lambda *faults: stack.enter_context(serving(*faults))


@pytest.fixture(autouse=True)
def marks(monkeypatch):
    """The same prompts in every run of a test."""
    numbers = count()
    monkeypatch.setattr("outrider.doctor.lossless.run.token_hex", lambda _size: f"mark{next(numbers)}")


@pytest.fixture
def no_laws(monkeypatch):
    """Spare the many requests of the law tests."""
    monkeypatch.setattr("outrider.doctor.lossless.law.SAMPLES", 0)


def differing(found):
    return {one.name for one in found.conditions if one.differ}


def test_an_honest_server_is_lossless_against_a_reference(serve):
    found = check(serve(), reference=serve())
    assert found.outcome == "lossless"
    assert [one.name for one in found.conditions] == [
        "the reference with itself", "cold", "again", "after one that begins alike", "8 at once",
    ]  # fmt: skip
    assert all(one.equal == one.asked > 0 for one in found.conditions)
    assert {law.position for law in found.laws} == {1, 2}
    assert all(law.chance > 1e-3 for law in found.laws)


def test_log_probabilities_as_objects_are_read_too(serve):
    found = check(serve("objects"), reference=serve())
    assert found.outcome == "lossless"
    assert found.laws


def test_an_honest_server_alone_is_not_decidable(serve, no_laws):
    found = check(serve())
    assert (found.outcome, found.against) == ("not_decidable", "itself")
    assert any("--reference" in note for note in found.notes)


def test_flips_at_near_ties_are_near_ties_only(serve, no_laws):
    found = check(serve("ties"), reference=serve())
    assert found.outcome == "near_ties_only"
    assert all(place.margin < 1e-4 for place in found.places)


def test_corruption_on_cache_hits_is_found_without_a_reference(serve, no_laws):
    found = check(serve("cache"))
    assert found.outcome == "differs"
    assert "again" in differing(found)
    assert "again" in found.summary


def test_corruption_on_cache_hits_leaves_cold_prompts_alone(serve, no_laws):
    found = check(serve("cache"), reference=serve())
    assert differing(found) == {"again", "after one that begins alike", "8 at once"}


def test_corruption_under_concurrency_is_found_there_alone(serve, no_laws):
    found = check(serve("concurrency"), reference=serve())
    assert found.outcome == "differs"
    assert differing(found) == {"8 at once"}


def test_a_text_that_is_always_wrong_needs_a_reference_to_be_found(serve, no_laws):
    url = serve("always")
    assert check(url).outcome == "not_decidable"
    assert "cold" in differing(check(url, reference=serve()))


def test_a_restless_reference_decides_nothing(serve, no_laws):
    found = check(serve(), reference=serve("restless"))
    assert found.outcome == "not_decidable"
    assert "reference's own text" in found.summary


def test_without_log_probabilities_equal_texts_still_count(serve, no_laws):
    assert check(serve("silent"), reference=serve("silent")).outcome == "lossless"


def test_without_log_probabilities_a_difference_is_not_decidable(serve, no_laws):
    found = check(serve("silent", "ties"), reference=serve("silent"))
    assert found.outcome == "not_decidable"
    assert not found.laws


def test_drawn_words_off_the_stated_law_are_found(serve):
    found = check(serve("law"), reference=serve())
    assert found.outcome == "differs"
    assert "word 2" in found.summary


def test_first_words_off_the_stated_law_are_the_servers_settings_and_no_drafts_fault(serve):
    found = check(serve("cut"), reference=serve())
    assert found.outcome == "lossless"
    assert any("no draft decides" in note for note in found.notes)


def test_log_probabilities_that_drift_under_equal_words_are_found(serve, no_laws):
    found = check(serve("drift"), reference=serve())
    assert found.outcome == "differs"
    assert "drift" in found.summary


def test_a_server_of_short_contexts_gets_shorter_prompts_and_a_note(serve, no_laws):
    found = check(serve("small"), reference=serve())
    assert found.outcome == "lossless"
    assert any("short prompts" in note for note in found.notes)


def test_a_server_that_hangs_is_told(serve):
    with pytest.raises(UsageError, match=r"no answer within 0\.2 s"):
        check(serve("hang"), seconds=0.2)


@pytest.mark.parametrize(("fault", "said"), [("refuse", "answers 400"), ("odd", "expected a completion")])
def test_a_server_that_answers_something_else_is_told(serve, fault, said):
    with pytest.raises(UsageError, match=said):
        check(serve(fault))


def test_a_server_that_is_not_there_is_told():
    with pytest.raises(UsageError, match="Cannot reach"):
        check("http://127.0.0.1:9")


@pytest.mark.parametrize("url", ["file:///etc/passwd", "localhost:8000", "http://"])
def test_what_is_no_address_is_told(url):
    with pytest.raises(UsageError, match="address of a server"):
        check(url)


def words(*pairs):
    tokens = tuple(word for word, _ in pairs)
    return Answer(
        "".join(tokens), tokens, tuple(value for _, value in pairs), tuple({"a": -0.7, "b": -1.0} for _ in pairs)
    )


SAME, MOVED = [("a", -0.7)] * 30, [("a", -0.9)] * 30
LAST, OTHER = ("a", -0.7), ("b", -1.0)


def judged(asked, control=()):
    return compare("x", asked, near_tie([*asked, *control], control))


def test_a_margin_within_the_drift_of_agreed_words_is_a_tie():
    condition, places = judged([Asked(1, words(*SAME, LAST), words(*MOVED, OTHER))])
    assert places[0].tie
    assert (condition.near_ties, condition.drift) == (1, pytest.approx(0.2))


def test_the_same_margin_without_drift_is_none():
    condition, places = judged([Asked(1, words(*SAME, LAST), words(*SAME, OTHER))])
    assert not places[0].tie
    assert (places[0].position, condition.differ) == (30, 1)


def test_a_margin_at_which_the_reference_parts_from_itself_is_rounding():
    asked = [Asked(1, words(*SAME, LAST), words(*SAME, OTHER))]
    assert judged(asked, control=asked)[1][0].tie


def test_no_control_makes_a_wide_margin_a_tie():
    wide = Answer("aa", ("a",), (-0.1,), ({"a": -0.1, "b": -3.0},))
    asked = [Asked(1, wide, Answer("b", ("b",), (-3.0,), ({"a": -0.1, "b": -3.0},)))]
    assert not judged(asked, control=asked)[1][0].tie


def test_a_text_that_ends_sooner_differs():
    _, places = judged([Asked(1, words(LAST, LAST), words(LAST))])
    assert not places[0].tie
    assert places[0].expected == "a"
