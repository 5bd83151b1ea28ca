"""What holds for the whole repository: tables match folders, nothing heavy at import, files stay small."""

import subprocess
import sys
from pathlib import Path

import outrider
from outrider.registry import DRAFTERS, FAMILIES, resolve

SOURCE = Path(outrider.__file__).parent
HELPERS = {"base", "confidence", "suffix"}  # parts of a method or family, not one of their own


def modules(folder: str) -> set[str]:
    found = {path.stem for path in (SOURCE / folder).glob("*.py")}
    return found - {"__init__"} - HELPERS


def test_every_family_has_a_file_and_a_line() -> None:
    assert modules("models/families") == set(FAMILIES)


def test_every_drafter_has_a_file_and_a_line() -> None:
    assert {name: place.partition(":")[0] for name, place in DRAFTERS.items()} == {
        name: f"outrider.drafters.{name}" for name in DRAFTERS
    }


def test_every_drafter_carries_the_name_of_its_line() -> None:
    assert {resolve("drafter", DRAFTERS, name).name for name in DRAFTERS} == set(DRAFTERS)


def test_every_drafter_has_a_section_in_the_docs() -> None:
    page = (SOURCE.parents[1] / "docs" / "drafters.md").read_text()
    assert [name for name in DRAFTERS if f"## `{name}`" not in page] == []


def test_every_public_name_resolves() -> None:
    assert [name for name in outrider.__all__ if not hasattr(outrider, name)] == []


def test_the_public_function_load_survives_the_import_of_its_module() -> None:
    import outrider.runner

    assert outrider.load is outrider.runner.load


def test_no_file_is_longer_than_400_lines() -> None:
    sizes = {path: len(path.read_text().splitlines()) for path in SOURCE.rglob("*.py")}
    assert {str(path): size for path, size in sizes.items() if size > 400} == {}


def test_importing_the_package_and_the_command_line_loads_nothing_heavy() -> None:
    heavy = ["torch", "numpy", "pydantic", "huggingface_hub", "gguf", "tokenizers", "transformers"]
    code = f"import sys, outrider, outrider.cli; print([m for m in {heavy} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_halves_without_torch_import_without_torch() -> None:
    outside = [
        "acceptance", "bench.run", "bench.render", "checkpoint.gguf", "checkpoint.hub", "engine.params",
        "engine.scheduler", "models.families.llama", "models.loading", "provenance", "results", "text.chat",
    ]  # fmt: skip
    names = ", ".join(f"outrider.{name}" for name in outside)
    code = f"import sys\nsys.modules['torch'] = None\nimport {names}"
    subprocess.run([sys.executable, "-c", code], check=True)
