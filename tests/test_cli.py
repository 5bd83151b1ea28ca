"""The command line as a frame: it starts fast, imports late, and says what goes wrong in one line."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import run_cli

from outrider import __version__, cli
from outrider.errors import UsageError

HEAVY = ("torch", "numpy", "pydantic", "huggingface_hub", "transformers", "gguf", "rich.console")


def run_process(*arguments: str, **more) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "outrider", *arguments], capture_output=True, text=True, timeout=120, check=False, **more
    )


@pytest.fixture
def run(capsys):
    return lambda *arguments: run_cli(capsys, *arguments)


@pytest.fixture
def fail(monkeypatch):
    """Make a command fail with the given exception."""

    def set_failure(error: BaseException) -> None:
        def run_list(**_options):
            raise error

        monkeypatch.setattr("outrider.commands.models.run_list", run_list)

    return set_failure


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from outrider.cli import run; run(['--help']);"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_help_is_there_within_half_a_second():
    def seconds() -> float:
        begun = time.perf_counter()
        assert run_process("--help").returncode == 0
        return time.perf_counter() - begun

    assert min(seconds() for _ in range(5)) < 0.5


def test_help_names_all_commands_and_exit_codes(run):
    seen = run("--help")
    assert seen.code == 0
    for word in ("generate", "compare", "models", "demo", "Exit codes: 0 fine; 1 compare"):
        assert word in seen.out


def test_no_words_at_all_show_the_help(run):
    assert run() == run("--help")


def test_version_is_the_packages(run):
    seen = run("--version")
    assert (seen.code, seen.out) == (0, f"outrider {__version__}\n")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["genrate", "x"], "Did you mean 'generate'"),
        (["generate", "x", "--max-tokns", "3"], "--max-tokens"),
        (["generate", "x", "--max-tokens", "many"], "--max-tokens"),
        (["generate"], "MODEL"),
        (["models", "lst"], "list"),
    ],
)
def test_a_slip_on_the_command_line_is_one_line_with_a_hint(run, words, part):
    assert part.lower() in run(*words).check_one_line_error().lower()


def test_our_own_error_is_one_line_even_if_its_message_has_several(run, fail):
    fail(UsageError("expected one\nfound [bold]two[/bold]"))
    assert run("models", "list").err == "error: expected one found [bold]two[/bold]\n"


def test_an_unforeseen_error_is_one_line_that_points_to_debug(run, fail):
    fail(ZeroDivisionError("by zero"))
    seen = run("models", "list")
    assert seen.code == 2
    assert seen.err == "error: unexpected ZeroDivisionError: by zero; run again with --debug for the traceback\n"


@pytest.mark.parametrize("words", [("--debug", "models", "list"), ("models", "list", "--debug")])
def test_debug_shows_the_traceback_wherever_it_stands(run, fail, words):
    fail(UsageError("no"))
    seen = run(*words)
    assert seen.code == 2
    assert "Traceback" in seen.err
    assert seen.err.endswith("error: no\n")


def test_a_prompt_may_be_the_word_debug_behind_two_dashes():
    assert cli._without_debug(["generate", "m", "--debug", "--", "--debug"]) == (
        ["generate", "m", "--", "--debug"],
        True,
    )


def test_ctrl_c_is_one_line_and_exit_code_130(run, fail):
    fail(KeyboardInterrupt())
    seen = run("models", "list")
    assert (seen.code, seen.err) == (130, "interrupted\n")


def test_a_reader_that_has_gone_is_no_error():
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "outrider", "models", "list", "--json"],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
    )
    os.close(write)
    assert done.stderr == ""
    assert done.returncode == cli.BROKEN_PIPE


def test_bad_input_ends_a_real_process_with_code_2_and_one_line(tmp_path: Path):
    done = run_process("generate", str(tmp_path / "absent.gguf"), "hello", stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert "absent.gguf" in done.stderr
