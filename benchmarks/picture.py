"""``python -m benchmarks.picture``: run ``outrider demo`` in a terminal of its own, and draw docs/demo.svg of it."""

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 100
TARGET = Path(__file__).parents[1] / "docs" / "demo.svg"


def main() -> None:
    """Run, record, write."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text("$ outrider demo", style="bold"))
    console.print(Text.from_ansi(shown_by([sys.executable, "-m", "outrider", "demo"])))
    TARGET.write_text(console.export_svg(title="outrider demo"), encoding="utf-8")


def shown_by(command: list[str]) -> str:
    """Return what a command writes to a terminal, colours included; its progress (stderr) is left out."""
    reader, writer = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    with subprocess.Popen(command, stdout=writer, stderr=subprocess.DEVNULL, env=environment) as process:
        os.close(writer)
        parts = []
        try:
            while part := os.read(reader, 65536):
                parts.append(part)
        except OSError:  # Linux ends a terminal whose last writer is gone with an error
            pass
    os.close(reader)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with code {process.returncode}.")
    return b"".join(parts).decode("utf-8", "replace").replace("\r\n", "\n")


if __name__ == "__main__":
    main()
