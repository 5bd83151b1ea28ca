"""``outrider demo``: its prompts, and the whole of it over a tiny model and over the real one."""

import pytest
from dflash.drafter_files import write_drafter

from outrider.commands import demo


def test_the_prompts_are_of_four_kinds_and_fit_a_small_screen():
    rows = demo.demo_rows()
    assert [row.category for row in rows] == ["edit", "summary", "question", "list"]
    assert demo.SHOWN in {row.category for row in rows}


def test_the_demo_says_what_was_gained_and_what_it_cost(run, tmp_path, monkeypatch):
    from tiny_model import write_tiny_model

    folder = write_tiny_model(tmp_path / "tiny", max_position_embeddings=2048)
    drafter = write_drafter(tmp_path / "drafter", max_position_embeddings=2048)
    monkeypatch.setattr(demo, "MODEL", str(folder))
    monkeypatch.setattr(demo, "DRAFT_MODEL", str(drafter))
    monkeypatch.setattr(demo, "MAX_TOKENS", 8)
    seen = run("demo")
    assert seen.code == 0
    for part in ("Gained:", "Cost:", "Next", "outrider compare", "equal", *demo.DRAFTERS):
        assert part in seen.out


@pytest.mark.model
def test_the_demo_decodes_the_real_model(run):
    seen = run("demo")
    assert seen.code == 0
    assert "the same texts, token for token," in seen.out
