"""Resident memory, from /proc and from psutil."""

from pathlib import Path

import psutil
import pytest

from outrider.bench import memory

needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")


@needs_proc
def test_resident_memory_agrees_with_psutil():
    ours, theirs = memory.resident_bytes(), psutil.Process().memory_info().rss
    assert ours == pytest.approx(theirs, rel=0.05)


@needs_proc
def test_the_peak_outlives_what_made_it_until_it_is_reset():
    memory.reset_peak()
    before = memory.peak_bytes()
    block = b"x" * 2**26
    del block
    assert memory.peak_bytes() >= before + 2**25
    memory.reset_peak()
    assert memory.peak_bytes() < before + 2**25


def test_elsewhere_psutil_is_asked(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "_STATUS", tmp_path / "absent")
    assert memory.resident_bytes() == pytest.approx(psutil.Process().memory_info().rss, rel=0.05)


def test_without_psutil_memory_is_unknown(monkeypatch, tmp_path):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(memory, "_STATUS", tmp_path / "absent")
    monkeypatch.setattr(memory, "import_module", absent)
    assert (memory.resident_bytes(), memory.peak_bytes()) == (None, None)
