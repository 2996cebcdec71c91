# Two commands: `make demo` sets up and runs the main job on an embedded default, `make test` sets up and runs the tests.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c

.PHONY: demo test lint clean

$(VENV)/.ready-%: pyproject.toml constraints.txt
	@test -x $(BIN)/python || { echo "Making an environment in $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "Installing lmms_eval[$*] into $(VENV), one line for each package it needs"
	@$(BIN)/python -m pip install --progress-bar off --disable-pip-version-check -c constraints.txt -e '.[$*]' \
		| awk '/^(Collecting|Processing|Building|Installing|Successfully)/ { print "  " $$0; fflush() }'
	@touch $@

demo: $(VENV)/.ready-metrics,plots
	$(BIN)/python examples/demo.py

test: $(VENV)/.ready-dev
	$(BIN)/python -m pytest -q -n 2

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache
