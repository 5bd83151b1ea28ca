"""The launch command of an engine, taken apart and put together again with other speculation.

A command that was given is kept but for what speculates; where none was given the shortest one that says the same is
written.
"""

import json
import re
import shlex
from itertools import takewhile

from outrider.adapters.start import STARTERS, Deployment, Draft
from outrider.adapters.start.deployment import TARGET, joined
from outrider.doctor.evidence import Evidence

PROGRAMS = {"vllm": ("vllm", "python"), "sglang": ("sglang", "python"), "llama.cpp": ("llama-server", "llama-cli")}
SPECULATES = {
    "vllm": ("--speculative-config", "--speculative_config", "-sc"),
    "sglang": ("--speculative-",),
    "llama.cpp": ("--spec-", "--draft", "-md", "--model-draft", "-hfd", "--hf-repo-draft"),
}
SHELL = re.compile(r"\d?[<>|&;]")  # where a command ends
COUNTS = {  # flags that hold the draft length, and by how much they exceed it
    "--speculative-num-draft-tokens": 1,
    "--speculative-dflash-block-size": 1,
    "--speculative-num-steps": 0,
    "--speculative-dspark-block-size": 0,
    "--spec-draft-n-max": 0,
    "--draft-max": 0,
}


def launch(evidence: Evidence, draft: Draft | None, *, engine: str | None = None) -> str | None:
    """Return the command.

    Args:
        evidence: says which engine, and how it was started.
        draft: what is to speculate; None for nothing.
        engine: another than the evidence's; its command is then written anew.

    Returns:
        None for an engine that is not known here, or that does not run the method.
    """
    name = engine or evidence.engine.name
    if name not in PROGRAMS:
        return None
    speculation = None if draft is None else STARTERS[name].speculation(draft)
    if draft is not None and speculation is None:
        return None
    given = None if engine is not None else _words(evidence.engine.command or "", name)
    if given is None:
        return STARTERS[name].command(Deployment(target=evidence.target.name or TARGET, draft=draft)).text
    if draft is not None and draft.method == evidence.method and (resized := _resized(given, draft)):
        return joined(resized)
    return joined([*_kept(given, name), *(speculation or ())])


def same(evidence: Evidence, *, flags: str) -> str | None:
    """Return the command that was given with flags at its end; None where none was given."""
    name = evidence.engine.name
    given = None if name not in PROGRAMS else _words(evidence.engine.command or "", name)
    return None if given is None else f"{joined(given)} {flags}"


def _resized(words: list[str], draft: Draft) -> list[str] | None:
    """Return the command with another draft length and nothing else changed; None where it names none."""
    changed = list(words)
    for index, word in enumerate(words[1:], start=1):
        flag = words[index - 1]
        if flag in COUNTS:
            changed[index] = str(draft.tokens + (0 if draft.method == "ngram" else COUNTS[flag]))
        elif flag.startswith(SPECULATES["vllm"]):
            changed[index] = _resized_config(word, draft) or word
    return changed if changed != words else None


def _resized_config(word: str, draft: Draft) -> str | None:
    try:
        config = json.loads(word)
    except ValueError:
        return None
    return json.dumps(config | {"num_speculative_tokens": draft.tokens}) if isinstance(config, dict) else None


def _kept(words: list[str], engine: str) -> list[str]:
    """Return the command without what speculates: such flags, and the value after each that has one."""
    kept: list[str] = []
    drop_value = False
    for word in words:
        flag = word.startswith("-")
        dropped = flag and word.startswith(SPECULATES[engine])
        if not dropped and not (drop_value and not flag):
            kept.append(word)
        drop_value = dropped and "=" not in word
    return kept


def _words(command: str, engine: str) -> list[str] | None:
    """Return the words of what is a command of this engine and not a description of one."""
    try:
        every = shlex.split(command)
    except ValueError:
        return None
    words = list(takewhile(lambda word: not SHELL.match(word), every))
    program = next((word for word in words if "=" not in word.split("/")[0]), "").rpartition("/")[2]
    prose = any(word == "with" or word.endswith(",") for word in words)
    return words if program.startswith(PROGRAMS[engine]) and not prose else None
