"""Runs the command line in this process, as a user would see it."""

from dataclasses import dataclass
from typing import Any

import pytest

from outrider import cli


@dataclass(frozen=True)
class Seen:
    code: int
    out: str
    err: str

    def check_one_line_error(self) -> str:
        """Assert that this is bad input, told in one line; return the line."""
        assert self.code == 2, self
        assert self.err.startswith("error: "), self.err
        assert self.err.count("\n") == 1, self.err
        assert self.err.endswith("\n")
        assert "Traceback" not in self.err + self.out
        assert not self.err.startswith("error: unexpected"), self.err
        return self.err


def run_cli(capsys: pytest.CaptureFixture[str], *arguments: Any) -> Seen:
    capsys.readouterr()
    code = cli.run([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return Seen(code, captured.out, captured.err)
