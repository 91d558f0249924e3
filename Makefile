# `make` alone lists the targets. Works with the GNU make 3.81 of macOS and newer ones.
#
# Everything is installed into .venv, with the versions of constraints.txt. The two stamp files in it say what is there
# already: the project alone (enough for the demo), or the project with what the tests need.

PYTHON ?= python3
# One worker a core of the smallest machine; the tests do not depend on their order.
PYTEST_ARGS ?= -n 2

VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core-installed
DEV := $(VENV)/.dev-installed

# The machines for which MLX is published. Elsewhere its tests are skipped, each saying so.
MACHINE := $(shell uname -s)-$(shell uname -m)
ifneq (,$(filter Darwin-arm64 Linux-x86_64 Linux-aarch64,$(MACHINE)))
EXTRAS := dev,mlx,postgres
else
EXTRAS := dev
endif

.PHONY: help demo test lint format docs bench clean

help:
	@echo 'make demo     predict a shipped recording under the gated policy, then three policies side by side'
	@echo 'make test     run the whole test suite'
	@echo 'make lint     check format, lint and types'
	@echo 'make format   rewrite the sources in the format that lint asks for'
	@echo 'make docs     run every command shown in the documentation again and rewrite what it prints'
	@echo 'make bench    time the simulator itself'
	@echo 'make clean    remove .venv and what tools leave behind'

demo: $(CORE)
	$(BIN)/simulate --policy gated --trace story
	$(BIN)/simulate --policy graded --policy gated --policy fixed --trace copy

test: $(DEV)
	$(BIN)/pytest $(PYTEST_ARGS)

lint: $(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(DEV)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(DEV)
	$(BIN)/python -m tests.documents

bench: $(DEV)
	$(BIN)/python tests/benchmarks/replay.py
	$(BIN)/python tests/benchmarks/serve.py

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(CORE): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    echo "$(PYTHON): Python 3.11 or newer is needed ($$($(PYTHON) --version 2>/dev/null || echo 'not found')); name one with make PYTHON=..." >&2; \
	    exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(DEV): $(CORE)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$(EXTRAS)]'
	@touch $@
