"""Lets an engine's own parser read launch commands from standard input; exits with 1 where it refuses one.

Runs in the engine's environment, so it imports nothing of ours. Arguments: the engine, vllm or sglang.
"""

import argparse
import shlex
import sys
from importlib import import_module
from typing import Any


def main() -> int:
    """Parse; say which were refused."""
    parser = {"vllm": _vllm, "sglang": _sglang}[sys.argv[1]]()
    refused = read = 0
    for line in sys.stdin:
        words = [word for word in shlex.split(line) if word.startswith("-") or "=" not in word.split("/")[0]]
        read += 1
        try:
            parser.parse_args(words[2:])
        except SystemExit:
            refused += 1
            print("refused:", line.strip())
    print(f"{read} commands, {refused} refused")
    return int(refused > 0)


def _vllm() -> Any:
    try:
        module = import_module("vllm.entrypoints.launchers.cli_args")
    except ModuleNotFoundError:  # older releases
        module = import_module("vllm.entrypoints.openai.cli_args")
    return module.make_arg_parser(import_module("vllm.utils.argparse_utils").FlexibleArgumentParser())


def _sglang() -> Any:
    parser = argparse.ArgumentParser()
    import_module("sglang.srt.server_args").ServerArgs.add_cli_args(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
