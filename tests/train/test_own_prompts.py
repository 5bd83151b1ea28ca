"""Prompts that the target writes itself."""

import gzip

import pytest
from tiny_model import write_tiny_model

from outrider.errors import UsageError
from outrider.runner import load
from outrider.train import own_prompts as own
from outrider.train.encoding import Encoder
from outrider.train.own_prompts import Wanted, own_prompts


@pytest.fixture(autouse=True)
def short_turns(monkeypatch):
    monkeypatch.setattr(own, "MAX_TOKENS", 80)
    monkeypatch.setattr(own, "TRIES", 20)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of random weights that ends its turns now and then."""
    return load(str(write_tiny_model(tmp_path_factory.mktemp("models") / "tiny", seed=2)), max_len=64)


def asked(folder, model, *, count=4, seed=0, batch=4, told=lambda: None):
    return own_prompts(
        folder, model.target, Encoder(model.tokenizer), Wanted(count=count, seed=seed, batch=batch), told
    )


def texts(rows):
    return [row.messages[0]["content"] for row in rows.rows]


def test_each_is_a_user_turn_that_came_to_its_end(tmp_path, model):
    told = []
    rows = asked(tmp_path, model, told=lambda: told.append(1))
    assert (rows.name, {row.source for row in rows.rows}) == ("self", {"self"})
    assert len(set(texts(rows))) == len(rows.rows) == len(told) == 4
    assert all(text == text.strip() != "" for text in texts(rows))


def test_the_same_seed_writes_the_same_prompts_however_many_at_once(tmp_path, model):
    assert texts(asked(tmp_path / "a", model, batch=2)) == texts(asked(tmp_path / "b", model, batch=5))
    assert texts(asked(tmp_path / "c", model, seed=1)) != texts(asked(tmp_path / "a", model))


def test_they_are_kept_for_a_run_that_goes_on(tmp_path, model, monkeypatch):
    first = texts(asked(tmp_path, model))
    assert gzip.decompress((tmp_path / "own_prompts-4-0.jsonl.gz").read_bytes()).count(b"\n") == 4
    monkeypatch.delattr(own, "Writer")
    assert texts(asked(tmp_path, model)) == first


def test_a_model_that_never_ends_its_turn_is_one_line(tmp_path, model, monkeypatch):
    monkeypatch.setattr(own, "MAX_TOKENS", 1)
    with pytest.raises(UsageError, match="wrote no prompt that ends"):
        asked(tmp_path, model, count=2)
