"""Provenance: what it must hold and what it must not."""

import getpass
import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path

import pytest

import outrider
from outrider import provenance as module
from outrider.provenance import Provenance, provenance


def test_it_names_versions_and_machine():
    found = provenance(threads=2, seed=5)
    assert found.outrider == outrider.__version__
    assert found.python == platform.python_version()
    assert found.packages["numpy"] == version("numpy")
    assert (found.threads, found.seed) == (2, 5)
    assert found.logical_cores == os.cpu_count()
    assert found.cpu


def test_the_date_is_now_in_utc():
    stamp = datetime.fromisoformat(provenance().date)
    assert stamp.utcoffset() == timedelta(0)
    assert abs(datetime.now(UTC) - stamp) < timedelta(minutes=1)


def test_home_folders_are_left_out_of_the_command(monkeypatch):
    home = str(Path.home())
    monkeypatch.setattr(sys, "argv", [f"{home}/bin/outrider", f"--model={home}/m.gguf", "/home/ann/p", "/Users/ann"])
    assert provenance().command == ["outrider", "--model=~/m.gguf", "~/p", "~"]


def test_host_and_user_are_left_out(monkeypatch):
    monkeypatch.setattr(platform, "node", lambda: pytest.fail("asked for the host name"))
    monkeypatch.setattr(getpass, "getuser", lambda: pytest.fail("asked for the user name"))
    assert not {"host", "hostname", "node", "user"} & set(Provenance.model_fields)
    provenance()


def test_outside_a_checkout_there_is_no_commit(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_ROOT", tmp_path)
    found = provenance()
    assert (found.git_commit, found.git_dirty) == (None, None)


def test_in_a_checkout_commit_and_changes_are_seen(monkeypatch, tmp_path):
    def git(*arguments):
        who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        done = subprocess.run(["git", "-C", tmp_path, *who, *arguments], check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init")
    (tmp_path / "file").write_text("one")
    git("add", "file")
    git("commit", "-m", "first", "--no-gpg-sign", "--no-verify")
    monkeypatch.setattr(module, "_ROOT", tmp_path)
    clean = provenance()
    (tmp_path / "file").write_text("two")
    assert clean.git_commit == git("rev-parse", "HEAD")
    assert (clean.git_dirty, provenance().git_dirty) == (False, True)


def test_without_git_there_is_no_commit(monkeypatch):
    monkeypatch.setattr(module.shutil, "which", lambda _: None)
    assert provenance().git_commit is None


def test_it_imports_none_of_the_packages_it_names():
    code = (
        "import sys, json; from outrider.provenance import provenance; provenance();"
        "print(json.dumps([m for m in ('torch', 'transformers') if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert json.loads(done.stdout) == []


def test_it_survives_json():
    found = provenance(seed=1)
    assert Provenance.model_validate_json(found.model_dump_json()) == found
