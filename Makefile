# Everything a developer or an operator runs. `make` alone lists the targets.
PYTHON ?= python3
VENV ?= .venv
GPU_VENV ?= .venv-gpu
BIN := $(VENV)/bin
GPU_BIN := $(GPU_VENV)/bin
DATA ?= ../shared/data/tatoeba-eng-fra
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate
# Compiled when the service is installed, so what they change is installed anew.
KERNELS := $(wildcard $(addprefix service/session/kernels/,*.[ch] third_party/*.h))
# onnxruntime would send usage data to its vendor.
export ORT_DISABLE_TELEMETRY := 1

.PHONY: help serve test test-slow test-gpu check bench bench-gpu profile load figures proto lock clean
help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 22

# A serving environment knows no torch; a full one holds it too, so `make test` satisfies both.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
$(VENV)/.serve: pyproject.toml constraints.txt $(KERNELS) | $(BIN)/python
	$(PIP) --editable '.[cpu]'
	@touch $@
$(VENV)/.full: pyproject.toml constraints.txt $(KERNELS) | $(BIN)/python
	$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/.serve

# onnxruntime for CUDA and onnxruntime for the CPU overwrite each other's files.
$(GPU_VENV)/.full: pyproject.toml constraints.txt $(KERNELS)
	$(PYTHON) -m venv $(GPU_VENV)
	$(GPU_BIN)/pip install --quiet --constraint constraints.txt --editable '.[gpu,train]' \
		ctranslate2 pytest pytest-timeout
	@touch $@

serve: $(VENV)/.serve  ## serve the bundles in models/ on :50051, metrics on :9464/metrics
	$(BIN)/python -m service serve

test: $(VENV)/.full  ## the whole suite, without the slow tests
	$(BIN)/python -m pytest

test-slow: $(VENV)/.full  ## every test
	$(BIN)/python -m pytest -m ''

test-gpu: $(GPU_VENV)/.full  ## what needs a CUDA device
	$(GPU_BIN)/python -m pytest -m gpu tests/gpu

check: $(VENV)/.full  ## lint, types and the contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/buf lint

bench: $(VENV)/.full  ## side by side with CTranslate2, on one machine
	$(BIN)/python -m bench

bench-gpu: $(GPU_VENV)/.full  ## float16 on CUDA side by side with CTranslate2 and PyTorch
	$(GPU_BIN)/python -m bench.gpu

profile: $(VENV)/.full  ## where a decode step's time goes
	$(BIN)/python -m bench.profile

load: $(VENV)/.full  ## capacity and knee of a server: make load ADDRESS=localhost:50051
	$(BIN)/python -m bench.load $(or $(ADDRESS),localhost:50051)

figures: $(VENV)/.full  ## every figure of docs/attention.md, in some 20 minutes
	$(BIN)/python -m docs.make_figures

proto: $(VENV)/.full  ## regenerate what comes from .proto files
	$(BIN)/python -m grpc_tools.protoc -I service/pb=proto/nmt/v1 -I proto \
		--python_out=. --pyi_out=. --grpc_python_out=. \
		service/pb/translation.proto service/pb/admin.proto
	$(BIN)/python -m grpc_tools.protoc -I . --python_out=. --pyi_out=. service/session/fusion/model.proto

lock: $(VENV)/.full  ## pin what the images install, by hash
	for image in cpu gpu; do $(LOCK) pyproject.toml --extra $$image --extra detect --extra trace \
		--constraint constraints.txt --output-file deploy/locks/$$image.txt || exit; done
	echo 'setuptools>=77' | $(LOCK) - --output-file deploy/locks/build.txt

# A run that was stopped goes on where it was; the bundle replaces the one of that name in models/.
train-%-en train-%-fr: NAME = $(@:train-%=%)
train-%-en train-%-fr: $(VENV)/.full
	$(BIN)/python -m training train training/configs/$(NAME).toml --data-dir $(DATA) --resume auto
	rm -rf models/.new && $(BIN)/python -m export bundle runs/$(NAME)/best.pt models/.new \
		--train $(DATA)/train.tsv.gz --valid $(DATA)/valid.tsv.gz --test $(DATA)/test.tsv.gz
	rm -rf models/$(NAME) && mv models/.new models/$(NAME)
# The recurrent student also learns from the Transformer's translations of the training sources.
train-bahdanau-en-fr: runs/distilled-en-fr.tsv.gz
runs/distilled-en-fr.tsv.gz: | $(VENV)/.full
	$(BIN)/python -m training distill runs/transformer-en-fr/best.pt $@ --data-dir $(DATA)
train-transformer: train-transformer-en-fr  ## train, export and verify transformer-en-fr (hours; resumes)
	@:
train-transformer-fr-en:  ## train, export and verify transformer-fr-en (hours; resumes)
train-bahdanau: train-bahdanau-en-fr  ## train, export and verify bahdanau-en-fr (hours; resumes)
	@:

clean:  ## remove environments and caches, never models or runs
	rm -rf $(VENV) $(GPU_VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build *.egg-info \
		service/session/kernels/*.so
