# Two commands matter: `make demo` shows what privet does, `make test` proves it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PEERS := .venv-bench
# The demo needs the package and its server, a third of what the tests need. Where their environment is there, it serves.
DEMO := $(if $(wildcard $(STAMP)),$(VENV),.venv-demo)

.PHONY: help install demo site test test-all test-long check wheel bench evidence clean

# Modules that are compiled once for all the processes that tests start; also where the environment says otherwise.
unexport PYTHONDONTWRITEBYTECODE

# What tests write and throw away lies in memory where 8 GB of that are free: ledgers wait for a disk at every charge.
SCRATCH := $(or $(TMPDIR),$(shell [ "$$(df -Pk /dev/shm 2> /dev/null | awk 'NR == 2 {print $$4}')" -gt 8000000 ] 2> /dev/null && [ -w /dev/shm ] && echo /dev/shm))

# One thread for each of the processes: as many as there are cores run beside each other already.
PYTEST = $(if $(SCRATCH),TMPDIR=$(SCRATCH)) OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n auto --dist loadgroup $(if $(DURATIONS),--durations=30)

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

install: $(STAMP)  ## a virtual environment with everything the tests need

NEW_ENOUGH = @$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "privet needs Python 3.11 or newer; set PYTHON=..."; exit 1; }

$(STAMP): pyproject.toml
	$(NEW_ENOUGH)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(DEMO)/.installed  ## the whole story on generated data; writes build/demo/report.html, and the files of README's commands
	$(DEMO)/bin/privet demo --folder build/demo

.venv-demo/.installed: pyproject.toml
	$(NEW_ENOUGH)
	$(PYTHON) -m venv .venv-demo
	.venv-demo/bin/pip install --quiet --disable-pip-version-check -e '.[server]'
	@touch $@

check: $(STAMP)  ## lint, types, import contract
	$(BIN)/ruff check src tests bench evidence
	$(BIN)/ruff format --check src tests bench evidence
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test: check  ## check, then what every change needs, long tests at a small size (DURATIONS=1: and where the time goes)
	$(PYTEST)

test-all: check  ## check, then every test at its full size
	PRIVET_TESTS=full $(PYTEST)

test-long: $(STAMP)  ## what `make test` leaves out or runs at a smaller size, at full size (TIME=1800: what begins in so many seconds)
	PRIVET_TESTS=full PRIVET_TESTS_TIME=$(TIME) $(PYTEST) -m "sized or long"

# LOWEST=1: with the oldest dependencies that pyproject.toml allows; PYTHON=python3.13: with another Python.
wheel:  ## build wheel and sdist into dist/, install the wheel into an empty environment, and mine a CSV with it (LOWEST=1)
	$(NEW_ENOUGH)
	rm -rf dist build/wheel
	$(PYTHON) -m venv build/wheel/builder
	build/wheel/builder/bin/pip install --quiet --disable-pip-version-check build
	build/wheel/builder/bin/python -m build --outdir dist .
	$(PYTHON) -m venv build/wheel/empty
	build/wheel/empty/bin/pip install --quiet --disable-pip-version-check dist/*.whl $(if $(LOWEST),$$($(PYTHON) -c 'import tomllib; print(*(text.replace(">=", "==") for text in tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]))'))
	du -sm build/wheel/empty
	cd build/wheel && empty/bin/privet demo --folder demo --rows 5000
	cd build/wheel/demo && ../empty/bin/privet fit people.csv --domain people.toml --epsilon 1 --budget 10 -o model.json --name wheel --ledger wheel.ledger --ignore-spending
	cd build/wheel/demo && ../empty/bin/privet predict model.json new.csv | head -3

site: $(STAMP)  ## the documentation as a site in build/site: open index.html, no network needed; fails on a broken link
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

bench: $(STAMP) $(PEERS)/.installed  ## accuracy, speed and memory beside peers, over an hour (BENCH=--quick: some minutes); writes build/bench/index.html
	$(BIN)/python -m bench $(BENCH)

# diffprivlib does not import with the scikit-learn that privet is tested with. A peer that pip cannot have is left out,
# and tried again the next time.
$(PEERS)/.installed: pyproject.toml
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/pip install --quiet --disable-pip-version-check 'scikit-learn==1.8.*' -e .
	@all=yes; for peer in diffprivlib interpret-core xgboost; do \
		$(PEERS)/bin/pip install --quiet --disable-pip-version-check 'scikit-learn==1.8.*' $$peer \
		|| { all=no; echo "$$peer cannot be installed: it is left out"; }; done; \
	if [ $$all = yes ]; then touch $@; fi

evidence: $(STAMP) $(PEERS)/.installed  ## the papers' tables again, a peer verified, the policies trained; over an hour; writes evidence/*.json
	$(PEERS)/bin/python -m evidence.peers
	$(BIN)/python -m evidence
	$(BIN)/python -m evidence.frontier
	$(BIN)/python -m evidence.joint
	$(BIN)/python -m evidence.joint --same-price --tables house-votes --epsilons 0.05,0.25,0.5 --splits 24
	$(BIN)/python -m evidence.noisy_gd
	$(BIN)/python -m evidence.families
	$(BIN)/python -m evidence.arms
	$(BIN)/python -m evidence.audit
	$(BIN)/python -m evidence.scale
	$(BIN)/python -m evidence.noisyif
	$(BIN)/privet study run all --medium -o build/study
	$(BIN)/python -m evidence.studies medium=build/study/findings.json
	$(BIN)/privet study run choice --sets 1975 --jobs 2 -o build/choice
	cp build/choice/report.json evidence/choice.json

clean:  ## remove what the other targets made
	rm -rf $(VENV) .venv-demo $(PEERS) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
