# The commands of this project. `make demo` and `make test` do their own set-up.
.DEFAULT_GOAL := help
.PHONY: help setup require airflow-setup lock crds demo demo-down test test-fast test-airflow lint helm-lint format bench \
        bench-scale spark-versions soak chaos cluster-up cluster-down images sbom clean clean-cache

UV_VERSION := 0.13.7
CACHE      := $(or $(SPARKPOINT_CACHE),$(HOME)/.cache/sparkpoint)
UV         := $(CACHE)/tools/uv-$(UV_VERSION)/bin/uv
VENV       := .venv
PY         := $(VENV)/bin/python
# Airflow's tree is heavy and strict: it has an environment of its own, from the same lock file.
AIRFLOW_VENV := .venv-airflow
# A cluster's name, and the context of an existing cluster to use instead of a local one.
CLUSTER    ?= demo
CONTEXT    ?=
SPARK_VERSION ?=
export CLUSTER CONTEXT
# What is known of each module, for all checkouts.
export MYPY_CACHE_DIR := $(CACHE)/mypy
# Hundreds of processes import the same packages: compile them once.
unexport PYTHONDONTWRITEBYTECODE

ifneq ($(words $(CACHE)),1)
$(error The cache folder '$(CACHE)' has a space in its name; set SPARKPOINT_CACHE to another one)
endif

help: ## Show the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: require $(VENV)/.ready ## Install what the lock file names into .venv

require:
	@bash dev/require.sh

$(UV): | require
	@echo "==> Installing uv $(UV_VERSION) (usually 5 s, once)"
	@rm -rf $(CACHE)/tools/uv-$(UV_VERSION)
	@python3 -m venv $(CACHE)/tools/uv-$(UV_VERSION)
	@$(CACHE)/tools/uv-$(UV_VERSION)/bin/python -m pip install --quiet uv==$(UV_VERSION)

$(VENV)/.ready: $(UV) pyproject.toml uv.lock | require
	@echo "==> Installing Python packages (usually 1 min at first, then seconds)"
	@$(UV) sync --quiet --frozen --extra operator --extra runtime --extra query
	@touch $@

airflow-setup: require $(AIRFLOW_VENV)/.ready ## Install Airflow and the provider into .venv-airflow

$(AIRFLOW_VENV)/.ready: $(UV) pyproject.toml uv.lock | require
	@echo "==> Installing Airflow (usually 1 min at first, then seconds)"
	@UV_PROJECT_ENVIRONMENT=$(AIRFLOW_VENV) $(UV) sync --quiet --frozen --no-default-groups \
	  --extra airflow --group airflow-test
	@touch $@

lock: $(UV) ## Renew the lock file
	$(UV) lock

crds: setup ## Write crds/, their copies in the chart, and the reference pages
	@$(PY) -m dev.crds

demo: setup ## Raise a cluster, run the example job in it, and show it
	@$(PY) -m dev.demo up

demo-down: setup ## Remove the example job; the cluster stays
	@$(PY) -m dev.demo down

lint: setup helm-lint ## Format, lint, types, layers, chart
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports

helm-lint: setup ## The chart alone, with Helm's own checks
	@$(PY) -m dev.helm

format: setup ## Format and fix what can be fixed
	@$(VENV)/bin/ruff format .
	@$(VENV)/bin/ruff check --fix .

test-fast: setup ## Unit tests but for the series of kills, under two minutes
	@$(PY) -m pytest tests/unit -q -n 4 --dist worksteal -m 'not soak and not kills'

test-airflow: airflow-setup ## The provider and the DAGs in a real Airflow
	@$(AIRFLOW_VENV)/bin/python -m pytest tests/airflow -q --durations=10

test: lint airflow-setup ## Everything: unit tests, real Airflow, real Spark, real S3, real Kubernetes
	@$(PY) -m dev.suites

soak: setup airflow-setup ## The full counts of the crash and capture tests
	@$(PY) -m pytest tests -q -m soak
	@$(AIRFLOW_VENV)/bin/python -m pytest tests/airflow -q -m soak

chaos: setup ## The crash matrix [STEPS=upgrade-stop-operator,… | FAULTS=s3,…] [SEED=7 MINUTES=30] [LANES=2]
	@$(PY) -m tests.chaos $(if $(STEPS),--steps $(STEPS)) $(if $(FAULTS),--faults $(FAULTS)) $(if $(SEED),--seed $(SEED)) \
	  $(if $(MINUTES),--minutes $(MINUTES)) $(if $(LANES),--lanes $(LANES))

bench: setup ## Measure, and write docs/benchmarks.md
	@$(PY) -m tests.bench

bench-scale: setup ## Measure the operator with up to 3,000 jobs, and write docs/scale.md [JOBS="100 300"]
	@$(PY) -m tests.bench.scale $(if $(JOBS),--jobs $(JOBS))

spark-versions: setup ## Run queries from each Spark to each, and write docs/spark-versions.md
	@$(PY) -m tests.spark.versions

cluster-up: setup ## Raise the local Kubernetes [CLUSTER=demo] [CONTEXT=name]
	@$(PY) -m dev.cluster up

cluster-down: setup ## End it [CLUSTER=demo]
	@$(PY) -m dev.cluster down

images: setup ## Build our images and load them [CLUSTER=demo] [SPARK_VERSION=4.2.1]
	@$(PY) -m dev.image $(if $(SPARK_VERSION),--spark-version $(SPARK_VERSION))

sbom: setup ## What is in the images, as CycloneDX, into build/sbom/
	@$(PY) -m dev.sbom

clean: ## End every local cluster and remove what was built in this checkout
	@env -u CONTEXT python3 -m dev.cluster delete --all
	@rm -rf $(VENV) .venv-airflow .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

clean-cache: clean ## Remove also the caches outside the checkout
	@cd $(CACHE) && rm -rf bench clusters code debian helm jars kubernetes layers locks mypy sparks tools versions
