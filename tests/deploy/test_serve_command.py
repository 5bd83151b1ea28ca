"""``outrider serve`` as a user runs it: a real process of ours over a real process that mimics an engine."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time

import pytest
from command_line import run_cli
from deploy.environment import free_port, is_alive, worker_of
from dflash.drafter_files import write_drafter
from tiny_model import write_tiny_model

from outrider.doctor.web import get_json


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pair")
    plain = {"attention_bias": False, "layer_types": ["full_attention"] * 3, "sliding_window": None}
    return str(write_tiny_model(folder / "target")), str(write_drafter(folder / "drafter", **plain))


def printed(capsys, *words):
    seen = run_cli(capsys, "serve", "--print", *words)
    assert seen.code == 0, seen.err
    return seen.out, seen.err


def test_method_and_length_come_from_the_drafters_files(capsys, pair):
    target, drafter = pair
    out, _ = printed(capsys, "--engine", "vllm", target, "--drafter", drafter)
    words = shlex.split(out)
    assert words[:3] == ["vllm", "serve", target]
    config = json.loads(words[words.index("--speculative-config") + 1])
    assert config == {"method": "dflash", "model": drafter, "num_speculative_tokens": 5}


def test_llama_cpp_gets_the_drafter_as_a_file_that_is_written_once(capsys, pair, tmp_path, monkeypatch):
    monkeypatch.setenv("OUTRIDER_CACHE", str(tmp_path))
    target, drafter = pair
    seen = run_cli(capsys, "serve", "--engine", "llama.cpp", target, "--drafter", drafter, "--print")
    assert f"the target is {target}" in seen.check_one_line_error()
    (file,) = (tmp_path / "gguf").glob("*/*.gguf")
    before = file.stat().st_mtime_ns
    out, err = printed(capsys, "--engine", "llama.cpp", target, "--drafter", drafter, "--anyway")
    assert f"-md {file} --spec-type draft-dflash --spec-draft-n-max 5" in out
    assert "warning: llama.cpp reads GGUF files" in err
    assert file.stat().st_mtime_ns == before


def test_words_after_two_dashes_and_parallelism_go_through(capsys, pair):
    out, _ = printed(
        capsys, "--engine", "sglang", pair[0], "--method", "ngram", "--draft-length", 4, "--tensor", 8,
        "--hosts", "a,b", "--", "--mem-fraction-static", "0.8",
    )  # fmt: skip
    here, there = out.splitlines()[0], out.splitlines()[2]
    assert "--speculative-num-draft-tokens 4 --tp-size 8" in here
    assert "--mem-fraction-static 0.8" in here
    assert here.replace("--node-rank 0", "--node-rank 1") == there


def test_ray_is_typed_first(capsys, pair):
    out, _ = printed(capsys, "--engine", "vllm", pair[0], "--hosts", "a,b", "--ray", "--pipeline", 2)
    assert out.splitlines()[0] == "ray start --head --port=6379"
    assert "# on b\nray start --address=a:6379" in out


BAD = [
    ([], "--print is for engines of others"),
    (["--engine", "vlm"], "Did you mean 'vllm'"),
    (["--engine", "outrider"], "--print is for engines of others"),
    (["--engine", "vllm", "--method", "dflsh"], "Did you mean 'dflash'"),
    (["--engine", "vllm", "--method", "dflash"], "needs a draft model"),
    (["--engine", "vllm", "--method", "mtp", "--drafter", "D"], "takes no draft model"),
    (["--engine", "vllm", "--draft-length", "3"], "give --method, or --drafter"),
    (["--engine", "vllm", "--tensor", "2", "--hosts", "a", "--rank", "3"], "expected one of 0 to 0"),
    (["--engine", "sglang", "--ray", "--hosts", "a,b"], "--dist-init-addr"),
    (["--engine", "vllm", "--method", "ddtree", "--drafter", "org/D", "--draft-length", "9"], "no version that was"),
]


@pytest.mark.parametrize(("words", "said"), BAD)
def test_what_cannot_be_started_is_one_line(capsys, pair, words, said):
    assert said in run_cli(capsys, "serve", pair[0], *words, "--print").check_one_line_error()


def test_a_method_that_this_version_lacks_names_the_version_that_has_it(capsys, pair, engine_python, monkeypatch):
    monkeypatch.setenv("SIMULATED_VERSION", "0.19.0")
    seen = run_cli(
        capsys, "serve", "--engine", "vllm", "--python", engine_python, pair[0], "--drafter", pair[1], "--print"
    )
    line = seen.check_one_line_error()
    assert "vLLM 0.19.0 does not offer dflash; 0.20.0 and later do. Until then: --method mtp" in line


def test_a_version_that_runs_the_drafter_otherwise_is_warned_of(capsys, pair, engine_python, monkeypatch):
    monkeypatch.setenv("SIMULATED_VERSION", "0.21.0")
    _, err = printed(capsys, "--engine", "vllm", "--python", engine_python, pair[0], "--drafter", pair[1])
    assert "warning: vLLM 0.21.0; the drafter needs 0.22 or later; before, it taps one block too early." in err
    assert "known defect taps-one-early" in err


def test_a_drafter_of_another_target_is_refused(capsys, pair, tmp_path):
    other = write_tiny_model(tmp_path / "other", hidden_size=64)
    seen = run_cli(capsys, "serve", "--engine", "vllm", other, "--drafter", pair[1], "--print")
    assert "Not started:" in seen.check_one_line_error()


def served(engine_python, pair, log, *more, modes=""):
    port = free_port()
    words = ["serve", "--engine", "vllm", "--python", engine_python, pair[0], "--drafter", pair[1], "--port", port]
    environment = os.environ | {"SIMULATED": modes}
    process = subprocess.Popen(
        [sys.executable, "-m", "outrider", *map(str, [*words, "--log", log, "--every", 0.2, *more])],
        stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    return process, f"http://127.0.0.1:{port}"


def until(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError


def test_it_starts_shows_and_stops_by_ctrl_c_with_nothing_left(engine_python, pair, tmp_path):
    log, out = tmp_path / "log", tmp_path / "series.jsonl"
    process, url = served(engine_python, pair, log, "--out", out)
    until(lambda: out.exists() and out.read_text())
    get_json(f"{url}/v1/completions", seconds=10, body={"prompt": "a", "max_tokens": 80})
    until(lambda: '"acceptance_length"' in out.read_text())
    worker = worker_of(log)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "vLLM 0.32.0 answers at" in err
    assert "length" in err
    until(lambda: not is_alive(worker))


def test_a_host_beside_the_head_is_kept_and_not_waited_for(engine_python, pair, tmp_path):
    more = ("--hosts", "10.0.0.1,10.0.0.2", "--rank", 1, "--for", 1)
    process, _ = served(engine_python, pair, tmp_path / "log", *more, modes="hangs")
    _, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "runs beside the head" in err
    assert "--node-rank 1" in err
    assert "--headless" in err
    assert "on 10.0.0.1:" in err
    until(lambda: not is_alive(worker_of(tmp_path / "log")))


def test_a_server_that_dies_while_it_serves_is_told_and_what_was_measured_is_kept(engine_python, pair, tmp_path):
    out = tmp_path / "series.jsonl"
    process, url = served(engine_python, pair, tmp_path / "log", "--out", out, modes="dies-later")
    until(lambda: out.exists() and out.read_text())
    for number in range(3):
        get_json(f"{url}/v1/completions", seconds=10, body={"prompt": f"{number}", "max_tokens": 60})
    until(lambda: '"acceptance_length"' in out.read_text())
    with pytest.raises(Exception, match=r"expected an answer|Cannot reach"):
        get_json(f"{url}/v1/completions", seconds=10, body={"prompt": "x", "max_tokens": 9})
    _, err = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "ended with exit code 3 while serving. It said: RuntimeError: CUDA error: an illegal memory access" in err
    assert len(out.read_text().splitlines()) > 1


def test_a_port_that_is_taken_is_refused_before_anything_starts(engine_python, pair, tmp_path, simulate):
    _, url = simulate()
    port = url.rpartition(":")[2]
    until(
        lambda: (
            get_json(f"{url}/v1/models", seconds=5)
            if (tmp_path / "server-0.log").read_text().endswith("complete.\n")
            else None
        )
    )
    words = ["serve", "--engine", "vllm", "--python", engine_python, pair[0], "--port", port]
    done = subprocess.run(
        [sys.executable, "-m", "outrider", *map(str, words)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "listens at" in done.stderr
