# make repro: install, run the pipeline, print the results.   make test: install, run the tests.
PYTHON ?= python3
VENV ?= .venv
# Which torch to install; for another build: make repro TORCH="torch==2.13.0 --index-url ADDRESS".
TORCH ?= torch==2.13.0

BIN := $(VENV)/bin
# uv, where it is installed, needs a third of pip's time; `make repro UV=` uses pip all the same.
UV ?= $(shell command -v uv)
ifeq ($(UV),)
# Python compiles what it imports; compiling every module of every package takes longer.
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile
CREATE := $(PYTHON) -m venv
else
PIP := $(UV) pip install --quiet --python $(BIN)/python
CREATE := $(UV) venv --quiet --allow-existing --python $(PYTHON)
endif
INSTALLED := $(VENV)/.installed
TESTABLE := $(VENV)/.testable
export PATH := $(abspath $(BIN)):$(PATH)
# If it is set, every stage compiles torch's 2,000 modules again: 3 s each.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install repro test test-slow lint

install: $(TESTABLE)

# torch is installed without constraints: other indexes have other versions of its dependencies.
$(INSTALLED): pyproject.toml constraints.txt
	$(CREATE) $(VENV)
	$(PIP) $(TORCH)
	$(PIP) --constraint constraints.txt --editable '.[onnx]'
	touch $@

$(TESTABLE): $(INSTALLED)
	$(PIP) --constraint constraints.txt --editable '.[dev]'
	touch $@

repro: $(INSTALLED)
	distill run

# One worker per core, with one thread each: two threads per worker would wait for one another.  Files run in their own
# order: ordering them by number of tests would leave slow files with few tests for the end, when one core waits for the
# other.
PYTEST := OMP_NUM_THREADS=1 python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

test: install
	$(PYTEST) --durations=30

# Those that `make test` leaves out: a wheel, a browser, Ray, a full disk, kills, long runs.
test-slow: install
	$(PYTEST) -m slow

lint: install
	ruff check .
	ruff format --check .
