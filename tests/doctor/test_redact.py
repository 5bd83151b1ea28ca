"""What identifies people and machines goes, wherever it stands; what diagnosis needs stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.doctor.evidence import Evidence
from outrider.doctor.redact import redact, scrub
from outrider.doctor.verdict import Finding, Verdict, Way

LETTERS = "bcdfghjkmnpqrtvxyz"
names = st.text(LETTERS, min_size=5, max_size=10).map(lambda name: f"q{name}")  # words that stand nowhere else
secrets = st.text(LETTERS + LETTERS.upper() + "0123456789", min_size=24, max_size=40)
addresses = st.ip_addresses().filter(lambda found: not (found.is_loopback or found.is_unspecified)).map(str)

KEPT = "Qwen/Qwen3.6-27B"
VERSION = "0.20.1rc1.dev7+g1a2b3c4d5"


def everywhere(text):
    """Evidence and verdict that hold a text in every place for words."""
    given = Evidence.model_validate({
        "schema": 1,
        "engine": {"version": VERSION, "command": f"vllm serve {KEPT} {text}", "settings": {"note": text, text: 1}},
        "target": {"name": KEPT, "config": {"deep": [{"deeper": text}]}},
        "drafter": {"name": text, "training": text},
        "series": [{"when": {"what": text}}],
        "error": text, "log": f"INFO {text} end", "notes": f"a\n{text}\nb", "extra": {"more": text},
    })  # fmt: skip
    finding = Finding(
        code="OR1", cause="other", standing="likely", confidence=0.5, evidence=[text], against=[text], remedy=[text]
    )
    way = Way(name=text, effort="days", risk=text, command=text)
    return given, Verdict(findings=[finding], next=[text], summary=text, options=[way])


def cleaned(text):
    evidence, verdict = redact(*everywhere(text))
    found = evidence.model_dump_json(by_alias=True) + verdict.model_dump_json(by_alias=True)
    assert KEPT in found
    assert VERSION in found
    return found


@given(
    names, st.sampled_from(["/home/{}/models/x", "/Users/{}", "~{}/a", "C:\\Users\\{}\\b", "{}@gpu7", "ssh {}@b.lan"])
)
def test_users_go(name, place):
    assert name not in cleaned(place.format(name))


@given(
    names,
    st.sampled_from(["http://{}:8000/v1", "https://u:p@{}/x", "root@{}", "{}.internal", "a.{}.corp", "--host {}"]),
)
def test_hosts_go(name, place):
    assert name not in cleaned(place.format(name))


@given(names)
def test_a_user_who_shows_in_one_place_goes_everywhere(name):
    assert name not in cleaned(f"/home/{name}/x and {name} says so, {name}-laptop too")


@given(
    names,
    st.sampled_from(["/data/{}/x", "/mnt/a/{}/b/c", "../{}/x", "D:\\{}\\x", "see /srv/{}/y: broken", "'/srv/{}/z'"]),
)
def test_folders_go(name, place):
    assert name not in cleaned(place.format(name))


@given(addresses, st.sampled_from(["{}", "http://[{}]:80/", "at {}, port", "peer={}"]))
def test_addresses_go(address, place):
    assert address not in cleaned(place.format(address))


@given(
    secrets,
    st.sampled_from([
        "hf_{}", "sk-{}", "HF_TOKEN={}", "--api-key {}", '"api_key": "{}"', "Authorization: Bearer {}", "password: {}",
        "OPENAI_API_KEY={} vllm serve", "https://user:{}@github.com/x", "ghp_{}",
    ]),
)  # fmt: skip
def test_secrets_go(secret, place):
    assert secret not in cleaned(place.format(secret))


def test_a_secret_goes_by_the_name_of_its_key():
    given, verdict = everywhere("x")
    given.engine.settings["api_key"] = "short1"
    assert redact(given, verdict)[0].engine.settings["api_key"] == "<secret>"


@pytest.mark.parametrize(
    "text",
    [
        "z-lab/Qwen3.6-27B-DFlash", "0.20.1", "vllm==0.33.0", "b11434", "mask_token_id 248077", "eos_token: </s>",
        "1a2b3c4d5e6f7a8b9c0d1a2b3c4d5e6f7a8b9c0d", "model.layers.0.self_attn.q_proj.weight", "12:30:45",
        "Qwen3_5ForConditionalGeneration", "https://github.com/vllm-project/vllm/issues/40727", "POST /v1/completions",
        "http://localhost:8000", "acceptance 3.95/4.13, K/V 16/32", "torch.cuda.OutOfMemoryError: 2.5 GiB",
        "--speculative-config '{\"method\": \"dflash\", \"num_speculative_tokens\": 15}'", "Q4_K_M.gguf", "1.2/3.4",
    ],
)  # fmt: skip
def test_what_diagnosis_needs_stays(text):
    assert scrub(text) == text


def test_the_place_within_a_package_and_the_name_of_a_model_folder_stay():
    assert scrub("/opt/v/lib/python3.12/site-packages/vllm/v1/worker.py") == "<path>/vllm/v1/worker.py"
    assert scrub("/data/models/Qwen3.6-27B-DFlash") == "<path>/Qwen3.6-27B-DFlash"
    assert scrub("/home/somebody") == "<path>"


@given(st.text(max_size=80))
def test_any_text_is_survived_and_cleaning_twice_changes_nothing_more(text):
    once = scrub(text)
    assert scrub(once) == once
