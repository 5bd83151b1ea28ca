"""llama.cpp: architecture ``dflash``, after a conversion that drops what it does not know."""

import shlex

from outrider.adapters.start.deployment import TARGET
from outrider.adapters.start.llamacpp import NO_FILE
from outrider.commands.engines.case import Case, Told, chosen, last_tap

# Model types whose architecture hands out the inputs of its layers.
TARGETS = (
    *("llama", "qwen3", "qwen3_moe", "qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "gpt_oss", "gemma4"),
    *("nemotron_h", "lfm2", "deepseek_v4", "minimax", "minimax_m2", "mimo_v2", "hunyuan_vl"),
)


def tell(case: Case) -> Told:
    """Return the command, and what it needs and cannot do."""
    config = case.config
    whole = config.origin == "gguf"
    is_file = case.target.lower().endswith(".gguf")
    folder, file = (TARGET, case.target) if is_file else (case.target, f"{TARGET}.gguf")
    convert = (
        f"python convert_hf_to_gguf.py {shlex.quote(case.drafter)} --target-model-dir {shlex.quote(folder)} "
        f"--outtype bf16 --outfile {NO_FILE} && "
    )
    command = f"{'' if whole else convert}{case.command('llama.cpp', target=file, more=('-fa', 'on'))}"
    refused = _refused(case)
    needs = chosen(
        (True, f"--spec-draft-n-max: without it 3 tokens are drafted, not {config.max_tokens}."),
        (True, "The draft's keys and values in f16 (no -ctkd, -ctvd)."),
        (
            case.sliding > 0 and not whole and not case.said("use_sliding_window") and not case.nested("use_swa"),
            '"use_sliding_window": true in config.json before converting; without it windows are dropped in silence.',
        ),
        (
            case.at_top("mask_token_id") and config.kind != "dspark",
            "mask_token_id in dflash_config before converting; at the top it is dropped.",
        ),
        (
            case.causalities == {True} and not whole and not _explicit(case),
            '"is_causal": true in config.json before converting; without it the block is not causal.',
        ),
    )
    return Told("" if refused else command, needs, [*refused, *_differs(case)], last_tap(case))


def _explicit(case: Case) -> bool:
    """Whether causality is one value for all layers, and said."""
    keys = (case.raw.get("is_causal"), case.nested("causal"), case.raw.get("dflash.attention.causal"))
    return any(key is not None for key in keys)


def _refused(case: Case) -> list[str]:
    config = case.config
    kind = case.target_kind
    return chosen(
        (
            config.origin == "speculators" and config.kind != "dspark",
            "Its converter does not know the speculators format, save for DSpark; write a z-lab config.json.",
        ),
        (config.biases, "Its DFlash layers have no biases (attention_bias)."),
        (
            config.markov is not None and config.markov.kind != "vanilla",
            f"Of Markov heads it runs vanilla ones, not {config.markov.kind if config.markov else ''}.",
        ),
        (
            kind is not None and kind not in TARGETS,
            f"Targets of type {kind} do not hand out the inputs of their layers; it aborts.",
        ),
    )


def _differs(case: Case) -> list[str]:
    return chosen(
        (
            len(case.causalities) > 1,
            "One causality counts for all layers: sliding layers, trained causal in the block, run as not causal.",
        ),
        (
            case.config.origin == "gguf" and case.causalities == {True} and not _explicit(case),
            "Without dflash.attention.causal in the file it runs the sliding layers as not causal.",
        ),
    )
