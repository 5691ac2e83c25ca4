# make repro: install, run the pipeline, print the results.   make test: install, run all tests.
PYTHON ?= python3
VENV ?= .venv
# Which torch: README.md, "Two commands", says how to have another build.
TORCH ?= torch==2.13.0

BIN := $(VENV)/bin
# Python compiles what it imports; compiling every module of every package takes longer.
QUICK := --quiet --disable-pip-version-check --no-compile
INSTALLED := $(VENV)/.installed
TESTABLE := $(VENV)/.testable
export PATH := $(abspath $(BIN)):$(PATH)
# Where it is set, every stage would compile torch's 2,000 modules anew: 3 s each.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install repro test lint

install: $(TESTABLE)

# torch alone is free to choose: other indexes have other versions of what it needs.
$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install $(QUICK) $(TORCH)
	$(BIN)/pip install $(QUICK) --constraint constraints.txt --editable '.[onnx]'
	touch $@

$(TESTABLE): $(INSTALLED)
	$(BIN)/pip install $(QUICK) --constraint constraints.txt --editable '.[dev]'
	touch $@

repro: $(INSTALLED)
	dvc repro
	distill results

# A worker per core: one alone leaves the others idle.  Files in their own order: the other one, by how many tests they
# have, leaves the slow ones of few tests for the end, when one core waits for the other.
test: install
	python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

lint: install
	ruff check .
	ruff format --check .
