# make demo: sets up .venv and runs the main job.  make test: sets up .venv and runs all tests.
# A stamp in .venv is renewed only when pyproject.toml or constraints.txt change.
PYTHON ?= python3
BIN := .venv/bin
INPUTS := pyproject.toml constraints.txt

.PHONY: demo test check bench engines clean
demo: .venv/engine.stamp
	$(BIN)/outrider demo

test: check
	$(BIN)/python -m pytest

check: .venv/dev.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: .venv/dev.stamp
	$(BIN)/python -m benchmarks.run

# Real servers with wrong drafter files, diagnosed: nightly. VLLM and LLAMACPP are the pythons of environments that hold them.
engines: .venv/dev.stamp
	$(if $(VLLM)$(LLAMACPP),,$(error Name an environment: make engines VLLM=ENV/bin/python LLAMACPP=ENV/bin/python))
	$(if $(VLLM),$(BIN)/python -m benchmarks.wrong_configs vllm --python $(VLLM))
	$(if $(LLAMACPP),$(BIN)/python -m benchmarks.wrong_configs llama.cpp --python $(LLAMACPP))

.venv/pip.stamp:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	touch $@

.venv/engine.stamp: .venv/pip.stamp $(INPUTS)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[engine]'
	touch $@

.venv/dev.stamp: .venv/pip.stamp $(INPUTS)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@ .venv/engine.stamp

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
