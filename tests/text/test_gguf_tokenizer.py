import json
import subprocess
import sys
import time

import pytest
from text.stand_ins import DATA, gguf_checkpoint, gguf_metadata, recorded

from outrider.errors import CheckpointError, UnsupportedError
from outrider.text.tokenizer import load_tokenizer


def load(metadata, **parts):
    return load_tokenizer(gguf_checkpoint(metadata, **parts))


def changed(**values):
    metadata = gguf_metadata()
    for name, value in values.items():
        if value is None:
            metadata.pop(f"tokenizer.ggml.{name}", None)
        else:
            metadata[f"tokenizer.ggml.{name}"] = value
    return metadata


@pytest.mark.parametrize("pre", recorded()["ids"])
def test_words_are_cut_as_llama_cpp_cuts_them(pre):
    tokenizer = load(gguf_metadata(pre))
    expected = dict(zip(recorded()["texts"], recorded()["ids"][pre], strict=True))
    assert {text: tokenizer.encode(text, add_special=True) for text in expected} == expected


@pytest.mark.parametrize("pre", recorded()["ids"])
def test_tokens_read_back_as_the_text(pre):
    tokenizer = load(gguf_metadata(pre))
    for text in recorded()["texts"]:
        ids = tokenizer.encode(text, add_special=False)
        assert tokenizer.decode(ids, skip_special=False) == text


@pytest.mark.parametrize("pre", ["qwen2", "qwen35"])
def test_qwen_composes_characters_as_its_own_tokenizer_does(pre):
    tokenizer = load(gguf_metadata(pre))
    composed = tokenizer.encode("é", add_special=False)
    assert tokenizer.encode("e\u0301", add_special=False) == composed


def test_a_begin_token_is_added_as_the_file_or_the_kind_says():
    assert load(changed()).encode("x", add_special=True)[0] != 1
    assert load(changed(add_bos_token=True)).encode("x", add_special=True)[0] == 1
    assert load(changed(add_bos_token=True)).encode("x", add_special=False)[0] != 1
    assert load(changed(pre="llama-bpe")).encode("x", add_special=True)[0] == 1
    no = changed(pre="llama-bpe", add_bos_token=False)
    assert load(no).encode("x", add_special=True)[0] != 1
    assert load(changed(add_eos_token=True)).encode("x", add_special=True)[-1] == 2


def test_both_end_tokens_stop_a_text():
    assert load(changed()).stop_ids == {0, 2}
    assert load(changed(eot_token_id=5, eom_token_id=6)).stop_ids == {0, 2, 5, 6}
    assert load(changed(), config={"eos_token_id": 9}).stop_ids == {0, 2, 9}


def test_special_tokens_and_template_come_from_the_file():
    metadata = changed()
    metadata["tokenizer.chat_template"] = "{{ messages }}"
    tokenizer = load(metadata)
    assert tokenizer.chat_template == "{{ messages }}"
    assert (tokenizer.bos_token, tokenizer.eos_token) == ("<|im_start|>", "<|im_end|>")
    assert load(changed(bos_token_id=None)).bos_token is None
    assert load(changed()).chat_template is None


def test_user_defined_tokens_are_taken_whole_and_shown():
    tokenizer = load(changed())
    ids = tokenizer.encode("a<tool>b<|im_end|>", add_special=False)
    assert tokenizer.decode(ids) == "a<tool>b"
    assert len(ids) == 4


@pytest.mark.parametrize("kind", ["llama", "bert", "t5"])
def test_another_kind_of_vocabulary_is_refused_by_name(kind):
    with pytest.raises(UnsupportedError, match=rf"{kind}.*Hugging Face folder"):
        load(changed(model=kind))


@pytest.mark.parametrize("pre", ["tekken", None])
def test_an_unknown_way_to_cut_words_is_refused_by_name(pre):
    with pytest.raises(UnsupportedError, match=rf"{pre or 'missing'}.*smollm.*folder"):
        load(changed(pre=pre))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"model": None}, "carries no tokenizer"),
        ({"tokens": None}, "tokens in .* missing"),
        ({"merges": None}, "merges in .* missing"),
        ({"merges": [1, 2]}, "no list of strings"),
        ({"merges": ["ab"]}, "'ab'; expected two pieces"),
        ({"merges": ["no such"]}, "do not fit each other"),
        ({"tokens": ["a", "a"]}, "twice"),
        ({"token_type": [1]}, "1 entries for 584 tokens"),
        ({"eos_token_id": 99999}, "is 99999; the vocabulary has 584"),
        ({"add_bos_token": True, "bos_token_id": None}, "bos_token_id is missing"),
    ],
)
def test_damaged_values_are_named(values, said):
    with pytest.raises(CheckpointError, match=said) as caught:
        load(changed(**values))
    assert "\n" not in str(caught.value)
    assert "tiny.gguf" in str(caught.value)


def test_reading_a_tokenizer_imports_neither_torch_nor_transformers():
    code = (
        "import sys, outrider.text.tokenizer, outrider.text.gguf_tokenizer, outrider.text.chat;"
        "import outrider.text.folder_tokenizer, outrider.text.stream, outrider.text.pretokenizers;"
        "heavy = {'torch', 'transformers', 'tokenizers', 'jinja2', 'gguf'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.model
def test_the_real_vocabulary_gives_the_tokens_of_llama_cpp_and_is_built_fast():
    from outrider.checkpoint.checkpoint import open_checkpoint
    from outrider.checkpoint.source import resolve

    checkpoint = open_checkpoint(resolve("smollm2-135m"))
    if checkpoint.source.kind != "gguf":
        pytest.skip("the hub's folder was found instead of the package's GGUF file")
    start = time.perf_counter()
    tokenizer = load_tokenizer(checkpoint)
    assert time.perf_counter() - start < 2.0  # 0.13 s on two idle cores
    data = json.loads((DATA / "smollm2.json").read_text(encoding="utf-8"))
    ids = [tokenizer.encode(text, add_special=True) for text in data["texts"]]
    assert ids == data["ids"]
    assert tokenizer.stop_ids == {0, 2}
