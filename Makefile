# The commands of the project. `make run` needs Python 3.11 or newer with its venv module, nothing else;
# `make test` sets up everything that it needs, system packages included where it may install them.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:

# All paths are relative, so that the folder of the clone may have any name, also one with spaces.
# `make PYTHON=/path/to/python3 …` chooses the Python that .venv is made with.
VENV_PYTHON := .venv/bin/python
PIP := $(VENV_PYTHON) -m pip --disable-pip-version-check --quiet
# Where it is set, each of the hundreds of processes that the tests start would compile the whole of webqueue anew.
export PYTHONDONTWRITEBYTECODE :=
# One process a core; whoever is done takes over tests of the others.
PARALLEL := --numprocesses auto --dist worksteal
# Tests that wait for databases, processes and leases keep more of them busy: three for two cores, and twice as many.
CORES := $(shell getconf _NPROCESSORS_ONLN)
PARALLEL_DATABASES := --numprocesses $(shell echo $$(( ($(CORES) * 3 + 1) / 2 ))) --dist worksteal
PARALLEL_PROCESSES := --numprocesses $(shell echo $$(( $(CORES) * 2 ))) --dist worksteal
STEP := @printf '\n==> %s\n'

.PHONY: help
help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

.PHONY: run
run: .venv/installed ## Install webqueue into .venv and start the demo
	@exec .venv/bin/webqueue demo

.PHONY: test
test: system-packages .venv/developing lint ## Set everything up, then lint, types, layers and all rings of tests
	$(STEP) 'Unit tests'
	@$(VENV_PYTHON) -m pytest $(PARALLEL) tests/unit
	$(STEP) 'Integration tests'
	@$(VENV_PYTHON) -m pytest $(PARALLEL_DATABASES) tests/integration
	$(STEP) 'Acceptance tests'
	@$(VENV_PYTHON) -m pytest $(PARALLEL_PROCESSES) tests/acceptance
	$(STEP) 'Browser tests'
	@$(VENV_PYTHON) -m pytest $(PARALLEL) tests/browser
	$(STEP) 'All checks passed'

.PHONY: lint
lint: .venv/developing ## Check style, types and layers
	$(STEP) 'Style: ruff check'
	@$(VENV_PYTHON) -m ruff check
	$(STEP) 'Format: ruff format'
	@$(VENV_PYTHON) -m ruff format --check
	$(STEP) 'Types: mypy'
	@$(VENV_PYTHON) -m mypy
	$(STEP) 'Layers: import-linter'
	@.venv/bin/lint-imports

.PHONY: unit
unit: .venv/developing ## Run the unit tests alone
	$(STEP) 'Unit tests'
	@$(VENV_PYTHON) -m pytest tests/unit

.PHONY: bench
bench: .venv/developing ## Measure what a claim costs beside a deep key
	@$(VENV_PYTHON) -m benchmarks.claims

.PHONY: bench-pages
bench-pages: .venv/developing ## Measure pages alone, with 300,000 jobs, and with many readers
	@$(VENV_PYTHON) -m benchmarks.pages

.PHONY: bench-texts
bench-texts: .venv/developing ## Measure how many real pages in several languages and encodings are readable
	@$(VENV_PYTHON) -m benchmarks.texts

.PHONY: chaos-short
chaos-short: .venv/developing ## The short forms of the chaos, for an otherwise idle machine
	$(STEP) 'Chaos, short'
	@$(VENV_PYTHON) -m pytest tests/acceptance/chaos

.PHONY: chaos
chaos: .venv/developing ## Attack the promises for long: killed, stopped and restarted processes (see docs/explanation)
	$(STEP) 'Chaos: workers killed, stopped and continued, a database that restarts'
	@$(VENV_PYTHON) -m tests.acceptance.chaos
	$(STEP) 'A database that is away for 65 s'
	@$(VENV_PYTHON) -m tests.acceptance.chaos.outage
	$(STEP) 'Two servers and the command line on one SQLite file'
	@$(VENV_PYTHON) -m tests.acceptance.chaos.neighbours

.PHONY: format
format: .venv/developing ## Format the code and repair what ruff can repair
	@$(VENV_PYTHON) -m ruff format
	@$(VENV_PYTHON) -m ruff check --fix

.PHONY: messages
messages: .venv/developing ## Collect the texts of the pages, and compile their translations
	@$(VENV_PYTHON) scripts/messages

.PHONY: clean
clean: ## Remove the virtual environment and all caches (never the instance folder)
	rm -rf .venv build dist webqueue.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf .import_linter_cache
	find webqueue tests -type d -name __pycache__ -prune -exec rm -rf {} +

.PHONY: system-packages
system-packages:
	$(STEP) 'System packages'
	@scripts/system-packages

# A file in .venv for each stage, so that a second run does nothing.
.venv/created: scripts/create-venv
	$(STEP) 'Virtual environment'
	@scripts/create-venv .venv
	@touch $@

.venv/installed: .venv/created pyproject.toml constraints.txt
	$(STEP) 'webqueue and what it needs'
	@$(PIP) install --constraint constraints.txt --editable '.[postgres,export,warc,notify]'
	@touch $@

.venv/developing: .venv/installed
	$(STEP) 'Development tools'
	@$(PIP) install --constraint constraints.txt --group dev
	@touch $@
