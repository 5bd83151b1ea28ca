"""How engines are started: commands that their own adapters read back, versions that offer a method, hosts."""

import shlex

import pytest

from outrider.adapters import ADAPTERS, adapter_of_command
from outrider.adapters.launch import read_command
from outrider.adapters.start import (
    STARTERS,
    Deployment,
    Draft,
    Parallel,
    meanwhile,
    offered,
    starter,
    told_missing,
)
from outrider.adapters.start.deployment import WITHOUT_MODEL
from outrider.errors import UnknownNameError, UsageError

SERVING = [name for name, one in STARTERS.items() if one.serves]
OFFERS = [(name, offer.method) for name in SERVING for offer in STARTERS[name].offers]


def command(engine, **more):
    return STARTERS[engine].command(Deployment(**({"target": "org/T"} | more)))


@pytest.mark.parametrize(("engine", "method"), OFFERS)
def test_the_adapter_of_an_engine_reads_its_command_as_it_was_meant(engine, method):
    model = None if method in WITHOUT_MODEL else "org/D.gguf"
    text = command(engine, draft=Draft(method, model, 7), max_len=2048, port=8123).text
    launch = read_command(text)
    assert adapter_of_command(launch) is ADAPTERS[engine]
    part = ADAPTERS[engine].command(launch)
    assert part["method"] == {"dflash2": "dflash"}.get(method, method)
    assert part["target"]["name"] == "org/T"
    assert part.get("drafter", {}).get("name") == model
    assert part["speculation"]["num_speculative_tokens"] == 7
    assert part["engine"]["settings"]["port"] == 8123


@pytest.mark.parametrize("engine", SERVING)
def test_what_every_engine_that_serves_must_say(engine):
    one = starter(engine)
    assert one.title
    assert one.health.startswith("/")
    assert ADAPTERS[engine].programs.search(" ".join(one.program(None)))
    plain = command(engine, metrics=True).words
    assert not any("spec" in word for word in plain)
    assert "org/T" in plain


def test_an_unknown_engine_names_the_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean 'vllm'"):
        starter("vlm")


def test_a_method_is_offered_from_its_version_on():
    offers = STARTERS["vllm"].offers
    assert offered(offers, "dflash", "0.20.1").spelled == "dflash"
    assert offered(offers, "dflash", "0.19.0") is None
    assert offered(offers, "dflash2", "0.28.0+cpu").spelled == "dflash"
    assert offered(offers, "dflash2", None) is not None
    assert offered(offers, "dflash2", "a build of mine") is not None
    assert offered(offers, "ddtree", "0.33.0") is None


def test_where_a_method_is_missing_it_is_said_where_it_is_and_what_to_use_until_then():
    offers = STARTERS["vllm"].offers
    told = told_missing("vLLM", offers, "dflash2", "0.26.0")
    assert told.startswith("vLLM 0.26.0 does not offer dflash2; 0.28.0 and later do.")
    assert told.endswith("Until then: --method dflash or mtp or eagle3 or ngram.")
    assert "no version that was looked at does" in told_missing("vLLM", offers, "ddtree", "0.33.0")
    assert [one.method for one in meanwhile(offers, "dflash", "0.19.0")] == ["mtp", "eagle3", "draft_model", "ngram"]


def test_an_environment_that_is_named_is_the_one_that_runs(tmp_path):
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.touch()
    assert STARTERS["vllm"].program(python) == (str(python), "-m", "vllm.entrypoints.cli.main", "serve")
    (python.parent / "vllm").touch()
    assert STARTERS["vllm"].program(python) == (str(python.parent / "vllm"), "serve")
    script = STARTERS["llama.cpp"].program(python)[1]
    assert script.endswith("through_xllamacpp.py")


def test_parallelism_quantisation_and_cache_type_go_through():
    many = {"parallel": Parallel(tensor=4, pipeline=2, data=2), "quantisation": "fp8", "kv_dtype": "fp8"}
    vllm = command("vllm", **many).text
    assert "--tensor-parallel-size 4 --pipeline-parallel-size 2 --data-parallel-size 2" in vllm
    assert "--quantization fp8 --kv-cache-dtype fp8" in vllm
    assert (
        "--tp-size 4 --pp-size 2 --dp-size 2 --quantization fp8 --kv-cache-dtype fp8" in command("sglang", **many).text
    )
    llama = command("llama.cpp", parallel=Parallel(tensor=2), kv_dtype="q8_0").text
    assert "--split-mode row --tensor-split 1,1 -ctk q8_0 -ctv q8_0" in llama


def test_the_second_runner_of_vllm_is_asked_for_where_a_drafter_needs_it():
    assert command("vllm", second_runner=True).text.startswith("VLLM_USE_V2_MODEL_RUNNER=1 vllm serve")


def test_hybrid_targets_keep_their_states_on_sglang():
    flags = command("sglang", draft=Draft("dflash", "D", 15), hybrid=True).text
    assert "--mamba-radix-cache-strategy extra_buffer" in flags
    assert "mamba" not in command("sglang", draft=Draft("mtp", None, 3), hybrid=True).text


def test_hosts_of_vllm_through_ray():
    found = command("vllm", parallel=Parallel(tensor=8, pipeline=2, hosts=("a", "b"), form="ray"))
    assert found.first == ("ray start --head --port=6379",)
    assert found.elsewhere == {"b": ("ray start --address=a:6379",)}
    assert found.words[-2:] == ("--distributed-executor-backend", "ray")
    with pytest.raises(UsageError, match="ray start --address=a:6379"):
        command("vllm", parallel=Parallel(hosts=("a", "b"), rank=1, form="ray"))


def test_hosts_of_vllm_by_its_own_rendezvous():
    found = command("vllm", parallel=Parallel(tensor=16, hosts=("a", "b")))
    assert found.text.endswith("--nnodes 2 --node-rank 0 --master-addr a")
    (there,) = found.elsewhere["b"]
    assert there.endswith("--nnodes 2 --node-rank 1 --master-addr a --headless")


def test_copies_of_vllm_over_hosts():
    found = command("vllm", parallel=Parallel(data=4, hosts=("a", "b"), rank=1))
    assert shlex.split(found.text)[-9:] == [
        "--data-parallel-size-local", "2", "--data-parallel-address", "a", "--data-parallel-rpc-port", "13345",
        "--headless", "--data-parallel-start-rank", "2",
    ]  # fmt: skip
    with pytest.raises(UsageError, match="evenly over 2 hosts"):
        command("vllm", parallel=Parallel(data=3, hosts=("a", "b")))


def test_hosts_of_sglang_and_of_llama_cpp():
    found = command("sglang", parallel=Parallel(tensor=16, hosts=("a", "b"), rank=1))
    assert found.text.endswith("--nnodes 2 --node-rank 1 --dist-init-addr a:5000")
    assert list(found.elsewhere) == ["a"]
    found = command("llama.cpp", parallel=Parallel(hosts=("a", "b", "c")))
    assert "--rpc b:50052,c:50052" in found.text
    assert found.elsewhere["c"] == ("rpc-server -H 0.0.0.0 -p 50052",)


REFUSED = [
    ("llama.cpp", {"quantisation": "fp8"}, "that of the GGUF file"),
    ("llama.cpp", {"parallel": Parallel(data=2)}, "one copy of the model"),
    ("llama.cpp", {"parallel": Parallel(tensor=2, pipeline=2)}, "not both"),
    ("llama.cpp", {"parallel": Parallel(hosts=("a", "b"), rank=1)}, "rpc-server"),
    ("sglang", {"draft": Draft("dflash", "D", 15), "parallel": Parallel(pipeline=2)}, "without pipeline stages"),
    ("sglang", {"parallel": Parallel(hosts=("a", "b"), form="ray")}, "--dist-init-addr"),
    ("outrider", {"parallel": Parallel(tensor=2)}, "one device"),
]


@pytest.mark.parametrize(("engine", "more", "words"), REFUSED)
def test_what_an_engine_cannot_do_is_refused_with_the_reason(engine, more, words):
    with pytest.raises(UsageError, match=words):
        command(engine, **more)


def test_parallelism_that_makes_no_sense_is_refused():
    with pytest.raises(UsageError, match="counted from 1; found tensor 0"):
        Parallel(tensor=0)
    with pytest.raises(UsageError, match="expected one of 0 to 1"):
        Parallel(hosts=("a", "b"), rank=2)


def test_the_embedded_engine_drafts_trees_and_serves_nothing_yet():
    text = command("outrider", draft=Draft("ddtree", "org/D", 15)).text
    assert text == "outrider generate org/T --drafter ddtree --draft-model org/D"
    assert not STARTERS["outrider"].serves
