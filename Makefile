# make demo   the main job: train a translator, score it, look at its attention
# make test   the tests; test-all adds the slow ones; lint checks style and types
# make bench  speed and memory beside other libraries; bench-quick in under three minutes
PYTHON ?= python3
BIN := .venv/bin
MODEL ?= transformer-micro

.PHONY: demo test test-all lint bench bench-quick clean

# One stamp file stands for the installed environment: it is made again when a requirement changes.
.venv/installed: pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Regard needs Python 3.11: make PYTHON=python3.11 ...")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: .venv/installed
	$(BIN)/regard demo --model $(MODEL)

test: .venv/installed
	$(BIN)/python -m pytest

test-all: .venv/installed
	$(BIN)/python -m pytest -m "slow or not slow"

lint: .venv/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# The peers to measure beside. JoeyNMT pins old versions of what it hardly uses, hence --no-deps.
.venv/bench-installed: .venv/installed bench/requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r bench/requirements.lock
	@touch $@

bench: .venv/bench-installed
	$(BIN)/python -m bench

bench-quick: .venv/bench-installed
	$(BIN)/python -m bench --quick

clean:
	rm -rf .venv build *.egg-info
