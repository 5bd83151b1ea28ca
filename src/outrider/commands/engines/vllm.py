"""vLLM: DFlash since 0.20, its parts since the releases named here."""

from outrider.commands.engines.case import Case, Told, chosen, last_tap


def tell(case: Case) -> Told:
    """Return the command, and what it needs and cannot do."""
    config = case.config
    command = case.command(
        "vllm",
        second_runner=needs_second_runner(case),
        more=("--attention-backend", "flash_attn"),
    )
    refused = chosen(
        (config.origin == "gguf", "It reads folders, not GGUF drafters."),
        (
            config.kind != "dspark" and case.said("sample_from_anchor") is True,
            "It rejects DFlash drafters whose anchor predicts (sample_from_anchor).",
        ),
    )
    return Told("" if refused else command, _needs(case), refused + _differs(case), _unknown(case))


def needs_second_runner(case: Case) -> bool:
    """Say whether the drafter needs model runner V2: windows in some layers, or heads of successors."""
    return case.mixed or case.config.kind != "dflash"


def _needs(case: Case) -> list[str]:
    config = case.config
    shifted = config.origin == "speculators"
    return chosen(
        (shifted, "0.20 or later."),
        (not shifted, "0.22 or later; before, it taps one block too early."),
        (case.mixed, "0.26 or later for windows in some layers only, on model runner V2; V1 raises."),
        (case.sliding > 0 and not case.mixed, "0.25 or later, which honours windows."),
        (case.raw.get("is_causal") is not None, "0.28 or later, which honours is_causal."),
        (case.nested("causal") is not None, "0.23 or later, which honours dflash_config.causal."),
        (case.at_top("mask_token_id") and not shifted, "0.29 or later, which finds mask_token_id at the top."),
        (config.mask_embedding, "0.25 or later, which reads mask_embedding.pt."),
        (config.sinks, "0.25 or later, which honours attention_sink_bias."),
        (config.value_scale != 1, "0.31 or later, which honours attention_value_scale."),
        (config.kind == "dflash2", f"0.{29 if shifted else 28} or later for DFlash2, on model runner V2."),
        (config.kind == "dspark", "0.27 or later for DSpark, which honours the anchor's layout."),
    )


def _differs(case: Case) -> list[str]:
    config = case.config
    around = case.raw.get("sliding_window_non_causal")
    shifted = config.origin == "speculators"
    return chosen(
        (not case.sorted_taps, "It sorts the taps and drops repeated ones, and fc reads the wrong columns."),
        (
            shifted and around is False and case.mixed,
            "It makes full layers causal too, because sliding_window_non_causal is false (vllm#56692, in 0.33.0).",
        ),
        (
            shifted and around is None and case.sliding > 0 and True in case.causalities,
            "It takes sliding_window_non_causal for true where it is absent; write it as false.",
        ),
        (
            case.said("partial_rotary_factor") not in (None, 1),
            "It rotates a part of each head (partial_rotary_factor); set that to 1.",
        ),
    )


def _unknown(case: Case) -> list[str]:
    config = case.config
    silent = config.kind != "dspark" and config.anchor_predicts and case.said("sample_from_anchor") is None
    lines = chosen(
        (case.scaled, "Whether it applies the scales and the cap on logits of this config."),
        (silent, "Whether it runs DFlash whose anchor predicts."),
    )
    return [*lines, *last_tap(case)]
