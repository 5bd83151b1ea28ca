"""``outrider models``: list, pull, show; and that none of them needs torch."""

import json
import subprocess
import sys

import pytest
import torch
from tiny_model import write_tiny_model

from outrider.checkpoint import package
from outrider.checkpoint.known import KNOWN
from outrider.checkpoint.shipped import shipped_folder
from outrider.commands.models import size_text
from outrider.commands.opening import is_here


def test_show_tells_the_shape_and_that_tensors_agree(run, tiny):
    seen = run("models", "show", tiny)
    assert seen.code == 0
    for part in ("llama", "4 of 8, keys and values 2", "512 tokens", "agree with the config", "theta 10000"):
        assert part in seen.out


def test_show_counts_parameters_and_bytes_as_the_files_do(run, tmp_path):
    folder = write_tiny_model(tmp_path / "half", "qwen3", dtype=torch.bfloat16)
    facts = json.loads(run("models", "show", folder, "--json").out)
    assert facts["stored"] == {"BF16": 2 * facts["parameters"]}
    by_dtype = {need["dtype"]: need for need in facts["memory"]}
    assert by_dtype["float32"]["weights"] == 4 * facts["parameters"]
    # Keys and values, 2 layers, 2 heads of 8, 2 bytes, 1000 tokens.
    assert by_dtype["float16"]["kv_per_1000_tokens"] == 2 * 2 * 2 * 8 * 2 * 1000
    assert (facts["family"], facts["tensors_agree"], facts["chat_template"]) == ("qwen3", True, True)


def test_show_counts_the_layers_with_windows(run, tmp_path):
    folder = write_tiny_model(
        tmp_path / "windows",
        "qwen3",
        sliding_window=64,
        use_sliding_window=True,
        layer_types=["full_attention", "sliding_attention"],
    )
    assert json.loads(run("models", "show", folder, "--json").out)["windows"] == {"full": 1, "64": 1}


def test_show_tells_a_hybrids_states_and_heads(run, tmp_path):
    folder = write_tiny_model(tmp_path / "hybrid", "qwen3_5")
    facts = json.loads(run("models", "show", folder, "--json").out)
    assert (facts["family"], facts["windows"], facts["problems"]) == ("qwen3_5", {"full": 1}, [])
    # 3 layers of 6 heads, 8 by 4, in 4 bytes; keys and values of one layer alone.
    assert (facts["recurrent_layers"], facts["state"], facts["mtp_layers"]) == (3, 3 * 6 * 8 * 4 * 4, 1)
    assert facts["memory"][0]["kv_per_1000_tokens"] == 2 * 2 * 8 * 4 * 1000
    shown = run("models", "show", folder).out
    assert "3 layers, whose states take 2.3 kB a text" in shown
    assert "1 layer, for --drafter mtp" in shown


def test_show_tells_what_contradicts_and_still_shows_the_rest(run, tmp_path):
    folder = write_tiny_model(tmp_path / "wrong")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"intermediate_size": 56}))
    facts = json.loads(run("models", "show", folder, "--json").out)
    assert facts["tensors_agree"] is False
    assert "the config contradicts its tensors" in facts["problems"][0]
    assert "CONTRADICT" in run("models", "show", folder).out


def test_list_names_the_known_models_here_or_not(run, monkeypatch, tmp_path):
    absent = json.loads(run("models", "list", "--json").out)["models"]
    assert [(m["name"], m["known"], m["cached"]) for m in absent] == [
        ("smollm2-135m", True, False),
        ("smollm2-135m-dflash", True, True),
    ]
    copy = tmp_path / "copy.gguf"
    copy.write_bytes(b"GGUF")
    monkeypatch.setattr(package, "cached_file", lambda wanted: copy)
    here = json.loads(run("models", "list", "--json").out)["models"]
    assert (here[0]["name"], here[0]["cached"], here[0]["path"]) == ("smollm2-135m", True, str(copy))
    assert [m["name"] for m in here[1:]] == ["smollm2-135m-dflash"]
    assert here[0]["size_bytes"] == KNOWN["smollm2-135m"].package.size
    assert "smollm2-135m" in run("models", "list").out


def test_a_known_model_in_the_hubs_cache_counts_as_here(run, tmp_path):
    assert not is_here("smollm2-135m")
    repo = tmp_path / "hub-cache" / f"models--{KNOWN['smollm2-135m'].hub.replace('/', '--')}"
    snapshot = repo / "snapshots" / ("a" * 40)
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    assert is_here("smollm2-135m")
    listed = json.loads(run("models", "list", "--json").out)["models"]
    assert [(m["name"], m["known"], m["cached"], m["path"]) for m in listed] == [
        ("smollm2-135m", True, True, str(snapshot)),
        ("smollm2-135m-dflash", True, True, str(shipped_folder("smollm2-135m-dflash"))),
        (KNOWN["smollm2-135m"].hub, False, True, str(snapshot)),
    ]


@pytest.mark.parametrize(
    ("package", "words"),
    [
        ("tokenizers", ["models", "show", "MODEL"]),
        ("tokenizers", ["generate", "MODEL", "hi"]),
        ("torch", ["generate", "MODEL", "hi"]),
        ("torch", ["compare", "MODEL", "hi"]),
        ("jinja2", ["generate", "MODEL", "hi", "--chat"]),
    ],
)
def test_a_package_that_is_missing_is_one_line_that_names_the_extra(tiny, package, words):
    words = [str(tiny) if word == "MODEL" else word for word in words]
    code = f"import sys; sys.modules[{package!r}] = None; from outrider.cli import run; sys.exit(run({words!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"error: This command needs the package {package}, which is not installed: pip install 'outrider[engine]'.\n"
    )


def test_pull_prints_where_the_model_is(run, tiny):
    seen = run("models", "pull", tiny)
    assert (seen.code, seen.out) == (0, f"{tiny}\n")


def test_no_models_command_imports_torch(tiny):
    code = (
        "import sys; from outrider.cli import run;"
        f"assert run(['models', 'show', {str(tiny)!r}]) == 0; assert run(['models', 'list']) == 0;"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize(("size", "text"), [(12, "12 B"), (1200, "1.2 kB"), (98_362_432, "98.4 MB"), (2e9, "2.00 GB")])
def test_sizes_are_in_decimal_units(size, text):
    assert size_text(size) == text
