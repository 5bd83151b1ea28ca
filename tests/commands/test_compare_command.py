"""``outrider compare``: rows in, a table or the record out, and its exit code."""

import json
import re

import pytest
from dflash.drafter_files import write_drafter
from tiny_model import write_tiny_model

from outrider import differences
from outrider.commands.prompts_file import Row, read_rows
from outrider.engine.tree import Proposal
from outrider.errors import UsageError
from outrider.results import Comparison
from outrider.runner import load

FAST = ("--ignore-eos", "--max-tokens", "16")


@pytest.fixture
def prompts(tmp_path):
    path = tmp_path / "prompts.jsonl"
    rows = [{"turns": ["abc abc abc", "and then?"]}, {"prompt": "the end of the"}, {"prompt": "in the inn"}]
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n\n")
    return path


def test_json_is_the_comparison_with_plain_decoding_first(run, tiny, prompts):
    seen = run("compare", tiny, "--prompts", prompts, "--json", *FAST)
    record = Comparison.model_validate_json(seen.out)
    assert seen.code == 0
    assert [method.drafter for method in record.methods] == ["none", "ngram"]
    assert [method.tokens for method in record.methods] == [48, 48]
    assert all(method.texts_equal for method in record.methods)
    assert record.methods[0].ratio == 1.0
    assert record.methods[1].ratio_low <= record.methods[1].ratio <= record.methods[1].ratio_high


def test_the_table_says_what_a_person_wants_to_know(run, tiny, prompts):
    seen = run("compare", tiny, "--prompts", prompts, *FAST)
    assert re.search(r"ngram .*\d\.\d\d .*equal", seen.out)
    assert "tokens/s" in seen.out


def test_limit_and_arguments_choose_the_prompts(run, tiny, prompts):
    def tokens(*words):
        return json.loads(run("compare", tiny, *words, "--json", *FAST).out)["methods"][0]["tokens"]

    assert tokens("--prompts", prompts, "--limit", "2") == 32
    assert tokens("one", "two", "three", "--prompts", prompts) == 96


def test_draws_with_a_seed_are_equal_with_and_without_drafts(run, tiny, prompts):
    words = ("--temperature", "0.9", "--top-p", "0.95", "--seed", "5", "--json")
    seen = run("compare", tiny, "--prompts", prompts, *words, *FAST)
    assert json.loads(seen.out)["methods"][1]["texts_equal"] is True


def test_a_real_difference_is_exit_code_1_and_a_loud_line(run, tiny, prompts, break_verification):
    seen = run("compare", tiny, "--prompts", prompts, *FAST)
    assert seen.code == 1
    assert "REAL DIFFERENCE: ngram, prompt 1" in seen.err
    assert "DIFFER" in seen.out
    assert json.loads(run("compare", tiny, "--prompts", prompts, "--json", *FAST).out)["methods"][1]["near_ties"] == []


def test_a_near_tie_is_told_quietly(run, tiny, prompts, break_verification, monkeypatch):
    monkeypatch.setattr(differences, "NEAR_TIE", 100.0)
    seen = run("compare", tiny, "--prompts", prompts, "--json", *FAST)
    assert seen.code == 0
    method = json.loads(seen.out)["methods"][1]
    assert method["texts_equal"] is False
    assert method["near_ties"][0]["margin"] < 100
    assert "near-tie: ngram, prompt 1" in seen.err


@pytest.fixture
def break_verification(monkeypatch):
    """Make every drafted token pass, whatever the target says."""
    from outrider.drafters.ngram import NgramDrafter
    from outrider.engine import verify

    follow = verify.follow

    def believe(tree, decisions_BN):
        walk = follow(tree, decisions_BN)
        if tree.width > 1:
            walk.path_BN[:, 1] = 1
            walk.accepted_B[:] = 1
        return walk

    def propose(self, slots, costs):
        return [Proposal() if s is None or s.max_depth < 1 else Proposal.chain([7]) for s in slots]

    monkeypatch.setattr(NgramDrafter, "propose", propose)
    monkeypatch.setattr(verify, "follow", believe)


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("not json", "not valid JSON"),
        ("[1]", "found a list"),
        ('{"text": "x"}', "found the keys text"),
        ('{"turns": []}', '"turns" with a list'),
        ('{"prompt": 5}', '"prompt" with a text'),
    ],
)
def test_a_bad_row_is_named_by_its_line(run, tiny, tmp_path, line, part):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"prompt": "fine"}\n\n' + line + "\n")
    error = run("compare", tiny, "--prompts", path).check_one_line_error()
    assert "rows.jsonl, line 3" in error
    assert part in error


def test_a_bad_row_beyond_the_limit_does_not_matter(run, tiny, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"prompt": "fine"}\nnot json\n')
    words = ("compare", tiny, "first", "--prompts", path, "--max-tokens", 2, "--json")
    assert "line 2" in run(*words, "--limit", 3).check_one_line_error()
    assert [run(*words, "--limit", limit).code for limit in (1, 2)] == [0, 0]


def test_a_limit_of_no_prompts_is_refused(run, tiny):
    assert "--limit" in run("compare", tiny, "first", "--limit", 0).check_one_line_error()


def test_rows_keep_their_category(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"prompt": "p", "category": "rag"}\n{"turns": ["t"]}\n')
    assert read_rows(path) == [Row("p", "rag"), Row("t", "")]
    assert read_rows(path, 1) == [Row("p", "rag")]


def test_a_file_without_rows_is_refused(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("\n")
    with pytest.raises(UsageError, match="holds no prompts"):
        read_rows(path)


def test_no_prompts_at_all(run, tiny):
    assert "--prompts" in run("compare", tiny).check_one_line_error()


def test_a_hybrid_target_says_the_same_with_every_drafter(run, prompts, tmp_path):
    target = write_tiny_model(tmp_path / "hybrid", "qwen3_5")
    drafter = write_drafter(tmp_path / "drafter", num_target_layers=4, target_layer_ids=[0, 2])
    words = ("--drafter", "mtp,ngram,dflash,ddtree", "--draft-model", drafter, "--draft-tokens", "2", "--json")
    seen = run("compare", target, "--prompts", prompts, *words, *FAST)
    assert (seen.code, seen.err) == (0, "")
    methods = json.loads(seen.out)["methods"]
    assert [method["drafter"] for method in methods] == ["none", "mtp", "ngram", "dflash", "ddtree"]
    assert all(method["texts_equal"] for method in methods)
    tree = run("compare", target, "--prompts", prompts, "--drafter", "mtp", "--budget", "5", "--json", *FAST)
    assert json.loads(tree.out)["methods"][1]["texts_equal"] is True


def test_heads_are_missed_by_name(run, tiny, prompts):
    seen = run("compare", tiny, "--prompts", prompts, "--drafter", "mtp", *FAST)
    assert seen.code == 2
    assert "has no multi-token prediction heads" in seen.err


def test_dummy_weights_have_heads_where_the_config_says_so(tmp_path):
    runner = load(str(write_tiny_model(tmp_path / "hybrid", "qwen3_5")), drafter="mtp", weights="dummy")
    plain = runner.with_drafter("none").generate("abc", max_tokens=8, ignore_eos=True)
    assert runner.generate("abc", max_tokens=8, ignore_eos=True).tokens == plain.tokens
