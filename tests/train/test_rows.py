"""Rows of prompts in their several forms; what is broken is counted and named."""

import gzip
import json
import sys
from types import ModuleType

import pytest

from outrider.errors import UsageError
from outrider.train.rows import read_file, read_hub


def user(text):
    return {"role": "user", "content": text}


def write_rows(path, *rows):
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("row", "messages"),
    [
        ({"prompt": "Hi"}, (user("Hi"),)),
        ({"turns": ["Hi", "And now?"]}, (user("Hi"),)),
        ({"messages": [user("Hi"), {"role": "assistant", "content": "Ho"}, user("Hu")]}, (user("Hi"),)),
        (
            {"messages": [{"role": "system", "content": "Be brief."}, user("Hi")]},
            ({"role": "system", "content": "Be brief."}, user("Hi")),
        ),
    ],
)
def test_a_row_holds_a_prompt_turns_or_messages(tmp_path, row, messages):
    (found,) = read_file(write_rows(tmp_path / "p.jsonl", row)).rows
    assert found.messages == messages
    assert found.source == "p.jsonl"


def test_a_row_may_name_its_source(tmp_path):
    rows = read_file(
        write_rows(tmp_path / "p.jsonl", {"prompt": "a", "source": "maths"}, {"prompt": "b", "category": "code"})
    ).rows
    assert [row.source for row in rows] == ["maths", "code"]


def test_a_key_source_that_names_rows_is_no_kind(tmp_path):
    rows = read_file(write_rows(tmp_path / "p.jsonl", *({"prompt": "a", "source": f"url{n}"} for n in range(40)))).rows
    assert {row.source for row in rows} == {"p.jsonl"}


def test_a_gzipped_file_is_read_whatever_its_name(tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_bytes(gzip.compress(b'{"prompt": "a"}\n\n{"prompt": "b"}\n'))
    assert [row.messages for row in read_file(path).rows] == [(user("a"),), (user("b"),)]


def test_a_limit_reads_no_further(tmp_path):
    path = write_rows(tmp_path / "p.jsonl", {"prompt": "a"}, {"prompt": "b"}, "broken")
    found = read_file(path, limit=2)
    assert (len(found.rows), found.broken) == (2, 0)


BROKEN = [
    "{",
    "[1]",
    '{"prompt": 3}',
    '{"prompt": " "}',
    '{"turns": []}',
    '{"text": "a"}',
    '{"messages": []}',
    '{"messages": [{"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}]}',
    '{"messages": [{"role": "user", "content": ["parts"]}]}',
    '{"messages": ["a"]}',
    "[" * 100_000,
]


@pytest.mark.parametrize("line", BROKEN)
def test_a_broken_row_is_counted_and_the_first_is_named(tmp_path, line):
    found = read_file(write_rows(tmp_path / "p.jsonl", {"prompt": "a"}, line, line))
    assert (len(found.rows), found.broken) == (1, 2)
    assert found.first_broken.startswith("line 2: ")
    assert "\n" not in found.first_broken


def test_bytes_that_are_no_text_are_a_broken_row(tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_bytes(b'{"prompt": "\xff\xfe"}\n{"prompt": "a"}\n')
    assert read_file(path).broken == 1


def test_a_file_of_broken_rows_alone_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"None of the 2 rows of p.jsonl can be used; the first: line 1: .*keys text"):
        read_file(write_rows(tmp_path / "p.jsonl", {"text": "a"}, {"text": "b"}))


def test_an_empty_a_missing_and_a_cut_file_are_one_line_each(tmp_path):
    with pytest.raises(UsageError, match="holds no prompts"):
        read_file(write_rows(tmp_path / "empty.jsonl"))
    with pytest.raises(UsageError, match=r"Cannot read the file .*gone.*No such file"):
        read_file(tmp_path / "gone.jsonl")
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"prompt": "a"}\n' * 1000)[:40])
    with pytest.raises(UsageError, match="Cannot read the file"):
        read_file(path)


class Hub:
    """Stands for ``datasets.load_dataset``."""

    def __init__(self, *rows):
        self.rows, self.asked = rows, []

    def __call__(self, name, **options):
        self.asked.append((name, options))
        return iter(self.rows)


def test_a_column_of_a_data_set_holds_texts_turns_or_conversations():
    hub = Hub({"q": "a"}, {"q": ["b", "c"]}, {"q": [user("d")], "source": "chat"})
    found = read_hub("owner/set:q", load=hub)
    assert [row.messages[0]["content"] for row in found.rows] == ["a", "b", "d"]
    assert [row.source for row in found.rows] == ["owner/set", "owner/set", "chat"]
    assert hub.asked == [("owner/set", {"split": "train", "streaming": True})]


def test_a_split_may_be_named_and_a_limit_set():
    hub = Hub(*({"q": str(n)} for n in range(9)))
    assert len(read_hub("owner/set:q:test", limit=4, load=hub).rows) == 4
    assert hub.asked[0][1]["split"] == "test"


def test_a_missing_column_names_those_that_are_there():
    with pytest.raises(UsageError, match="no column 'prompt'; it has q, a"):
        read_hub("owner/set:prompt", load=Hub({"q": "a", "a": "b"}))


@pytest.mark.parametrize("wanted", ["owner/set", "owner/set:", ":q", "a:b:c:d"])
def test_another_form_is_refused(wanted):
    with pytest.raises(UsageError, match="expected NAME:COLUMN"):
        read_hub(wanted, load=Hub())


def test_what_the_library_raises_is_one_line():
    def load(_name, **_options):
        raise ConnectionError("no route\nto the hub")

    with pytest.raises(UsageError, match=r"Cannot read owner/set \(train\) from the hub: no route to the hub"):
        read_hub("owner/set:q", load=load)


def test_the_library_is_datasets_and_its_absence_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UsageError, match=r"pip install 'outrider\[train\]'"):
        read_hub("owner/set:q")
    module = ModuleType("datasets")
    module.load_dataset = Hub({"q": "a"})
    monkeypatch.setitem(sys.modules, "datasets", module)
    assert len(read_hub("owner/set:q").rows) == 1
