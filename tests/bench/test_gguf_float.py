"""The float copy of a GGUF file: same numbers, same metadata, other types."""

import gguf
import numpy as np
import pytest
from benchmarks.gguf_float import convert

NUMBERS = np.random.default_rng(0).standard_normal((4, 64), dtype=np.float32)


@pytest.fixture
def quantised(tmp_path):
    path = tmp_path / "q8.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    writer.add_quantization_version(2)
    writer.add_float32("llama.rope.freq_base", 1e5)
    writer.add_bool("tokenizer.ggml.add_bos_token", val=False)
    writer.add_array("tokenizer.ggml.tokens", ["a", "\u0120b", "\U0001f680"])
    writer.add_array("tokenizer.ggml.token_type", [1, 3, 1])
    kind = gguf.GGMLQuantizationType.Q8_0
    writer.add_tensor("token_embd.weight", gguf.quants.quantize(NUMBERS, kind), raw_dtype=kind)
    writer.add_tensor("output_norm.weight", NUMBERS[0])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def metadata(path):
    fields = gguf.GGUFReader(path).fields
    return {name: (field.types, field.contents()) for name, field in fields.items() if not name.startswith("GGUF.")}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_values_are_those_of_the_file_and_vectors_stay_float32(quantised, tmp_path, dtype):
    target = tmp_path / "out.gguf"
    convert(quantised, target, dtype)
    before = {t.name: t for t in gguf.GGUFReader(quantised).tensors}
    after = {t.name: t for t in gguf.GGUFReader(target).tensors}
    assert list(after) == list(before)
    source = before["token_embd.weight"]
    expected = gguf.quants.dequantize(source.data, source.tensor_type).astype(dtype)
    assert after["token_embd.weight"].tensor_type.name == {"float32": "F32", "float16": "F16"}[dtype]
    np.testing.assert_array_equal(after["token_embd.weight"].data, expected)
    assert after["output_norm.weight"].tensor_type == gguf.GGMLQuantizationType.F32
    np.testing.assert_array_equal(after["output_norm.weight"].data, NUMBERS[0])


def test_metadata_is_kept_but_for_what_says_that_it_is_quantised(quantised, tmp_path):
    target = tmp_path / "out.gguf"
    convert(quantised, target, "float16")
    before, after = metadata(quantised), metadata(target)
    assert after.pop("general.file_type")[1] == gguf.LlamaFileType.MOSTLY_F16
    del before["general.file_type"], before["general.quantization_version"]
    assert after == before
