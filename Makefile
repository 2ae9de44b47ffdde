# Everything here needs Python 3.11 or later and make, and nothing else: Node.js comes from a wheel.
# Environments are built on first use and rebuilt when the files that describe them change.
#   .venv       the project itself, its tests' tools and peers    requirements/main.txt
#   .envs/sdk1  the official Python SDK of the session era        requirements/sdk1.txt
#   .envs/oldest  the oldest of it that still installs            requirements/oldest.txt
#   .envs/tasks  FastMCP's tasks of 2026-07-28                    requirements/tasks.txt
#   .envs/adapters  what puts MCP into the words of LLM providers  requirements/adapters.txt
#   .envs/node  the official TypeScript SDKs, MCP Apps servers, conformance suite   tests/node/package-lock.json
#   .envs/chart helm and what judges charts    requirements/chart.txt, tests/chart/crd/package-lock.json
# Versions are pinned by those files; 'make lock' refreshes all from pyproject.toml, requirements/sdk1.in,
# requirements/oldest.in, requirements/tasks.in, requirements/adapters.in, requirements/chart.in, tests/node/package.json
# and tests/chart/crd/package.json.

PYTHON ?= python3
# Processes that share the tests. These wait more than they work: one more than a small machine has processors.
WORKERS ?= 3
BIN := .venv/bin
PIP := -m pip --quiet --disable-pip-version-check install
LOCKED = $(PYTHON) requirements/locked.py

# Stamps. .venv has two: the demo needs far less than the tests do.
DEMO := .venv/.demo
TEST := .venv/.test
SDK1 := .envs/sdk1/.stamp
OLDEST := .envs/oldest/.stamp
TASKS := .envs/tasks/.stamp
ADAPTERS := .envs/adapters/.stamp
NODE := .envs/node/.stamp
CHART := .envs/chart/.stamp

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-system test-store test-pages conformance chart image dashboards abandoned bench-apps bench-cache bench-provider \
  lint types check environments lock clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{printf "%-20s %s\n", $$1, $$2}'

demo: $(DEMO) ## run the gateway in front of sample servers
	$(BIN)/mcp-front-door demo $(ARGS)

test: $(TEST) $(SDK1) $(OLDEST) $(TASKS) $(ADAPTERS) $(NODE) ## run the tests (ARGS=... goes to pytest)
	$(BIN)/python -m pytest -n $(WORKERS) --no-loadscope-reorder $(ARGS)

# What needs the system's programs.
test-system: test-store test-pages ## run what needs the system's programs: the store over TLS, the status page in Chromium

# Debian's redis-server has the TLS that the server on PyPI is built without.
test-store: $(TEST)
	@command -v redis-server >/dev/null || { echo "make $@: redis-server is missing; install the package redis-server" >&2; exit 1; }
	$(BIN)/python -m pytest --system tests/gateway/stores/test_contract.py $(ARGS)

# chromedriver is in its package chromium-driver.
test-pages: $(TEST)
	@for tool in chromium chromedriver; do command -v $$tool >/dev/null || { \
	  echo "make $@: $$tool is missing; install the packages chromium and chromium-driver" >&2; exit 1; }; done
	$(BIN)/python -m pytest --system tests/status/test_browser.py $(ARGS)

conformance: $(TEST) $(NODE) ## run the official conformance suite, directly and through the gateway
	$(BIN)/python tests/conformance/run.py $(ARGS)

# Its tests are not among those of `make test`: they need helm and 0.5 GB of other tools.
chart: $(TEST) $(CHART) ## render the Helm chart with many values, and have it judged
	$(BIN)/python -m pytest -n $(WORKERS) -o python_files='check_*.py' tests/chart $(ARGS)

image: $(TEST) ## build the container image with buildah, print its size, have it answer (ARGS="--base IMAGE --keep FILE")
	$(BIN)/python -m tests.image.run $(ARGS)

dashboards: $(TEST) ## ask a real Prometheus what the dashboards and alerts ask, under traffic, and kill a server and the store
	$(BIN)/python -m tests.dashboards.run

# Field report L7 at its own size, for which the tests have no time.
abandoned: $(TEST) ## leave 20,000 sessions and 4,000 streams behind, and print what they cost
	$(BIN)/python -m tests.field.abandoned

bench-apps: $(TEST) ## measure the scan for MCP Apps at 300 B, 10 KiB and 1 MiB
	$(BIN)/python -m tests.bench.apps $(ARGS)

bench-cache: $(TEST) ## what a list costs from memory, the store, the server, nginx and FastMCP's cache
	$(BIN)/python -m tests.bench.cache $(ARGS)

bench-provider: $(TEST) ## what stripping a request to an LLM API costs at 10 KiB, 1 MiB and 20 MiB
	$(BIN)/python -m tests.bench.provider $(ARGS)

lint: $(TEST) ## check style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(TEST) ## check types
	$(BIN)/mypy

check: lint types test test-system conformance dashboards ## everything that must pass before a change lands

environments: $(TEST) $(SDK1) $(OLDEST) $(TASKS) $(ADAPTERS) $(NODE) ## build every environment

clean: ## remove environments, caches and what runs left behind
	rm -rf .venv .envs tests/node_modules out build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(DEMO): pyproject.toml requirements/main.txt requirements/locked.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "$(PYTHON) is older than Python 3.11: set PYTHON=")'
	$(LOCKED) .envs/main.lock $(PYTHON) -m venv .venv
	$(LOCKED) .envs/main.lock $(BIN)/python $(PIP) -c requirements/main.txt -e '.[demo]'
	@touch $@

# After $(DEMO), never beside it: both write into one folder.
$(TEST): $(DEMO)
	$(LOCKED) .envs/main.lock $(BIN)/python $(PIP) -c requirements/main.txt -e '.[demo,test]'
	@touch $@

# Order only (after the bar): these need .venv to be there, not to be unchanged.
$(SDK1): requirements/sdk1.in requirements/sdk1.txt | $(DEMO)
	$(LOCKED) .envs/sdk1.lock $(PYTHON) -m venv .envs/sdk1
	$(LOCKED) .envs/sdk1.lock .envs/sdk1/bin/python $(PIP) -c requirements/sdk1.txt -r requirements/sdk1.in
	@touch $@

$(OLDEST): requirements/oldest.in requirements/oldest.txt | $(DEMO)
	$(LOCKED) .envs/oldest.lock $(PYTHON) -m venv .envs/oldest
	$(LOCKED) .envs/oldest.lock .envs/oldest/bin/python $(PIP) -c requirements/oldest.txt -r requirements/oldest.in
	@touch $@

$(TASKS): requirements/tasks.in requirements/tasks.txt | $(DEMO)
	$(LOCKED) .envs/tasks.lock $(PYTHON) -m venv .envs/tasks
	$(LOCKED) .envs/tasks.lock .envs/tasks/bin/python $(PIP) -c requirements/tasks.txt -r requirements/tasks.in
	@touch $@

$(ADAPTERS): requirements/adapters.in requirements/adapters.txt | $(DEMO)
	$(LOCKED) .envs/adapters.lock $(PYTHON) -m venv .envs/adapters
	$(LOCKED) .envs/adapters.lock .envs/adapters/bin/python $(PIP) -c requirements/adapters.txt -r requirements/adapters.in
	@touch $@

$(NODE): requirements/node_env.py tests/node/package.json tests/node/package-lock.json tests/node/.npmrc requirements/main.txt | $(TEST)
	$(LOCKED) .envs/node.lock $(BIN)/python requirements/node_env.py .envs/node
	@touch $@

$(CHART): requirements/chart.in requirements/chart.txt requirements/chart_env.py requirements/node_env.py \
		tests/chart/crd/package.json tests/chart/crd/package-lock.json tests/chart/crd/.npmrc | $(TEST)
	$(LOCKED) .envs/chart.lock $(PYTHON) -m venv .envs/chart
	$(LOCKED) .envs/chart.lock .envs/chart/bin/python $(PIP) -c requirements/chart.txt -r requirements/chart.in
	$(LOCKED) .envs/chart.lock $(BIN)/python requirements/chart_env.py .envs/chart
	@touch $@

UV := .envs/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --upgrade \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links

lock: $(NODE) $(CHART) ## take the newest versions that the ranges allow, and pin them
	$(PYTHON) -m venv .envs/lock
	.envs/lock/bin/python $(PIP) uv
	$(UV) --extra demo --extra test pyproject.toml -o .envs/lock/main.txt
	$(UV) requirements/sdk1.in -o .envs/lock/sdk1.txt
	$(UV) requirements/oldest.in -o .envs/lock/oldest.txt
	$(UV) requirements/tasks.in -o .envs/lock/tasks.txt
	$(UV) requirements/adapters.in -o .envs/lock/adapters.txt
	$(UV) requirements/chart.in -o .envs/lock/chart.txt
	@for name in main sdk1 oldest tasks adapters chart; do \
	  { sed '/^#/!d' requirements/$$name.txt; cat .envs/lock/$$name.txt; } > .envs/lock/$$name.new && \
	  mv .envs/lock/$$name.new requirements/$$name.txt || exit 1; \
	done
	$(BIN)/python requirements/node_env.py --lock .envs/node
	$(BIN)/python requirements/chart_env.py --lock .envs/chart
