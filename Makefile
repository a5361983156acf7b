# Every target prepares .venv by itself. `make PYTHON=python3.12 test` chooses the interpreter.
PYTHON ?= python3
# Names of tables, as 'make TABLES="ns ks" tables'; all that 'hycop table --names' lists if none are given.
TABLES ?=
# Files of other solvers judge models where they are there.
ifneq ($(wildcard ../shared/data),)
export HYCOP_FIXTURES ?= $(abspath ../shared/data)
endif
BIN    := .venv/bin
PIP    := python -m pip install -qq --disable-pip-version-check -c constraints.txt
CORE   := .venv/core.stamp
DEV    := .venv/dev.stamp
BENCH  := .venv/bench.stamp
# The environment of 'make test-core', and what it runs there: enough to see that nothing needs an extra by accident.
BARE   := .venv-core
EXTRAS := torch neuralop onnxruntime onnx tesseract_core dask distributed panel sphinx playwright
PARTS  := without_extras problems training storage storage_refusals weights cli cli_learn surrogate program executors transfer \
  network_primitive foreign_primitives foreign_kinds learned_primitives examples studio plot frames markup xarray cli_pictures

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-core validate bench tables pages docs screenshots clean

help:  ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/make \1|\2/p' Makefile | awk -F'|' '{printf "%-14s %s\n", $$1, $$2}'

setup: $(DEV)  ## install hycop and its development tools in .venv

demo: $(CORE)  ## train a small model, compare it with the classical schemes, draw the result in demo/
	$(BIN)/hycop demo --out demo

# Two pytest workers share the cores with Numba's threads; NUMBA_NUM_THREADS=1 make test is kinder to a busy machine.
# A file stays with one worker, so that what its tests share is trained and compiled once.
test: $(DEV)  ## style, types, layers, unit tests, doctests and short validation
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy hycop
	$(BIN)/lint-imports --no-logo
	$(BIN)/pytest -q -n 2 --dist loadfile --no-loadscope-reorder
	@echo "make test: everything passed"

test-core: $(BARE)/test.stamp  ## tests of the core in an environment without torch and the other extras
	@$(BARE)/bin/python -c "import sys; from importlib.util import find_spec; \
	  sys.exit(' '.join(['.venv-core has extras:', *found]) if (found := list(filter(find_spec, sys.argv[1:]))) else 0)" $(EXTRAS)
	$(BARE)/bin/pytest -q -n 2 --dist loadfile --no-loadscope-reorder --ignore hycop/networks --ignore hycop/studio \
	  hycop $(PARTS:%=tests/test_%.py)
	@echo "make test-core: everything passed"

validate: docs  ## the long forms of the studies, and kills at random instants
	$(BIN)/pytest -q -n 2 --dist loadfile --no-loadscope-reorder -m validate
	@echo "make validate: everything passed"

# Models for the benchmarks are trained once and kept in .benchmarks. PyClaw and SharpClaw take part if gfortran is there.
bench: $(BENCH)  ## measure speed against other packages, as ratios; some 20 minutes
	$(BIN)/python -m benchmarks --json results/benchmarks.json

tables: $(CORE)  ## compute the tables named in TABLES, with figures, and write them to results/; hours, and resumable
	@names="$(TABLES)"; names="$${names:-$$($(BIN)/hycop table --names)}" || exit 1; for name in $$names; do \
	  $(BIN)/hycop table "$$name" --keep .tables --json "results/$$name.json" --figures results || exit 1; done

pages: $(CORE)  ## write README.md and the pages of docs/ whose numbers come from results/
	$(BIN)/python -m docs.generator

# Pages that are older than their results, and every warning of Sphinx, are errors.
docs: $(DEV)  ## build the documentation in build/docs; it runs the gallery
	$(BIN)/python -m docs.generator --check
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/docs
	@echo "make docs: build/docs/index.html"

screenshots: $(DEV)  ## take the pictures of studio and report for the documentation; needs Chromium
	$(BIN)/python docs/screenshots.py

clean:  ## remove everything that can be made again
	rm -rf .venv $(BARE) .tables .benchmarks demo build dist docs/gallery .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

%/bin/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || \
	  { echo "hycop needs Python 3.10 or newer, and '$(PYTHON)' is not; try: make PYTHON=python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $*

$(CORE): pyproject.toml constraints.txt | .venv/bin/pip
	$(BIN)/$(PIP) -e .
	@touch $@

$(DEV): pyproject.toml constraints.txt | .venv/bin/pip
	$(BIN)/$(PIP) -e ".[dev]"
	@touch $(CORE) $@

$(BENCH): pyproject.toml constraints.txt | .venv/bin/pip
	$(BIN)/$(PIP) -e ".[bench]"
	@if command -v gfortran >/dev/null; then $(BIN)/$(PIP) clawpack || echo "clawpack cannot be built: its rows are skipped"; fi
	@touch $(CORE) $@

$(BARE)/test.stamp: pyproject.toml constraints.txt | $(BARE)/bin/pip
	$(BARE)/bin/$(PIP) -e ".[test]"
	@touch $@
