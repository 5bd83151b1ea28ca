"""Launch commands as people paste them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.adapters import ADAPTERS, adapter_of_command
from outrider.adapters.launch import as_json, read_command

VLLM = """$ VLLM_USE_V2_MODEL_RUNNER=1 vllm serve Qwen/Qwen3.6-27B \\
    --speculative-config '{"method": "dflash", "model": "z-lab/Qwen3.6-27B-DFlash", "num_speculative_tokens": 15}' \\
    --max-num-seqs=8 --enforce-eager --quantization fp8"""
SGLANG = (
    "python -m sglang.launch_server --model-path Qwen/Qwen3.6-27B --speculative-algorithm DFLASH "
    "--speculative-draft-model-path z-lab/Qwen3.6-27B-DFlash --speculative-num-draft-tokens 16 --disable-radix-cache"
)
LLAMA = "./llama-server -m T.gguf -md D.gguf --spec-type draft-dflash --spec-draft-n-max 7 -ctk q8_0 --jinja"


def part(text):
    launch = read_command(text)
    return adapter_of_command(launch).command(launch)


def test_a_vllm_command_gives_method_models_draft_length_and_settings():
    found = part(VLLM)
    assert found["method"] == "dflash"
    assert found["target"] == {"name": "Qwen/Qwen3.6-27B", "quantisation": "fp8"}
    assert found["drafter"] == {"name": "z-lab/Qwen3.6-27B-DFlash"}
    assert found["speculation"] == {"num_speculative_tokens": 15}
    assert found["engine"]["settings"] == {
        "max_num_seqs": 8, "enforce_eager": True, "VLLM_USE_V2_MODEL_RUNNER": 1,
    }  # fmt: skip


def test_sglang_counts_the_anchor_among_its_draft_tokens():
    found = part(SGLANG)
    assert (found["method"], found["speculation"]) == ("dflash", {"num_speculative_tokens": 15})
    assert found["drafter"] == {"name": "z-lab/Qwen3.6-27B-DFlash"}
    assert found["engine"]["settings"]["disable_radix_cache"] is True


def test_sglangs_eagle_without_a_draft_model_runs_the_targets_own_heads():
    text = "sglang serve --model-path Q --speculative-algorithm EAGLE --speculative-num-steps 3 "
    assert part(text + "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4")["method"] == "mtp"
    assert part(text + "--speculative-draft-model-path E")["method"] == "eagle"


def test_sglangs_trees_are_as_deep_as_their_steps():
    text = "sglang serve --model-path Q --speculative-algorithm EAGLE3 --speculative-draft-model-path E "
    found = part(text + "--speculative-num-steps 5 --speculative-eagle-topk 4 --speculative-num-draft-tokens 32")
    assert found["speculation"] == {"num_speculative_tokens": 5}


def test_a_llama_server_command():
    found = part(LLAMA)
    assert (found["method"], found["target"], found["drafter"]) == ("dflash", {"name": "T.gguf"}, {"name": "D.gguf"})
    assert found["speculation"] == {"num_speculative_tokens": 7}
    assert found["engine"]["settings"]["cache_type_k"] == "q8_0"


def test_llama_server_drafts_three_tokens_where_nothing_is_said():
    assert part("llama-server -m T.gguf -md D.gguf --spec-type draft-mtp")["speculation"] == {
        "num_speculative_tokens": 3
    }


def test_a_container_tells_the_version_by_its_tag():
    text = "docker run --gpus all --rm vllm/vllm-openai:v0.20.1 --model Q/X --speculative-config.method mtp"
    found = part(text + " --speculative-config.num_speculative_tokens 3")
    assert found["engine"]["version"] == "0.20.1"
    assert (found["method"], found["speculation"]) == ("mtp", {"num_speculative_tokens": 3})
    assert found["target"] == {"name": "Q/X"}


@pytest.mark.parametrize(
    "text",
    [
        '{"method": "mtp", "num_speculative_tokens": 3}',
        "{'method': 'mtp', 'num_speculative_tokens': 3}",
        "{method: mtp, num_speculative_tokens: 3}",
        "{method:mtp,num_speculative_tokens:3}",
    ],
)
def test_json_survives_what_shells_and_pastes_do_to_its_quotes(text):
    assert as_json(text) == {"method": "mtp", "num_speculative_tokens": 3}


@pytest.mark.parametrize(
    "text", ["", "vllm serve 'Qwen", "{", "[1, 2", "-- - ---", "vllm serve --speculative-config '{'"]
)
def test_what_is_cut_off_gives_what_is_there(text):
    launch = read_command(text)
    adapter = adapter_of_command(launch)
    assert adapter is None or isinstance(adapter.command(launch), dict)


@given(st.text(alphabet=st.sampled_from("-= '\"{}[]:,\\\n$ABCvllmserve0189."), max_size=80))
def test_no_command_breaks_an_adapter(text):
    launch = read_command(text)
    for adapter in ADAPTERS.values():
        assert isinstance(adapter.command(launch), dict)
