# Everything a developer or an operator runs. `make` alone lists the targets.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DATA ?= ../shared/data/tatoeba-eng-fra
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: help serve test test-slow check bench profile load proto clean
help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 22

# A serving environment knows no torch; a full one holds it too, so `make test` satisfies both.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
$(VENV)/.serve: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[cpu]'
	@touch $@
$(VENV)/.full: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/.serve

serve: $(VENV)/.serve  ## serve the bundles in models/ on :50051, metrics on :9464/metrics
	$(BIN)/python -m service serve

test: $(VENV)/.full  ## the whole suite, without the slow tests
	$(BIN)/python -m pytest

test-slow: $(VENV)/.full  ## every test
	$(BIN)/python -m pytest -m ''

check: $(VENV)/.full  ## lint, types and the contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/buf lint

bench: $(VENV)/.full  ## side by side with CTranslate2, on one machine
	$(BIN)/python -m bench

profile: $(VENV)/.full  ## where a decode step's time goes
	$(BIN)/python -m bench.profile

load: $(VENV)/.full  ## capacity and knee of a server: make load ADDRESS=localhost:50051
	$(BIN)/python -m bench.load $(or $(ADDRESS),localhost:50051)

proto: $(VENV)/.full  ## regenerate service/pb from proto/
	$(BIN)/python -m grpc_tools.protoc -I service/pb=proto/nmt/v1 \
		--python_out=. --pyi_out=. --grpc_python_out=. \
		service/pb/translation.proto service/pb/admin.proto

# A run that was stopped goes on where it was; the bundle replaces the one of that name in models/.
train-%: $(VENV)/.full
	$(BIN)/python -m training train training/configs/$*-en-fr.toml --data-dir $(DATA) --resume auto
	rm -rf models/.new && $(BIN)/python -m export bundle runs/$*-en-fr/best.pt models/.new \
		--train $(DATA)/train.tsv.gz --valid $(DATA)/valid.tsv.gz --test $(DATA)/test.tsv.gz
	rm -rf models/$*-en-fr && mv models/.new models/$*-en-fr
# The recurrent student also learns from the Transformer's translations of the training sources.
train-bahdanau: runs/distilled-en-fr.tsv.gz
runs/distilled-en-fr.tsv.gz: | $(VENV)/.full
	$(BIN)/python -m training distill runs/transformer-en-fr/best.pt $@ --data-dir $(DATA)
train-transformer:  ## train, export and verify transformer-en-fr (hours; resumes)
train-bahdanau:  ## train, export and verify bahdanau-en-fr (hours; resumes)

clean:  ## remove environments and caches, never models or runs
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build *.egg-info
