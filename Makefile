# Two commands do all the set-up: `make demo` and `make test`.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

UV_VERSION := 0.13.9
CACHE := $(or $(HPC_CACHE_DIR),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/alicloud-hpc)
UV := $(or $(shell command -v uv 2>/dev/null),$(CACHE)/uv-$(UV_VERSION)/bin/uv)
RUN := .venv/bin

.PHONY: help
help: ## What can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

$(CACHE)/uv-$(UV_VERSION)/bin/uv:
	@echo "Getting uv $(UV_VERSION)"
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version.split()[0])'
	@mkdir -p $(CACHE)
	@python3 -m venv $(CACHE)/uv-$(UV_VERSION)
	@$(CACHE)/uv-$(UV_VERSION)/bin/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

.venv/.ready: pyproject.toml uv.lock | $(UV)
	@echo "Installing the Python packages into .venv"
	@$(UV) sync --frozen --quiet
	@touch $@

.PHONY: setup
setup: .venv/.ready ## Make .venv with everything in it

.PHONY: demo
demo: setup ## Bring up a cluster in the local cloud and run an MPI program on it
	@$(RUN)/hpc demo

.PHONY: demo-clean
demo-clean: setup ## Remove everything that the demo made
	@$(RUN)/hpc demo --clean

.PHONY: preview
preview: engine ## Preview a stack with the rules: make preview STACK=dev [BASE=a commit or branch]; reports in out/reports
	@test -n "$(STACK)" || { echo "usage: make preview STACK=dev [BASE=main]" >&2; exit 2; }
	@BASE="$(BASE)" scripts/pipeline/preview.sh "$(STACK)"

.PHONY: lint
lint: setup ## Formatting, lint and types
	@$(RUN)/ruff format --check --quiet .
	@$(RUN)/ruff check --quiet .
	@$(RUN)/mypy

.PHONY: engine
engine: setup ## Get the Pulumi CLI: find, download or build it (once)
	@$(RUN)/python -m hpc.engine path >/dev/null || echo "no Pulumi engine: the tests that need it are skipped"

.PHONY: test
test: lint engine ## Everything that .ci/run runs
	@$(RUN)/pytest -n auto --no-loadscope-reorder

.PHONY: bench
bench: setup ## Measured comparisons, printed with their baselines
	@for file in benchmarks/*.py; do echo "== $$file"; $(RUN)/python $$file; done

.PHONY: generate
generate: setup ## Make the generated files again (schema, pages of codes and rules)
	@$(RUN)/python -m hpc.spec.schema > hpc/spec/cluster.schema.json
	@$(RUN)/python -m hpc.spec.codes > docs/codes.md
	@$(RUN)/python -m policies.docs
