"""Results as Markdown: exact cells, idempotent pages."""

import pytest

from outrider.bench.protocol import Ready
from outrider.bench.render import render, write_between
from outrider.bench.summary import Measured, first_difference, summarise
from outrider.errors import UsageError
from outrider.provenance import provenance
from outrider.results import BenchResult, Sample

CATEGORIES = ["qa", "rag"]


def measured(seconds, tokens=8):
    samples = [
        Sample(
            prompt=p,
            repeat=0,
            tokens=tokens,
            seconds=seconds,
            prefill_seconds=0.5,
            step_seconds=None,
            rounds=0,
            accepted=0,
        )
        for p in range(2)
    ]
    return Measured(samples, {0: [1, 2], 1: [1, 2]})


def result(**changes):
    ready = Ready(ready={"engine": "x"}, load_seconds=1.25, rss_before_load=0)
    base = measured(2.0)
    arms = [
        summarise("base", ready, base, base, CATEGORIES, peak=2**20),
        summarise("ours", ready, measured(1.0), base, CATEGORIES, peak=None),
    ]
    fields = {
        "name": "smoke",
        "max_tokens": 8,
        "warmup": 1,
        "repeats": 1,
        "categories": CATEGORIES,
        "prompt_tokens": [5, 9],
        "arms": arms,
        "skipped": {"peer": "xllamacpp is not installed"},
        "provenance": provenance(threads=2),
    }
    return BenchResult(**fields | changes)


def test_rows_hold_speeds_and_ratios():
    lines = render(result()).splitlines()
    assert "| base | 4.0 | 1.00 | 4.7 | 1.00 | - | 500 | - | 1.2 | 1 | 2/2 |" in lines
    assert "| ours | 8.0 | 2.00 | 14.0 | 3.00 | - | 500 | - | 1.2 | - | 2/2 |" in lines


def test_categories_skipped_arms_and_provenance_are_told():
    text = render(result())
    assert "| ours | 2.00 | 2.00 |" in text
    assert "Not run: peer (xllamacpp is not installed)." in text
    assert "2 prompts of 5-9 tokens, 8 new, 1 repeats after 1 warm-up" in text
    assert "2 threads" in text


def test_an_interval_is_shown_where_there_is_one():
    base, ours = measured(2.0), measured(1.0)
    ours.samples[0] = ours.samples[0].model_copy(update={"seconds": 2.0})
    ready = Ready(ready={}, load_seconds=0, rss_before_load=None)
    arm = summarise("ours", ready, ours, base, CATEGORIES, peak=None)
    assert "| ours | 5.3 | 1.33 (1.00-2.00) |" in render(result(arms=[arm]))


def test_one_token_has_no_decode_speed():
    ready = Ready(ready={}, load_seconds=0, rss_before_load=None)
    single = measured(0.5, tokens=1)
    found = summarise("x", ready, single, single, CATEGORIES, peak=None)
    assert (found.decode_tokens_per_second, found.decode_ratios) == (None, {})


def test_the_first_difference_is_a_position():
    assert first_difference([1, 2, 3], [1, 2, 3]) is None
    assert first_difference([1, 9, 3], [1, 2, 3]) == 1
    assert first_difference([1, 2], [1, 2, 3]) == 2


def test_writing_twice_changes_nothing(tmp_path):
    page = tmp_path / "docs" / "page.md"
    write_between(page, "a", "one")
    once = page.read_text()
    write_between(page, "a", "one")
    assert page.read_text() == once == "<!-- bench:a:start -->\none\n<!-- bench:a:end -->\n"


def test_only_the_text_between_the_markers_changes(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("top\n<!-- bench:a:start -->\nold\n<!-- bench:a:end -->\nbottom\n")
    write_between(page, "a", "new")
    write_between(page, "b", "other")
    assert page.read_text() == (
        "top\n<!-- bench:a:start -->\nnew\n<!-- bench:a:end -->\nbottom\n"
        "\n<!-- bench:b:start -->\nother\n<!-- bench:b:end -->\n"
    )


@pytest.mark.parametrize(
    "page",
    [
        "<!-- bench:a:start -->",
        "<!-- bench:a:end -->",
        "<!-- bench:a:end -->\n<!-- bench:a:start -->",
    ],
    ids=["no end", "no start", "wrong order"],
)
def test_a_page_with_broken_markers_is_left_alone(tmp_path, page):
    path = tmp_path / "page.md"
    path.write_text(page)
    with pytest.raises(UsageError, match="followed by"):
        write_between(path, "a", "new")
    assert path.read_text() == page
