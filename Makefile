# Two commands: `make demo` sets up and runs the main job on an embedded default, `make test` sets up and runs the tests.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test lint clean

$(VENV)/.ready-%: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$*]'
	touch $@

demo: $(VENV)/.ready-metrics
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
