"""SGLang: algorithms DFLASH and DSPARK."""

from outrider.commands.engines.case import Case, Told, chosen, last_tap

HYBRID = ("qwen3_5", "qwen3_next")  # beginnings of model types with recurrent layers


def tell(case: Case) -> Told:
    """Return the command, and what it needs and cannot do."""
    config = case.config
    command = case.command("sglang", hybrid=(case.target_kind or "").startswith(HYBRID))
    refused = chosen((config.origin == "gguf", "It reads folders, not GGUF drafters."))
    needs = chosen(
        (case.sliding > 0, "0.5.23 or later, which honours windows and is_causal."),
        (True, "--speculative-num-draft-tokens counts the anchor."),
        (True, "Without min_p and repetition_penalty, which its verification of drafts passes over."),
    )
    unknown = chosen(
        (config.origin == "speculators", "Whether it reads the speculators format; a z-lab folder is safe."),
        (config.kind == "dflash" and config.anchor_predicts, "Whether it runs DFlash whose anchor predicts."),
        (case.scaled, "Whether it applies the scales and the cap on logits of this config."),
        (config.value_scale != 1 or config.sinks, "Whether it applies attention sinks and scaled attention values."),
        (not case.sorted_taps, "Whether it keeps the order of the taps; for Qwen3.5 they must rise."),
    )
    return Told("" if refused else command, needs, refused, [*unknown, *last_tap(case)])
