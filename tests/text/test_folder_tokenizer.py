import json

import pytest
from text.stand_ins import byte_level, folder_checkpoint
from transformers import PreTrainedTokenizerFast

from outrider.errors import CheckpointError, UsageError
from outrider.text.tokenizer import load_tokenizer


@pytest.fixture
def folder(tmp_path):
    byte_level().save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def write(folder, name, value):
    text = value if isinstance(value, str) else json.dumps(value)
    (folder / name).write_text(text, encoding="utf-8")


def load(folder, **parts):
    return load_tokenizer(folder_checkpoint(folder, **parts))


def refusal(folder, **parts):
    with pytest.raises(CheckpointError) as caught:
        load(folder, **parts)
    message = str(caught.value)
    assert "\n" not in message
    assert str(folder) in message
    return message


def test_text_goes_to_tokens_and_back(folder):
    tokenizer = load(folder)
    text = "to <tool> é 👍<end>"
    ids = tokenizer.encode(text, add_special=True)
    assert tokenizer.decode(ids, skip_special=False) == text
    assert tokenizer.decode(ids) == "to <tool> é 👍"
    assert tokenizer.vocab_size == 260
    assert [tokenizer.token_text(i) for i in ids[:2]] == ["t", "o"]
    assert tokenizer.piece(999) is None


def test_tokens_equal_those_of_transformers(folder):
    write(folder, "tokenizer_config.json", {"bos_token": "<end>", "add_bos_token": True})
    theirs = PreTrainedTokenizerFast.from_pretrained(folder)
    ours = load(folder)
    for text in ["", "the <tool> t", " x  y\n", "日本 <end> é"]:
        assert ours.encode(text, add_special=True) == theirs(text)["input_ids"]


def test_stop_tokens_are_those_of_all_configs(folder):
    write(folder, "tokenizer_config.json", {"eos_token": {"content": "<end>"}})
    tokenizer = load(
        folder,
        config={"eos_token_id": 3, "text_config": {"eos_token_id": 7}},
        generation_config={"eos_token_id": [4, 5]},
    )
    assert tokenizer.stop_ids == {3, 4, 5, 7, tokenizer.token_id("<end>")}
    assert tokenizer.token_id(tokenizer.eos_token) in tokenizer.stop_ids


def test_the_older_special_tokens_map_is_read_where_the_config_is_silent(folder):
    write(folder, "special_tokens_map.json", {"bos_token": "<tool>", "eos_token": "<tool>"})
    write(folder, "tokenizer_config.json", {"eos_token": "<end>"})
    tokenizer = load(folder)
    assert (tokenizer.bos_token, tokenizer.eos_token) == ("<tool>", "<end>")


def test_tokens_of_the_config_are_added_and_its_flags_win(folder):
    entries = {"259": {"content": "<tool>", "special": True}, "260": {"content": "<new>"}}
    write(folder, "tokenizer_config.json", {"added_tokens_decoder": entries})
    tokenizer = load(folder)
    assert tokenizer.encode("<new><tool>", add_special=False) == [260, 259]
    assert tokenizer.decode([260, 259]) == "<new>"


def test_a_saved_cut_of_long_texts_is_not_kept(folder):
    backend = byte_level()
    backend.enable_truncation(2)
    backend.enable_padding(length=20)
    backend.save(str(folder / "tokenizer.json"))
    assert len(load(folder).encode("x" * 9, add_special=False)) == 9


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"tokenizer_config.json": {"chat_template": "key"}}, "key"),
        (
            {
                "tokenizer_config.json": {
                    "chat_template": [
                        {"name": "tool_use", "template": "t"},
                        {"name": "default", "template": "d"},
                    ]
                }
            },
            "d",
        ),
        (
            {
                "tokenizer_config.json": {"chat_template": "key"},
                "chat_template.json": {"chat_template": "json"},
            },
            "json",
        ),
        (
            {
                "tokenizer_config.json": {"chat_template": "key"},
                "chat_template.json": {"chat_template": "json"},
                "chat_template.jinja": "own\n",
            },
            "own\n",
        ),
    ],
)
def test_the_chat_template_comes_from_the_first_place_that_has_one(folder, files, expected):
    for name, value in files.items():
        write(folder, name, value)
    assert load(folder).chat_template == expected


def test_a_folder_without_tokenizer_json_says_that_slow_ones_are_not_read(tmp_path):
    (tmp_path / "tokenizer.model").write_bytes(b"\x0a")
    message = refusal(tmp_path)
    assert "tokenizer.json" in message
    assert "sentencepiece" in message


@pytest.mark.parametrize("content", ["", "{", '{"model": 1}', '{"version": "1.0"}'])
def test_a_corrupt_tokenizer_json_is_named(folder, content):
    write(folder, "tokenizer.json", content)
    assert "tokenizer.json is not a tokenizer" in refusal(folder)


def test_bytes_that_are_no_text_are_named(folder):
    (folder / "tokenizer.json").write_bytes(b"{\xff}")
    assert "not UTF-8 text (byte 1)" in refusal(folder)


def test_a_folder_in_place_of_the_file_is_named(tmp_path):
    (tmp_path / "tokenizer.json").mkdir()
    assert "cannot be read" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("tokenizer_config.json", "{", "not valid JSON"),
        ("tokenizer_config.json", "[]", "expected a JSON object"),
        ("tokenizer_config.json", {"added_tokens_decoder": [1]}, "does not describe tokens"),
        ("tokenizer_config.json", {"added_tokens_decoder": {"a": {}}}, "does not describe tokens"),
        (
            "tokenizer_config.json",
            {"added_tokens_decoder": {"258": {"content": "<end>x"}}},
            "different models",
        ),
        ("tokenizer_config.json", {"chat_template": 3}, "expected text"),
        ("tokenizer_config.json", {"chat_template": ["x"]}, "without 'name' and 'template'"),
        ("chat_template.json", "nonsense", "not valid JSON"),
    ],
)
def test_a_damaged_file_beside_it_is_named(folder, name, value, said):
    write(folder, name, value)
    assert said in refusal(folder)


@pytest.mark.parametrize("value", ["</s>", [1, "2"], -1, True, 1.5])
def test_an_end_token_that_is_no_id_is_refused(folder, value):
    assert "eos_token_id" in refusal(folder, generation_config={"eos_token_id": value})


def test_a_lone_surrogate_is_named_with_its_place(folder):
    with pytest.raises(UsageError, match=r"'\\ud800' at character 2"):
        load(folder).encode("ab\ud800", add_special=False)


def test_what_is_no_text_is_refused(folder):
    with pytest.raises(UsageError, match="found int"):
        load(folder).encode(3, add_special=False)
