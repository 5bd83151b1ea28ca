"""How vLLM, SGLang and llama.cpp are told to run a drafter as it was trained, and what each cannot do.

Facts are those of vLLM 0.33.0, SGLang 0.5.23 and llama.cpp b11434, read in their sources; what is not known is said so.
"""

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from outrider.models.dflash.config import DFlashConfig
from outrider.models.dflash.formats.zlab import NESTED
from outrider.results import Record

TARGET, DRAFTER = "TARGET", "DRAFTER"
# Model types whose llama.cpp architecture hands out the inputs of its layers.
LLAMA_CPP_TARGETS = (
    *("llama", "qwen3", "qwen3_moe", "qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "gpt_oss", "gemma4"),
    *("nemotron_h", "lfm2", "deepseek_v4", "minimax", "minimax_m2", "mimo_v2", "hunyuan_vl"),
)
HYBRID = ("qwen3_5", "qwen3_next")  # beginnings of model types with recurrent layers


class EngineAdvice(Record):
    """One engine: ``outrider inspect --json``.

    Attributes:
        as_trained: whether the command runs the drafter as it was trained; null where that is not known.
        command: to type; empty where the engine cannot run it.
        needs: versions and settings without which it does not.
        differs: what the engine does otherwise than training did.
        unknown: what could not be found out.
    """

    engine: str
    as_trained: bool | None
    command: str
    needs: list[str]
    differs: list[str]
    unknown: list[str]


@dataclass(frozen=True, slots=True)
class Case:
    """A drafter, and what it is run with.

    Attributes:
        config: what it is.
        raw: its config.json; empty for GGUF.
        drafter: as it was named.
        target: as it was named, or a placeholder.
        target_kind: the target's ``model_type``, if known.
    """

    config: DFlashConfig
    raw: Mapping[str, Any]
    drafter: str
    target: str = TARGET
    target_kind: str | None = None

    @property
    def sliding(self) -> int:
        """Layers with a window."""
        return sum(mask.window is not None for mask in self.config.layers)

    @property
    def mixed(self) -> bool:
        """Whether some layers slide and some do not."""
        return 0 < self.sliding < self.config.num_layers

    @property
    def causalities(self) -> set[bool]:
        """Of the layers in the block."""
        return {mask.causal for mask in self.config.layers}

    @property
    def sorted_taps(self) -> bool:
        """Whether taps rise, as engines that sort them assume."""
        return list(self.config.taps) == sorted(set(self.config.taps))

    def at_top(self, key: str) -> bool:
        """Whether a key stands at the top of config.json and not in ``dflash_config``."""
        inner = self.raw.get(NESTED)
        return self.raw.get(key) is not None and (not isinstance(inner, dict) or inner.get(key) is None)


def advise(case: Case) -> list[EngineAdvice]:
    """Return what each engine needs."""
    return [_advice(name, tell(case)) for name, tell in ENGINES.items()]


@dataclass(slots=True)
class _Told:
    command: str
    needs: list[str]
    differs: list[str]
    unknown: list[str]


def _advice(engine: str, told: _Told) -> EngineAdvice:
    as_trained = None if told.unknown and not told.differs else not told.differs
    return EngineAdvice(
        engine=engine,
        as_trained=as_trained,
        command=told.command,
        needs=told.needs,
        differs=told.differs,
        unknown=told.unknown,
    )


def _chosen(*lines: tuple[bool, str]) -> list[str]:
    """Return the lines that apply."""
    return [line for applies, line in lines if applies]


def _vllm(case: Case) -> _Told:
    config = case.config
    speculative = {
        "method": "dspark" if config.kind == "dspark" else "dflash",
        "model": case.drafter,
        "num_speculative_tokens": config.max_tokens,
    }
    runner = "VLLM_USE_V2_MODEL_RUNNER=1 " if case.mixed or config.kind != "dflash" else ""
    command = (
        f"{runner}vllm serve {shlex.quote(case.target)} --speculative-config {shlex.quote(json.dumps(speculative))} "
        "--attention-backend flash_attn"
    )
    refused = _chosen(
        (config.origin == "gguf", "It reads folders, not GGUF drafters."),
        (
            config.kind != "dspark" and config.anchor_predicts,
            "It rejects DFlash drafters whose anchor predicts (sample_from_anchor).",
        ),
    )
    return _Told("" if refused else command, _vllm_needs(case), refused + _vllm_differs(case), _vllm_unknown(case))


def _vllm_needs(case: Case) -> list[str]:
    config = case.config
    shifted = config.origin == "speculators"
    return _chosen(
        (shifted, "0.20 or later."),
        (not shifted, "0.22 or later; before, it taps one block too early."),
        (case.mixed, "0.26 or later for windows in some layers only, on model runner V2; V1 raises."),
        (case.sliding > 0 and not case.mixed, "0.25 or later, which honours windows."),
        (case.raw.get("is_causal") is not None, "0.28 or later, which honours is_causal."),
        (
            case.at_top("mask_token_id") and not shifted,
            "0.29 or later, which finds mask_token_id outside dflash_config.",
        ),
        (config.mask_embedding, "0.25 or later, which reads mask_embedding.pt."),
        (config.sinks, "0.25 or later, which honours attention_sink_bias."),
        (config.value_scale != 1, "0.31 or later, which honours attention_value_scale."),
        (config.kind == "dflash2", f"0.{29 if shifted else 28} or later for DFlash2, on model runner V2."),
        (config.kind == "dspark", "0.27 or later for DSpark, which honours the anchor's layout."),
    )


def _vllm_differs(case: Case) -> list[str]:
    config = case.config
    around = case.raw.get("sliding_window_non_causal")
    shifted = config.origin == "speculators"
    return _chosen(
        (not case.sorted_taps, "It sorts the taps and drops repeated ones, and fc reads the wrong columns."),
        (
            shifted and around is False and case.mixed,
            "It makes full layers causal too, because sliding_window_non_causal is false (vllm#56692, still in 0.33.0).",
        ),
        (
            shifted and around is None and case.sliding > 0 and True in case.causalities,
            "It takes sliding_window_non_causal for true where it is absent; write it as false.",
        ),
        (
            case.raw.get("partial_rotary_factor") not in (None, 1),
            "It rotates a part of each head (partial_rotary_factor); set that to 1.",
        ),
    )


def _vllm_unknown(case: Case) -> list[str]:
    return [*_scales(case), *_last_tap(case)]


def _sglang(case: Case) -> _Told:
    config = case.config
    if config.kind == "dspark":
        method = f"DSPARK --speculative-dspark-block-size {config.max_tokens}"
    else:
        method = "DFLASH"
    hybrid = (case.target_kind or "").startswith(HYBRID)
    command = (
        f"sglang serve --model-path {shlex.quote(case.target)} --speculative-algorithm {method} "
        f"--speculative-draft-model-path {shlex.quote(case.drafter)} "
        f"--speculative-num-draft-tokens {config.max_tokens + 1}"
        f"{' --mamba-radix-cache-strategy extra_buffer' if hybrid else ''}"
    )
    refused = _chosen((config.origin == "gguf", "It reads folders, not GGUF drafters."))
    needs = _chosen(
        (case.sliding > 0, "0.5.23 or later, which honours windows and is_causal."),
        (True, "--speculative-num-draft-tokens counts the anchor."),
        (True, "Without min_p and repetition_penalty, which its verification of drafts passes over."),
    )
    unknown = _chosen(
        (config.origin == "speculators", "Whether it reads the speculators format; a z-lab folder is safe."),
        (config.kind == "dflash" and config.anchor_predicts, "Whether it runs DFlash whose anchor predicts."),
        (not case.sorted_taps, "Whether it keeps the order of the taps; for Qwen3.5 they must rise."),
    )
    return _Told("" if refused else command, needs, refused, [*unknown, *_last_tap(case)])


def _llama_cpp(case: Case) -> _Told:
    config = case.config
    whole = config.origin == "gguf"
    draft = shlex.quote(case.drafter) if whole else "draft.gguf"
    convert = (
        f"python convert_hf_to_gguf.py {shlex.quote(case.drafter)} --target-model-dir {shlex.quote(case.target)} "
        "--outtype bf16 --outfile draft.gguf && "
    )
    command = (
        f"{'' if whole else convert}llama-server -m TARGET.gguf -md {draft} "
        f"--spec-type draft-{'dspark' if config.kind == 'dspark' else 'dflash'} "
        f"--spec-draft-n-max {config.max_tokens} -fa on"
    )
    refused = _llama_cpp_refuses(case)
    needs = _chosen(
        (True, f"--spec-draft-n-max: without it 3 tokens are drafted, not {config.max_tokens}."),
        (True, "The draft's keys and values in f16 (no -ctkd, -ctvd)."),
        (
            case.sliding > 0 and not whole and case.raw.get("use_sliding_window") is not True and not _swa(case),
            '"use_sliding_window": true in config.json before converting; without it windows are dropped in silence.',
        ),
        (
            case.at_top("mask_token_id") and config.kind != "dspark",
            "mask_token_id in dflash_config before converting; at the top it is dropped.",
        ),
        (
            case.causalities == {True} and not _explicit(case),
            '"is_causal": true in config.json before converting; without it the block is not causal.',
        ),
    )
    return _Told("" if refused else command, needs, [*refused, *_llama_cpp_differs(case)], _last_tap(case))


def _explicit(case: Case) -> bool:
    """Whether causality is one value for all layers, and said."""
    inner = case.raw.get(NESTED)
    said = case.raw.get("is_causal") is not None or (isinstance(inner, dict) and inner.get("causal") is not None)
    return said or case.config.origin == "gguf"


def _swa(case: Case) -> bool:
    inner = case.raw.get(NESTED)
    return isinstance(inner, dict) and inner.get("use_swa") is True


def _llama_cpp_refuses(case: Case) -> list[str]:
    config = case.config
    kind = case.target_kind
    return _chosen(
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
            kind is not None and kind not in LLAMA_CPP_TARGETS,
            f"Targets of type {kind} do not hand out the inputs of their layers; it aborts.",
        ),
    )


def _llama_cpp_differs(case: Case) -> list[str]:
    return _chosen(
        (
            len(case.causalities) > 1,
            "One causality counts for all layers: it runs the sliding layers, trained causal in the block, as not causal.",
        ),
        (
            case.config.origin == "gguf" and case.causalities == {True} and case.sliding > 0,
            "Without dflash.attention.causal in the file it runs the sliding layers as not causal.",
        ),
    )


def _scales(case: Case) -> list[str]:
    config = case.config
    scaled = config.embedding_scale != 1 or config.output_multiplier != 1 or config.soft_cap is not None
    return ["Whether it applies the scales and the cap on logits of this config."] if scaled else []


def _last_tap(case: Case) -> list[str]:
    depth = case.config.num_target_layers
    last = depth is not None and depth - 1 in case.config.taps
    return (
        ["Whether the tap on the last block was trained before or after the final norm; here it is before."]
        if last
        else []
    )


ENGINES: dict[str, Callable[[Case], _Told]] = {"vLLM": _vllm, "SGLang": _sglang, "llama.cpp": _llama_cpp}
