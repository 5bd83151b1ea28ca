"""Evidence put together: files that are wrong in part, sources that contradict each other, models by their headers."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from outrider.checkpoint import hub
from outrider.doctor.evidence import Evidence
from outrider.doctor.examine import examine
from outrider.doctor.intake import gather
from outrider.doctor.intake.file import checked, read_file
from outrider.errors import UsageError

SHIPPED = "smollm2-135m-dflash"
KEYS = [*Evidence.model_fields, "schema", "counters", "engine", "series", "drafter"]


@pytest.fixture
def write(tmp_path):
    def put(content, name="evidence.yaml"):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return path

    return put


def test_an_evidence_file_is_read_whole(write):
    found = gather(file=write({"schema": 1, "method": "mtp", "counters": {"rounds": 10, "accepted": 12}}))
    assert (found.evidence.method, found.evidence.counters.rounds) == ("mtp", 10)
    assert not found.warnings


def test_values_of_the_wrong_kind_are_left_out_and_told(write):
    part = {"schema": 1, "method": "telepathy", "counters": {"rounds": "many", "accepted": 12}, "series": 7}
    found = gather(file=write(part))
    assert found.evidence.method is None
    assert (found.evidence.counters.rounds, found.evidence.counters.accepted) == (None, 12)
    told = " ".join(found.warnings)
    assert all(word in told for word in ("method", "counters.rounds", "series", "left out"))


def test_keys_that_mean_nothing_are_told_and_kept(write):
    found = gather(file=write({"schema": 1, "engin": {"name": "vllm"}, "counters": {"round": 3}}))
    assert "engin, counters.round" in found.warnings[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected keys"),
        ("- 1\n- 2\n", "found list"),
        ("method: mtp\n", "no schema"),
        ("schema: 2\n", "schema 2"),
        ("schema: [1\n", "no YAML or JSON"),
        ("a: &a [*a, *a]\n", "schema"),
        ("\x00\x01", "no YAML or JSON"),
    ],
)
def test_what_is_no_evidence_file_is_refused_in_a_line(write, text, said):
    with pytest.raises(UsageError, match=said):
        read_file(write(text))


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"nowhere\.yaml"):
        gather(file=tmp_path / "nowhere.yaml")


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
)


@given(st.dictionaries(st.sampled_from(KEYS), VALUES | st.dictionaries(st.sampled_from(
    ["name", "version", "config", "tensors", "rounds", "accepted_per_position", "acceptance_rate", "when", "settings",
     "num_speculative_tokens", "mean_acceptance_length", "training", "temperature", "fork"]
), VALUES, max_size=5), max_size=6))  # fmt: skip
def test_no_part_breaks_the_reader_nor_the_rules(part):
    evidence, warnings = checked(part | {"schema": 1})
    assert examine(evidence, warnings).summary


def test_the_file_stands_before_what_is_measured_and_contradictions_are_told(write):
    file = write({"schema": 1, "engine": {"name": "vllm"}, "speculation": {"num_speculative_tokens": 7}})
    command = 'vllm serve T --speculative-config \'{"method": "dflash", "model": "D", "num_speculative_tokens": 3}\''
    found = gather(file=file, commands=[command])
    assert found.evidence.speculation.num_speculative_tokens == 7
    assert found.evidence.drafter.name == "D"
    assert "num_speculative_tokens is 3 here and 7 elsewhere" in found.warnings[0]


def test_counters_of_one_source_are_not_mixed_with_those_of_another(write):
    file = write({"schema": 1, "counters": {"mean_acceptance_length": 2.0}})
    log = write(
        "SpecDecoding metrics: Mean acceptance length: 3.00, Accepted: 10 tokens, Drafted: 30 tokens\n", "a.log"
    )
    counters = gather(file=file, logs=[log]).evidence.counters
    assert (counters.mean_acceptance_length, counters.accepted) == (2.0, None)


def test_a_command_of_no_known_engine_is_kept_and_told():
    found = gather(commands=["mlx_lm.server --model X"])
    assert found.evidence.engine.command == "mlx_lm.server --model X"
    assert "no known engine" in found.warnings[0]


@pytest.mark.parametrize("text", ["", "hello\n", "\x00\x00\xff"])
def test_a_log_that_says_nothing_is_told(write, text):
    assert gather(logs=[write(text, "a.log")]).warnings


def test_a_drafter_is_read_by_its_headers():
    found = gather(drafter=SHIPPED)
    drafter = found.evidence.drafter
    assert found.evidence.method == "dflash"
    assert drafter.config["dflash_config"]["target_layer_ids"] == [1, 8, 14, 20, 27]
    assert drafter.tensors["fc.weight"] == [576, 2880]


def test_a_folder_of_weights_alone_tells_its_tensors(tmp_path):
    save_file({"fc.weight": np.zeros((4, 8), np.float32)}, tmp_path / "model.safetensors")
    found = gather(drafter=str(tmp_path))
    assert found.evidence.drafter.tensors == {"fc.weight": [4, 8]}
    assert "outrider repair" in found.warnings[0]


def test_what_keeps_a_drafter_from_running_is_told(tmp_path):
    save_file({"fc.weight": np.zeros((4, 8), np.float32)}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["DFlashDraftModel"], "block_size": 8}))
    found = gather(drafter=str(tmp_path))
    assert found.evidence.notes.startswith("The drafter's files:")
    assert found.warnings


def test_a_target_s_mtp_heads_are_looked_for_among_its_tensors(tmp_path):
    save_file({"model.norm.weight": np.zeros(4, np.float32)}, tmp_path / "model.safetensors")
    config = {"model_type": "qwen3", "hidden_size": 4, "num_hidden_layers": 1, "vocab_size": 8,
              "num_attention_heads": 1, "intermediate_size": 4}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    command = "vllm serve T --speculative-config.method mtp --speculative-config.num_speculative_tokens 1"
    found = gather(commands=[command], target=str(tmp_path))
    assert found.evidence.drafter.tensors == {"model.norm.weight": [4]}
    assert examine(found.evidence, found.warnings).findings[0].cause == "draft_weights_missing"


@pytest.mark.parametrize(("token", "said"), [(1, "'word'"), (2, None), (9, None)])
def test_a_mask_token_that_is_a_word_is_told(tmp_path, token, said):
    target, drafter = tmp_path / "t", tmp_path / "d"
    for folder in (target, drafter):
        folder.mkdir()
        save_file({"fc.weight": np.zeros((4, 8), np.float32)}, folder / "model.safetensors")
    tokenizer = {"model": {"vocab": {"word": 1, "<mask>": 2}}, "added_tokens": [{"id": 2, "content": "<mask>"}]}
    (target / "tokenizer.json").write_text(json.dumps(tokenizer))
    config = {"model_type": "qwen3", "hidden_size": 4, "num_hidden_layers": 1, "vocab_size": 10,
              "num_attention_heads": 1, "intermediate_size": 4}  # fmt: skip
    (target / "config.json").write_text(json.dumps(config))
    (drafter / "config.json").write_text(json.dumps({"dflash_config": {"mask_token_id": token}}))
    notes = gather(drafter=str(drafter), target=str(target)).evidence.notes or ""
    assert ("ordinary word" in notes) is (said is not None)
    assert said is None or said in notes


def test_models_on_the_hub_are_read_without_their_weights(tmp_path, monkeypatch):
    (tmp_path / "config.json").write_text('{"block_size": 16}')
    monkeypatch.setattr(hub, "fetch_headers", lambda repo: (tmp_path, {"fc.weight": (4, 8)}))
    found = gather(drafter="owner/name").evidence.drafter
    assert (found.name, found.config, found.tensors) == ("owner/name", {"block_size": 16}, {"fc.weight": [4, 8]})


def test_models_that_others_name_are_read_where_they_are_here(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "llama", "hidden_size": 4}')
    save_file({"fc.weight": np.zeros((4, 8), np.float32)}, tmp_path / "model.safetensors")
    command = f"vllm serve T --speculative-config.model {tmp_path} --speculative-config.method dflash"
    assert gather(commands=[command]).evidence.drafter.tensors == {"fc.weight": [4, 8]}


def test_a_static_look_takes_no_torch():
    code = (
        "import sys; from outrider.cli import run; run(['doctor', '--drafter', 'smollm2-135m-dflash', '--json']); "
        "print('torch' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr.strip().splitlines()[-1] == "False"
    assert json.loads(done.stdout)["schema"] == 1


def test_the_example_is_evidence_without_a_word_to_say():
    root = Path(__file__).parents[2] / "examples" / "qwen36-dflash" / "evidence.yaml"
    assert not gather(file=root).warnings
