# Everything happens in .venv; all that is needed is make and a python3 (3.11 or newer) with venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# An empty environment has no PATH, and make, unlike the shell, knows no other.
export PATH := $(or $(PATH),/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
SOURCES := $(shell PATH="$(PATH)" find emulator examples faults nodes -type f -not -name '*.pyc' -not -path '*/target/*') pyproject.toml README.md LICENSE .ci/build_hook.py
# The wheel names its commit, so it is built again after one: the log of HEAD, where this is a checkout.
HEAD_LOG := $(if $(wildcard .git),$(wildcard $(shell PATH="$(PATH)" git rev-parse --git-path logs/HEAD 2>/dev/null)))
# Three workers for two cores, since many tests wait; a file is run by one of them, so what its tests share is made once.
PYTEST := $(BIN)/pytest -n 3 --dist loadfile --times
# What each step of `make test` took, printed at its end.
STEP_SECONDS := $(VENV)/seconds
COVERAGE_LEAST := 90

# What a caller's environment says about other checkouts must not reach the one that is tested.
unexport PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE VIRTUAL_ENV

.PHONY: help setup demo lint quick quick-pytest test proofs coverage conformance mission-table bench timelines sources special guests fuzz load notebooks quotes recipes session rooms tables reference ledger clean pytest kills soak fuzz-scenarios many-runs budgets causes mutants
.DEFAULT_GOAL := help

help: ## print these lines
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile

setup: $(VENV)/installed $(VENV)/tools ## make .venv and install the wheel into it, again only when sources changed

demo: $(VENV)/installed ## run the demonstration and judge it on Spark, without the tools of the tests
	$(BIN)/rmqemu demo --engine spark

lint: setup ## style, types and import rules
	$(BIN)/ruff check .
	@# Of the rules that ruff calls a preview: the arguments that a docstring names exist.
	$(BIN)/ruff check --preview --select DOC102 .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

quick: ## lint, and the tests without Spark, browser, kernels, programs and whole clusters
	+@$(call steps,timed-lint timed-quick-pytest)

test: ## lint, and all tests against the installed wheel; at the end, how long each step took
	+@$(call steps,timed-lint timed-pytest)

pytest: setup
	$(PYTEST)

# Nothing waits in these tests: a third worker would only import all files once more.
quick-pytest: setup
	$(PYTEST) -n 2 --quick

# The steps of a target after the set-up go two at a time: lint alone would leave a core idle, and so would pip.
steps = rm -f $(STEP_SECONDS); $(MAKE) --no-print-directory --jobs 2 timed-setup && $(MAKE) --no-print-directory --jobs 2 $(1); \
	status=$$?; printf '\nseconds of each step\n'; cat $(STEP_SECONDS); exit $$status

# Makes a target, and writes down how long that took.
timed-%:
	+@mkdir -p $(VENV); start=$$(date +%s); $(MAKE) --no-print-directory $*; status=$$?; \
	printf '%8d  make %s\n' $$(($$(date +%s) - start)) $* >> $(STEP_SECONDS); exit $$status

proofs: setup ## what is proved once more, with more seeds or from end to end
	$(PYTEST) -m "slow or hypothesis" --hypothesis-profile=proofs

coverage: setup ## the tests once more, under the tracer, which doubles their time
	$(PYTEST) --cov --cov-branch --cov-report=term --cov-fail-under=$(COVERAGE_LEAST)

conformance: setup ## compare with what the real classes answered, in tests/vectors or in VECTORS=folder
	$(BIN)/pytest tests/conformance

mission-table: setup ## run the million messages of the mission's report, three ways to allocate, and print its table again
	PYTHONPATH=tests $(BIN)/python -m studies.mission_table

bench: setup ## measure, into bench.json
	PYTHONPATH=tests $(BIN)/python -m studies.bench

timelines: setup ## run fail-overs, rebalances, a busy broker and proxies with 30 seeds each, against real ones, into timelines.json
	PYTHONPATH=tests $(BIN)/python -m studies.timelines
	PYTHONPATH=tests $(BIN)/python -m studies.timelines.busy
	PYTHONPATH=tests $(BIN)/python -m studies.timelines.proxies

sources: setup ## run every source of disagreement against its bound, into sources.json
	PYTHONPATH=tests $(BIN)/python -m studies.sources

special: setup ## run the death of a master with 22,000 special messages, 20 seeds each way, into special_messages.json
	PYTHONPATH=tests $(BIN)/python -m studies.special_messages

soak: setup ## run a cluster under periodic faults for 24 emulated hours, and print what its memory holds
	PYTHONPATH=tests $(BIN)/python -m studies.soak --hours 24

kills: setup ## kill two hundred emulators at random instants, and read what they left
	PYTHONPATH=tests $(BIN)/python -m studies.kills

causes: setup ## name the causes of random scenarios with overlapping faults, and compare them with the truth on record
	PYTHONPATH=tests $(BIN)/python -m studies.causes

mutants: setup ## make sixty seeded mistakes in copies of the product, and print which of them the tests notice
	PYTHONPATH=tests $(BIN)/python -m studies.mutants

budgets: setup ## count calls, rows, timers and bytes, and write them down as the budgets that make test keeps
	PYTHONPATH=tests $(BIN)/python -m budgets.counting

many-runs: setup ## run a thousand seeds, and judge ten million rows in several ways
	-$(BIN)/rmqemu campaign tests/studies/campaigns/thousand.toml
	PYTHONPATH=tests $(BIN)/python -m studies.many_runs campaigns/thousand/runs
	PYTHONPATH=tests $(BIN)/python -m studies.pipeline_costs campaigns/thousand/dataset --copies 1 --copies 10

fuzz-scenarios: setup ## run 10,000 random scenarios, judge each, and keep those that fail in fuzz/
	PYTHONPATH=tests $(BIN)/python -m fuzz.scenarios --runs 10000 --twice 500 --jobs 2

guests: setup ## run applications and mqadmin, with RocketMQ's own clients, against the emulator
	PATH="$(CURDIR)/$(BIN):$(PATH)" $(BIN)/pytest -m guests tests/guests

fuzz: setup ## act sequences of a million frames, verbs and closed connections out on live clusters; a million of HTTP/2
	PYTHONPATH=tests $(BIN)/python -m fuzz.sequences
	PYTHONPATH=tests $(BIN)/python -m fuzz.calls

load: setup ## fill live clusters with groups, topics, members and unread answers, and print what each costs; a crowd that leaves
	PYTHONPATH=tests $(BIN)/python -m fuzz.load
	PYTHONPATH=tests $(BIN)/python -m fuzz.crowd

notebooks: setup ## execute the notebooks, and write their outputs
	PYTHONPATH=tests $(BIN)/python -m notebooks_run.executing

quotes: setup ## execute the commands whose outputs pages quote, and write these outputs
	PYTHONPATH=tests $(BIN)/python -m project.quoted

recipes: setup ## run the code of notebooks/ANALYSE_DATA.md and RECIPES.md, and write its outputs
	PYTHONPATH=tests $(BIN)/python -m project.recipes

session: setup ## sit at a live console for ten minutes, and keep what the tests run again
	PYTHONPATH=tests $(BIN)/python -m sessions.record_console_session tests/sessions/recorded

rooms: setup ## draw the pictures of the packages, rooms.svg of emulator and of nodes/broker, again
	PYTHONPATH=tests $(BIN)/python -m project.rooms

tables: setup ## write the reference of all tables, notebooks/TABLES.md, again
	PYTHONPATH=tests $(BIN)/python -m project.tables

reference: setup ## write the reference of scenario files, emulator/spec/REFERENCE.md, and examples/guests/MQADMIN.md again
	PYTHONPATH=tests $(BIN)/python -m project.reference
	PYTHONPATH=tests $(BIN)/python -m project.mqadmin_page

ledger: setup ## write emulator/fidelity/ledger.json again from the marks of the tests
	$(BIN)/pytest --collect-only -qq --ledger=emulator/fidelity/ledger.json

clean: ## remove .venv and all that was built or measured
	rm -rf $(VENV) build dist runs fuzz bench.json timelines.json sources.json special_messages.json htmlcov .coverage .coverage.* \
		.mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find emulator faults nodes tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Third-party packages take minutes, our own wheel seconds: a stamp for what it needs, for itself, and for the tools.
# What a list of pyproject.toml names, but for this project, whose wheel is built here.
define LISTED
import pathlib, sys, tomllib
read = tomllib.loads(pathlib.Path("pyproject.toml").read_text())
project = read["project"]
lists = {"dependencies": project["dependencies"], "build": read["build-system"]["requires"]}
lists |= project["optional-dependencies"]
wanted = [line for name in sys.argv[1:] for line in lists[name] if not line.startswith(project["name"])]
print(*wanted, sep="\n")
endef
export LISTED
# Python compiles what it imports when it does, which is a tenth of what is installed.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("python3 is older than 3.11" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/packages: pyproject.toml | $(BIN)/python
	$(BIN)/python -c "$$LISTED" dependencies proxy spark build > $(VENV)/wanted.txt
	@# Spark comes as 430 MB of source, of which pip makes a wheel to unpack it again: not to compress it halves that time.
	printf '[bdist_wheel]\ncompression = stored\n' > $(VENV)/stored.cfg
	DIST_EXTRA_CONFIG=$(CURDIR)/$(VENV)/stored.cfg $(INSTALL) --no-compile -r $(VENV)/wanted.txt
	touch $@

$(VENV)/installed: $(VENV)/packages $(SOURCES) $(HEAD_LOG)
	rm -rf dist
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .
	$(INSTALL) --no-deps --force-reinstall dist/*.whl
	touch $@

# To find and fetch what the tools need takes twice as long as to install it. It changes nothing in the environment, so
# a second job of make does it while the packages are installed.
$(VENV)/fetched: pyproject.toml | $(BIN)/python
	$(BIN)/python -c "$$LISTED" test > $(VENV)/tools.txt
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --wheel-dir $(VENV)/wheels -r $(VENV)/tools.txt
	touch $@

# Behind the wheel, so that two jobs of make never install at the same time.
$(VENV)/tools: $(VENV)/fetched | $(VENV)/installed
	$(INSTALL) --no-compile --no-index --find-links $(VENV)/wheels -r $(VENV)/tools.txt
	rm -rf $(VENV)/wheels
	touch $@
