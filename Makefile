# Two commands: `make demo` sets up and runs the main job on an embedded default, `make test` sets up and runs the tests.
# On Linux without a GPU they install torch's CPU build: TORCH=cpu takes it in any case, TORCH=default that of the package
# index, and TORCH_INDEX=ADDRESS names another index of CPU builds.
# `make test-engines` runs the tests against a real vLLM, in an environment of its own (some 4 GB).
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c

TORCH ?= auto
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
PIP := -m pip install --progress-bar off --disable-pip-version-check

ENGINES_VENV ?= .venv-engines
ENGINES := $(ENGINES_VENV)/bin

.PHONY: demo test test-slow test-engines docs drawings viewer schemas keywords commands api constraints release-check screenshots lint clean

$(VENV)/.ready-%: pyproject.toml constraints.txt
	@test -x $(BIN)/python || { echo "Making an environment in $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "Installing lmms_eval[$*] into $(VENV), one line for each package it needs"
	@torch=$$($(BIN)/python -m release.torch_build --build $(TORCH) --index $(TORCH_INDEX)) || exit; \
		test -z "$$torch" || $(BIN)/python $(PIP) -q $$torch \
		|| echo "  torch: that index has no CPU build for this Python and machine; the package index's follows"
	@$(BIN)/python $(PIP) -c constraints.txt -e '.[$*]' \
		| awk '/^(Collecting|Processing|Building|Installing|Successfully)/ { print "  " $$0; fflush() }'
	@# Beside, not among, the packages: tests that need torchvision look there, all others run without it.
	@if [ "$*" = dev ]; then $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
		--target $(VENV)/torchvision -c constraints.txt torchvision; fi
	@touch $@

# Task folders of other packages, which the recorded vectors are about: downloaded from the package index, not installed.
$(VENV)/packs/.ready: | $(VENV)/.ready-dev
	@echo "Getting the task folders of lm-eval and lmms-eval, which some tests replay"
	@LMMS_EVAL_PACKS=$(VENV)/packs $(BIN)/lmms-eval packs add lm-eval==0.4.13 lmms-eval==0.7.3 --trust && touch $@ \
		|| echo "They are not here: the tests that need them are pending"

demo: $(VENV)/.ready-metrics,plots
	$(BIN)/python examples/demo.py

# Kept bytecode: hundreds of commands under test would compile the package again and again.
test test-slow: export PYTHONDONTWRITEBYTECODE =

# Each process begins with its third of the tests, in their order: most modules are imported and set up once. There are
# three on two cores, since many tests wait for servers and other processes.
test: $(VENV)/.ready-dev $(VENV)/packs/.ready
	$(BIN)/python -m pytest -q -n 3 --dist worksteal -m "not slow"

# What takes long (tests/slow.txt): kills of servers and clusters, pages driven through whole runs, trained models.
test-slow: $(VENV)/.ready-dev $(VENV)/packs/.ready
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m slow

# Every package is named: what vLLM asks for beyond them (torchaudio, torchcodec) has no build that fits torch's for CPUs.
$(ENGINES_VENV)/.ready: constraints-engines.txt pyproject.toml
	@test -x $(ENGINES)/python || { echo "Making an environment in $(ENGINES_VENV)"; $(PYTHON) -m venv $(ENGINES_VENV); }
	$(ENGINES)/python $(PIP) -q --no-deps -r constraints-engines.txt
	$(ENGINES)/python $(PIP) -q --no-deps -e .
	@touch $@

test-engines: $(ENGINES_VENV)/.ready
	PYTHONPATH=$(CURDIR):$(CURDIR)/tests/engines/site $(ENGINES)/python -m pytest -q -o filterwarnings=default tests/engines

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m release.english

# The site, strictly: a warning or a broken link ends it.
docs: $(VENV)/.ready-docs
	$(BIN)/python docs/sphinx/build.py site

# The drawings of the documentation (docs/images/*.svg), by the standard library alone.
drawings:
	$(PYTHON) docs/sphinx/drawings.py

# The front end of reports, whose bundle is committed: users need no Node.
viewer:
	cd lmms_eval/viewer/web && npm ci --no-audit --no-fund && npm run check && npm run build

# The JSON Schemas of results, samples and journals (lmms_eval/schemas), from their types.
schemas: $(VENV)/.ready-dev
	$(BIN)/python examples/make_schemas.py

# The arguments of simple_evaluate for type checkers (lmms_eval/config/keywords.py), from the declaration of the options.
keywords: $(VENV)/.ready-dev
	$(BIN)/python -m release.keywords

# The tables of options in docs/commands, from the parsers.
commands: $(VENV)/.ready-dev
	$(BIN)/python -m release.commands

# The list of what is public (tests/public_api.txt), by the rules of docs/api.md.
api: $(VENV)/.ready-dev
	$(BIN)/python -m tests.public_api

# The versions that installs are held to, for all Pythons and systems: what is there stays, `UPGRADE=1` takes the newest.
constraints:
	$(PYTHON) -m release.constraints $(if $(UPGRADE),--upgrade)

# All that a release must pass, as a table: `make release-check`, with the whole suite `make release-check TESTS=1`.
release-check: $(VENV)/.ready-dev
	$(BIN)/python -m release.check $(if $(TESTS),--tests)

# The pictures of the README, from the demonstration's report and from a terminal, in headless Chromium.
screenshots: $(VENV)/.ready-dev
	$(BIN)/python examples/make_screenshots.py
	$(BIN)/python examples/make_terminal_picture.py

clean:
	rm -rf $(VENV) $(ENGINES_VENV) build dist site .mypy_cache .ruff_cache .pytest_cache
