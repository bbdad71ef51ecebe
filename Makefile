# Two commands do all the set-up on a fresh machine: `make repro` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
REPRO_FLAGS ?=
# pip's notices say nothing about this project.
PIP := $(BIN)/pip install --quiet --disable-pip-version-check

# Tests that start deployments and watch their timing have the machine to themselves.
ALONE := tests/e2e tests/client tests/deploy tests/hosts tests/load

.PHONY: repro test lint bench soak soak-triton clean

repro: $(VENV)/.base  ## install, 60 sessions against the lab, a report
	@$(BIN)/dsv4doctor repro --sessions 60 $(REPRO_FLAGS); \
	code=$$?; \
	if [ $$code -eq 1 ]; then echo "make repro: exit code 1 means that corruption was found, as it should be here" >&2; exit 0; fi; \
	exit $$code

test: $(VENV)/.dev  ## the whole suite, with lint and types
	$(MAKE) --no-print-directory lint
	$(BIN)/python -m pytest -q -n 2 --dist loadfile $(addprefix --ignore=,$(ALONE))
	$(BIN)/python -m pytest -q -r fEsxR --reruns 2 --reruns-delay 3 $(ALONE)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.dev  ## figures of speed, into benchmarks/ (asserted by no test)
	$(BIN)/python -m benchmarks

soak: $(VENV)/.dev  ## all seeds, A/A and false-alarm runs; resumable, results into benchmarks/
	$(BIN)/python benchmarks/soak_suites.py
	$(BIN)/python benchmarks/scan_soak.py
	$(BIN)/python benchmarks/soak_table.py
	$(MAKE) --no-print-directory soak-triton
	$(BIN)/python benchmarks/soak_ab.py
	$(BIN)/python benchmarks/soak_diagnose.py
	$(BIN)/python benchmarks/signatures.py

# The kernels once more with the next Triton, in an environment of its own.
soak-triton: $(VENV)/.dev
	$(PYTHON) -m venv .soak/triton-next
	.soak/triton-next/bin/pip install --quiet --disable-pip-version-check -e '.[dev]'
	.soak/triton-next/bin/pip install --quiet --disable-pip-version-check --no-deps triton==3.9.0
	$(BIN)/python benchmarks/soak_suites.py --python .soak/triton-next/bin/python --only tests/kernels

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.base: pyproject.toml | $(VENV)/bin/python
	$(PIP) -e .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(PIP) -e '.[dev]'
	@touch $@ $(VENV)/.base

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
