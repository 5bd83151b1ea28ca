"""Which keys of a drafter's config its tensors determine."""

# What the tensors determine, by its keys.
SIZES = frozenset(
    (
        *("architectures", "model_type", "projector_type", "hidden_act", "hidden_size", "intermediate_size"),
        *("num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size"),
        *("attention_bias", "attention_sink_bias", "target_hidden_size", "draft_vocab_size", "num_target_layers"),
        *("conv_kernel_size", "conv_group_size", "selector_rank", "markov_rank", "markov_head_type"),
        *("enable_confidence_head", "confidence_head_with_markov"),
    )
)
