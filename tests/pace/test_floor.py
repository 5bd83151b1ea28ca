"""Bytes of a round at the published shapes of Qwen3.6-27B, counted by hand."""

import pytest
from pace.shapes_file import DRAFTER, write

from outrider.errors import OutriderError, UsageError
from outrider.pace.floor import moved
from outrider.pace.methods import Method, parse
from outrider.pace.shapes import known_shapes, read_shapes

HEAD = 248320 * 5120 * 2
LAYER = 319_826_176 * 2  # of the drafter


@pytest.fixture(scope="module")
def shapes():
    return read_shapes("qwen3.6-27b")


def test_the_named_shapes_are_the_published_ones(shapes):
    assert "qwen3.6-27b" in known_shapes()
    assert shapes.target.num_parameters == 26_895_998_464
    assert sum(size(s) for s in shapes.target.mtp_tensor_shapes().values()) == 424_699_392
    assert sum(size(s) for s in shapes.drafter.tensor_shapes().values()) == 1_730_213_120


def size(shape):
    count = 1
    for number in shape:
        count *= number
    return count


def of(shapes, text, *, context=0, batch=1, narrow=False):
    return moved(shapes, parse(text), context=context, batch=batch, narrow=narrow)


def test_plain_rounds_read_all_but_the_table(shapes):
    found = of(shapes, "plain", context=1000, batch=2)
    assert found.weights == pytest.approx(2 * 26_895_998_464 - HEAD)
    assert found.drafting == 0
    assert found.context == 2 * 1000 * 65536
    assert found.states == 3 * 2 * 48 * 48 * 128 * 128 * 4


def test_heads_read_themselves_and_the_head_for_each_guess(shapes):
    found = of(shapes, "mtp:3", context=100)
    assert found.drafting == pytest.approx(3 * (2 * 424_699_392 + HEAD))
    assert found.context == 100 * (65536 + 3 * 4096)


@pytest.mark.parametrize("method", ["dflash:15", "ddtree:63"])
def test_a_draft_network_reads_itself_and_the_head_once(shapes, method):
    found = of(shapes, method, context=5000)
    assert found.drafting == pytest.approx(2 * 1_730_213_120 + HEAD)
    assert found.context == 5000 * 65536 + (4 * 2048 + 5000) * 4096


def test_float8_halves_matrices_but_not_the_head(shapes):
    wide, narrow = of(shapes, "plain"), of(shapes, "plain", narrow=True)
    assert 0.49 < (narrow.weights - HEAD) / (wide.weights - HEAD) < 0.505


def test_methods_by_name():
    assert parse("ddtree") == Method("ddtree", 63)
    assert (str(parse("mtp:2")), parse("mtp:2").nodes, str(parse("plain"))) == ("mtp:2", 3, "plain")
    for wrong in ("plain:2", "mtp:0", "mtp:x", "eagle", ""):
        with pytest.raises(UsageError, match="expected plain"):
            parse(wrong)


def test_files_that_are_no_shapes(tmp_path):
    with pytest.raises(UsageError, match="expected one of"):
        read_shapes("no-such-model")
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    with pytest.raises(UsageError, match="no JSON"):
        read_shapes(str(tmp_path / "broken.json"))
    (tmp_path / "list.json").write_text("[]", encoding="utf-8")
    with pytest.raises(UsageError, match="key target"):
        read_shapes(str(tmp_path / "list.json"))
    with pytest.raises(OutriderError, match="drafter"):
        read_shapes(write(tmp_path, drafter=DRAFTER | {"vocab_size": 7}))
    assert read_shapes(write(tmp_path, drafter=None)).drafter is None
