# make demo   the main job: train a translator, score it, look at its attention
# make explore   the page: the demo's model, every head of it, in the browser
# make test   the tests; test-all adds the slow ones; lint checks style and types
# make bench  speed and memory beside other libraries; bench-quick in under three minutes
PYTHON ?= python3
BIN := .venv/bin
MODEL ?= transformer-micro

.PHONY: demo explore browser test test-all lint bench bench-quick clean

# One stamp file stands for the installed environment: it is made again when a requirement changes.
.venv/installed: pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Regard needs Python 3.11: make PYTHON=python3.11 ...")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: .venv/installed
	$(BIN)/regard demo --model $(MODEL)

explore: .venv/installed
	$(BIN)/regard explore --demo

# The browser that the page is tested in. Where it cannot be installed, those tests say so and are skipped.
browser:
	@command -v chromium >/dev/null || { echo "Installing chromium, to test the page in"; \
	(apt-get update -qq && apt-get install -y -qq chromium) >/dev/null 2>&1 || \
	(sudo -n apt-get update -qq && sudo -n apt-get install -y -qq chromium) >/dev/null 2>&1 || \
	echo "chromium could not be installed: the tests of the page will be skipped"; }

# Models as small as those of the tests are faster on one thread than on several that wait for each other.
test test-all: export OMP_NUM_THREADS = 1

test: .venv/installed browser
	$(BIN)/python -m pytest

test-all: .venv/installed browser
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
