"""Any config that the z-lab format can say reads back as it was written, in both generations."""

import pytest
from dflash.formats.zlab_json import zlab_json
from hypothesis import given
from hypothesis import strategies as st

from outrider.checkpoint import TensorInfo
from outrider.models.config import Rope
from outrider.models.dflash.config import Confidence, Convolution, DFlashConfig, LayerMask, Markov, Selector
from outrider.models.dflash.formats.checks import config_problems, tensor_problems
from outrider.models.dflash.formats.shape import MaskToken
from outrider.models.dflash.formats.zlab import read_zlab, zlab_keys

sizes = st.integers(1, 64)
factors = st.floats(1.5, 64)


@st.composite
def ropes(draw) -> Rope:
    theta = draw(st.floats(2, 1e7))
    kind = draw(st.sampled_from(["default", "linear", "llama3", "yarn"]))
    original = {"original_max_position_embeddings": draw(st.integers(64, 40960))}
    options = {
        "default": {},
        "linear": {"factor": draw(factors)},
        "llama3": {"factor": draw(factors), "low_freq_factor": 1.0, "high_freq_factor": 4.0, **original},
        "yarn": {"factor": draw(factors), **original},
    }[kind]
    return Rope(theta, kind, options)


@st.composite
def masks(draw) -> tuple[LayerMask, ...]:
    slides = draw(st.lists(st.booleans(), min_size=1, max_size=6))
    window = draw(st.integers(1, 4096))
    causal = draw(st.sampled_from([slides, [True] * len(slides), [False] * len(slides)]))
    return tuple(LayerMask(window if s else None, causal=c) for s, c in zip(slides, causal, strict=True))


@st.composite
def successors(draw) -> dict:
    kind = draw(st.sampled_from(["dflash", "dflash2", "dspark"]))
    if kind == "dflash2":
        convolution, selector = Convolution(draw(sizes), 4), Selector(draw(sizes), 2)
        return {"kind": kind, "convolution": convolution, "selector": selector, "anchor_predicts": draw(st.booleans())}
    if kind == "dspark":
        markov = Markov(draw(sizes), draw(st.sampled_from(["vanilla", "gated", "rnn"])))
        confidence = draw(st.sampled_from([None, Confidence(with_markov=True), Confidence(with_markov=False)]))
        anchor_predicts = markov.kind == "rnn" or draw(st.booleans())  # a recurrence starts at the anchor
        return {"kind": kind, "markov": markov, "confidence": confidence, "anchor_predicts": anchor_predicts}
    return {"kind": kind, "anchor_predicts": draw(st.booleans())}


@st.composite
def configs(draw) -> DFlashConfig:
    heads, depth, later = draw(st.integers(1, 4)), draw(st.integers(2, 60)), draw(successors())
    vocabulary = draw(st.integers(8, 300))
    words = draw(st.sampled_from([None, vocabulary - 1])) if later["kind"] != "dflash2" else None
    return DFlashConfig(
        **later,
        vocab_size=vocabulary,
        hidden_size=4 * draw(sizes),
        num_heads=2 * heads,
        num_kv_heads=heads,
        head_dim=2 * draw(sizes),
        intermediate_size=draw(sizes),
        max_positions=draw(st.integers(32, 262144)),
        norm_eps=draw(st.floats(1e-7, 1e-3)),
        rope=draw(ropes()),
        layers=draw(masks()),
        block_size=draw(st.integers(2, 32)),
        mask_token=draw(st.integers(0, vocabulary - 1)),
        taps=tuple(sorted(draw(st.sets(st.integers(0, depth - 2), min_size=1, max_size=8)))),
        target_hidden_size=draw(sizes),
        num_target_layers=draw(st.sampled_from([None, depth])),
        draft_vocab_size=words,
        own_head=words is not None,
        embedding_scale=draw(factors),
        output_multiplier=draw(factors),
        soft_cap=draw(st.one_of(st.none(), factors)),
        value_scale=draw(factors),
        sinks=draw(st.booleans()),
        biases=draw(st.booleans()),
    )


@pytest.mark.parametrize("old", [False, True])
@given(config=configs())
def test_a_config_reads_back_as_it_was_written(old, config):
    tensors = {name: TensorInfo(shape, "F32", 0, None) for name, shape in config.tensor_shapes().items()}
    keys = zlab_keys(zlab_json(config, old=old))
    found = read_zlab(keys, tensors, MaskToken(embedding=False))
    assert found == config
    assert keys.problems == []
    assert list(config_problems(found)) == []
    assert list(tensor_problems(found, tensors)) == []
