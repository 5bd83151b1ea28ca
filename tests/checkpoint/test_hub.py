"""The hub route, with the hub's own exceptions raised in place of its answers."""

import errno
import time
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pytest
from huggingface_hub import constants, errors

from outrider.checkpoint import hub
from outrider.checkpoint.cached import list_cached
from outrider.errors import FetchError

REPO = "owner/name"
COMMIT = "c" * 40
CONNECT_ERROR = errors.HfHubHTTPError.__bases__[0]


def http_error(kind, status):
    response = SimpleNamespace(headers={}, request=None, status_code=status)
    return kind(f"{status} Client Error.\n\nmore lines", response=response)


def raising(error):
    def call(*args, **kwargs):
        raise error

    return call


def answer(monkeypatch, **files):
    siblings = [SimpleNamespace(rfilename=name, size=size) for name, size in files.items()]
    info = SimpleNamespace(siblings=siblings)
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", lambda *args, **kwargs: info)


def cached(file="config.json", repo="owner--name"):
    """Put a complete snapshot where the library keeps its own."""
    root = Path(constants.HF_HUB_CACHE) / f"models--{repo}"
    (root / "refs").mkdir(parents=True)
    (root / "refs" / "main").write_text(COMMIT)
    path = root / "snapshots" / COMMIT / file
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    return path


def failure(call=hub.fetch_snapshot, *args):
    with pytest.raises(FetchError) as caught:
        call(REPO, *args)
    message = str(caught.value)
    assert "\n" not in message
    assert REPO in message or "disk" in message
    return message


def test_a_snapshot_is_downloaded_without_second_copies_of_the_weights(monkeypatch, tmp_path):
    answer(monkeypatch)
    asked = {}

    def download(repo, **settings):
        asked.update(settings, repo=repo)
        return str(tmp_path / COMMIT)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert hub.fetch_snapshot(REPO) == (tmp_path / COMMIT, COMMIT)
    assert (asked["repo"], asked["local_files_only"]) == (REPO, False)
    names = ["model-1.safetensors", "tokenizer.json", "chat_template.jinja"]
    unwanted = ["pytorch_model.bin", "m.gguf", "consolidated.safetensors", "onnx/a.json"]
    kept = huggingface_hub.utils.filter_repo_objects(
        names + unwanted,
        allow_patterns=asked["allow_patterns"],
        ignore_patterns=asked["ignore_patterns"],
    )
    assert list(kept) == names


def test_without_network_the_cached_snapshot_is_used():
    path = cached()
    assert hub.fetch_snapshot(REPO) == (path.parent, COMMIT)


def test_without_network_a_cached_gguf_is_used():
    path = cached("sub/m.gguf")
    assert hub.fetch_gguf(REPO, "sub/m.gguf") == (path, COMMIT)


def test_a_refused_token_does_not_hide_the_cached_snapshot(monkeypatch):
    path = cached()
    refusal = http_error(errors.GatedRepoError, 403)
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", raising(refusal))
    assert hub.fetch_snapshot(REPO) == (path.parent, COMMIT)


def test_without_network_and_cache_it_is_said_what_is_there():
    assert "holds nothing" in failure()
    cached(repo="other--model")
    message = failure()
    assert "no network: no route" in message
    assert "other/model" in message


def test_offline_mode_is_said(monkeypatch):
    error = errors.OfflineModeIsEnabled("offline\nlines")
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", raising(error))
    assert "HF_HUB_OFFLINE is set" in failure()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (http_error(errors.GatedRepoError, 403), "hf auth login"),
        (http_error(errors.GatedRepoError, 403), "request access on the model's page"),
        (http_error(errors.RepositoryNotFoundError, 401), "has no model owner/name"),
        (http_error(errors.HfHubHTTPError, 401), "refused the token"),
        (http_error(errors.HfHubHTTPError, 429), "status 429"),
        (http_error(errors.HfHubHTTPError, 503), "out of order"),
        (errors.HFValidationError("bad"), "no valid name"),
        (RuntimeError("odd\nlines"), "failed: odd."),
        (RuntimeError(), "failed: RuntimeError."),
    ],
)
def test_each_refusal_says_what_to_do(monkeypatch, error, words):
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", raising(error))
    assert words in failure()


def test_a_gated_file_is_said_even_when_the_model_is_shown(monkeypatch):
    answer(monkeypatch)
    gated = http_error(errors.GatedRepoError, 403)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", raising(gated))
    assert "is gated" in failure()


def test_a_file_that_the_repository_lacks_is_said(monkeypatch):
    answer(monkeypatch)
    absent = http_error(errors.RemoteEntryNotFoundError, 404)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", raising(absent))
    assert "does not hold the file" in failure(hub.fetch_gguf, "x.gguf")


def test_a_download_that_breaks_off_can_be_taken_up(monkeypatch):
    answer(monkeypatch)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", raising(CONNECT_ERROR("reset")))
    assert "broke off" in failure()


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        RuntimeError("Data processing error: No space left on device (os error 28)"),
    ],
)
def test_a_full_disk_says_how_much_and_where_and_removes_the_rest(monkeypatch, error):
    answer(monkeypatch, **{"model.safetensors": 5_000_000, "m.bin": 9_000_000, "a.json": 1_000_000})
    partial = Path(constants.HF_HUB_CACHE) / "models--owner--name" / "blobs" / "x.incomplete"
    partial.parent.mkdir(parents=True)
    partial.write_bytes(b"half")
    monkeypatch.setattr(huggingface_hub, "snapshot_download", raising(error))
    message = failure()
    assert "about 6 MB" in message
    assert constants.HF_HUB_CACHE in message
    assert not partial.exists()


def test_an_interrupt_passes_through(monkeypatch):
    answer(monkeypatch)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        hub.fetch_snapshot(REPO)


def test_a_hub_that_never_answers_is_left_after_the_deadline(monkeypatch):
    monkeypatch.setattr(hub, "ANSWER_S", 0.05)
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", lambda *a, **k: time.sleep(2))
    start = time.perf_counter()
    assert "no answer within" in failure()
    assert time.perf_counter() - start < 1.5


def test_cached_models_are_listed_by_name():
    folder = cached().parent
    file = cached("q/m.gguf", "z--ggufs")
    cached("README.md", "not--a-model")
    found = {model.name: (model.path, model.origin) for model in list_cached()}
    assert found.pop("smollm2-135m-dflash")[1].startswith("shipped with outrider")
    assert found == {
        REPO: (folder, f"hub {REPO}@{COMMIT}"),
        "z/ggufs/q/m.gguf": (file, f"hub z/ggufs@{COMMIT} q/m.gguf"),
    }
