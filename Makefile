# make app     open the page in the browser: drop a table, get the report
# make demo    draw an inventory, compare four scalings in its ten cases under two presets, write the report
# make test    lint, type-check and run all tests
# make check   the first part of it: lint, and compile what the tests use
# make dist    build the sdist and the wheel into dist/, look into them, install the wheel in new environments (Python 3.11
#              to 3.13, those that are here) and run the commands there
# make release-check    what is slow by nature: all tests again with their coverage measured, every fault injected,
#              the frozen baseline, make dist; before a release
# make docs    build the documentation site into build/site; `rekka docs` opens it
# make bench   time rekka beside its rivals on the same rows; the study; pairing; refits; simulated sets that
#              check intervals, small cases and the test of calibration; thousands of components; damaged
#              tables; twenty million rows; the paper's study, run again, also for other hazards; this version
#              beside the one before it
# make clean   forget the environment and the caches

PYTHON ?= python3
# the tests run side by side, one a core: threads of theirs would only stand in each other's way
ONE_THREAD := POLARS_MAX_THREADS=1 OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
# what Python compiles, it keeps: else each of the many processes that tests start would compile the package anew
unexport PYTHONDONTWRITEBYTECODE
VENV := .venv
BIN := $(VENV)/bin
BEFORE ?= bb1fb90  # the version before this one, 0.11.0

.PHONY: app demo test check docs dist release-check bench clean

app: $(VENV)/.user
	@$(BIN)/rekka app $(APP)

demo: $(VENV)/.user
	@echo "The command is $(BIN)/rekka."
	@$(BIN)/rekka demo

test: check
	$(BIN)/mypy & types=$$!; \
	$(ONE_THREAD) $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder $(PYTEST); tests=$$?; \
	wait $$types && exit $$tests

check: $(VENV)/.developer
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tests/warm_up.py

dist: docs $(VENV)/.developer
	$(BIN)/python tests/distribution.py

release-check: docs $(VENV)/.developer
	$(ONE_THREAD) REKKA_FAULTS=1000 $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder --cov --cov-report=term -m "slow or not slow" $(PYTEST)
	$(BIN)/python -m benchmarks.baseline
	$(BIN)/python tests/distribution.py

# warnings are errors: a link that leads nowhere, a public name that is missing from the reference
docs: $(VENV)/.docs
	rm -rf build/site
	$(BIN)/python -m sphinx -q -W --keep-going -b html -d build/doctrees docs build/site
	@echo "build/site/index.html ($(BIN)/rekka docs opens it)"

bench: $(VENV)/.developer
	$(BIN)/python -m benchmarks.baseline
	$(BIN)/python -m benchmarks $(BENCH)
	$(BIN)/python -m benchmarks.study
	$(BIN)/python -m benchmarks.pairing
	$(BIN)/python -m benchmarks.coverage
	$(BIN)/python -m benchmarks.bands
	$(BIN)/python -m benchmarks.histories
	$(BIN)/python -m benchmarks.histories_coverage
	$(BIN)/python -m benchmarks.choices
	$(BIN)/python -m benchmarks.shocks
	$(BIN)/python -m benchmarks.repairs
	$(BIN)/python -m benchmarks.violations
	$(BIN)/python -m benchmarks.families
	$(BIN)/python -m benchmarks.clusters
	$(BIN)/python -m benchmarks.small_samples
	$(BIN)/python -m benchmarks.stability
	$(BIN)/python -m benchmarks.replacement
	$(BIN)/python -m benchmarks.calibration
	$(BIN)/python -m benchmarks.forecast
	$(BIN)/python -m benchmarks.app
	$(BIN)/python -m benchmarks.components
	$(BIN)/python -m benchmarks.fuzz
	$(BIN)/python -m benchmarks.scale
	$(BIN)/python -m benchmarks.reproduction
	$(BIN)/python -m benchmarks.versions $(BEFORE)

clean:
	rm -rf $(VENV) build dist .coverage* .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(BIN)/python:
	@echo "Setting up $(VENV): once, about a minute."
	@$(PYTHON) -c 'import sys; sys.exit("rekka needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv $(VENV)

# --no-compile: Python compiles what is imported, and most of what is installed never is
$(VENV)/.user: pyproject.toml | $(BIN)/python
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable ".[app]"
	@touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable ".[docs]"
	@touch $@

$(VENV)/.developer: pyproject.toml | $(BIN)/python
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable ".[dev]"
	@touch $@ $(VENV)/.user
