# Everything a person or a machine does here. `make` alone lists it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# -qq keeps errors and drops the registry chatter; plain pip, so that the lock is all it needs.
PIP := $(BIN)/python -m pip --disable-pip-version-check install -qq
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-emit-index-url --annotation-style line
# Change it together with requirements/restate.sha256.
RESTATE := 1.7.12
# Where `make proto` writes to.
PROTO_OUT ?= src
# Tests drive the Chromium of the machine; nothing else is to be fetched for them.
export PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD := 1
# Its theme announces another generator with every build.
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs
# Extra words for the tool a target runs: make test ARGS="-k ledger -x", make lock ARGS=--upgrade.
ARGS ?=
# Tests wait, too: for servers, for processes that start, for the disk. Each worker has servers of its own.
WORKERS ?= $(shell cores=$$(nproc 2>/dev/null || echo 2); echo $$((cores < 8 ? cores + 1 : 8)))
# For how long `make fuzz` looks, on one core.
MINUTES ?= 10

.DEFAULT_GOAL := help
.PHONY: help venv serve cluster test proofs check audit bench profile chaos storm fuzz docs preview pictures lock format proto clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(VENV)/.dev ## make .venv with everything needed to work here

serve: $(VENV)/.serve ## run OnceKey with the quickstart: http://127.0.0.1:8700
	$(BIN)/oncekey serve --config examples/quickstart/oncekey.toml $(ARGS)

cluster: venv $(VENV)/.restate ## run three nodes of Restate and two edges, to be killed one by one
	$(BIN)/python examples/restate-cluster/run.py

NEEDED := $(BIN)/nginx $(BIN)/promtool $(VENV)/.chromium $(VENV)/.restate
PYTEST = $(BIN)/pytest -n $(WORKERS) --dist worksteal

test: venv $(NEEDED) ## run the tests that take minutes together (WORKERS=0 for one test at a time)
	$(PYTEST) -m "not proof and not storm" $(ARGS)

proofs: venv $(NEEDED) ## run the tests that take seconds each: crashes, examples, documents, browsers
	$(PYTEST) -m "proof and not storm" $(ARGS)

chaos: venv $(VENV)/.restate ## break everything for ten minutes, and check what everybody saw (ARGS=--help)
	$(BIN)/python -m tests.chaos $(ARGS)

storm: venv $(VENV)/.restate ## run the tests that kill at named points for minutes, and plant bugs for the checker
	$(BIN)/pytest -m storm $(ARGS)

fuzz: venv ## run the fuzz for minutes instead of seconds (MINUTES=10)
	ONCEKEY_FUZZ_MINUTES=$(MINUTES) $(BIN)/pytest tests/fuzz $(ARGS)

docs: venv $(BIN)/nginx $(VENV)/.chromium ## build the documentation into build/site, run every snippet and check every page
	$(MKDOCS) build --strict
	$(BIN)/pytest tests/docs $(ARGS)

preview: venv ## show the documentation while it is written: http://127.0.0.1:8702
	$(MKDOCS) serve --dev-addr 127.0.0.1:8702

pictures: venv $(VENV)/.chromium ## take the pictures of the console and of the tour anew
	$(BIN)/python docs/pictures/demo.py
	ONCEKEY_PICTURES=docs/pictures $(BIN)/pytest tests/browser/test_pictures.py $(ARGS)

check: venv ## check format, lint, types and layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

# Strict: what nobody could be asked about is not known to be good.
audit: $(BIN)/pip-audit ## ask the advisories of PyPI about every version that is pinned
	@for lock in requirements/*.txt; do echo $$lock; \
		$(BIN)/pip-audit --strict --require-hashes --disable-pip $(ARGS) -r $$lock || exit 1; done

format: venv ## format the code and fix what the linter can fix
	$(BIN)/ruff check --fix-only --exit-zero .
	$(BIN)/ruff format .

proto: venv ## generate the gRPC code again from its proto
	$(BIN)/python -m grpc_tools.protoc -Isrc \
		--plugin=$(BIN)/protoc-gen-mypy --plugin=$(BIN)/protoc-gen-mypy_grpc \
		--python_out=$(PROTO_OUT) --mypy_out=quiet:$(PROTO_OUT) \
		--grpc_python_out=$(PROTO_OUT) --mypy_grpc_out=quiet:$(PROTO_OUT) \
		oncekey/api/grpc/oncekey.proto

bench: $(VENV)/.bench $(BIN)/nginx $(VENV)/.restate ## measure OnceKey beside its peers
	$(BIN)/python -m bench $(ARGS)

profile: $(VENV)/.bench $(VENV)/.restate ## say where the time of one request goes (ARGS="--against HEAD~1" to compare)
	$(BIN)/python -m bench.profile $(ARGS)

lock: $(BIN)/uv ## pin every version again (ARGS=--upgrade for newer ones)
	$(COMPILE) $(ARGS) --all-extras --group dev pyproject.toml -o requirements/dev.txt
	$(COMPILE) $(ARGS) --extra edge --group build -c requirements/dev.txt pyproject.toml -o requirements/serve.txt
	$(COMPILE) $(ARGS) requirements/bench.in -o requirements/bench.txt

clean: ## remove .venv, caches and build output
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find src tests examples bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "OnceKey needs Python 3.11 or newer: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

# A stamp per set of requirements makes a second call instant. The development set contains the serving one.
$(VENV)/.serve: requirements/serve.txt pyproject.toml | $(BIN)/python
	@echo "Installing what serving needs into $(VENV) ..."
	@$(PIP) -r requirements/serve.txt
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: requirements/dev.txt pyproject.toml | $(BIN)/python
	@echo "Installing what development needs into $(VENV) ..."
	@$(PIP) -r requirements/dev.txt
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@ $(VENV)/.serve

$(VENV)/.bench: requirements/bench.txt $(VENV)/.dev
	@echo "Installing the peers to measure against ..."
	@$(PIP) -r requirements/bench.txt
	@touch $@

# No wheel brings nginx. Unpacked, not installed: that needs no root and starts no service.
$(BIN)/nginx: | $(BIN)/python
	@found=$$(PATH=$$PATH:/usr/sbin command -v nginx); \
	if [ -z "$$found" ] && command -v apt-get >/dev/null; then \
		echo "Unpacking nginx into $(VENV) ..."; \
		mkdir -p $(VENV)/nginx && cd $(VENV)/nginx \
			&& { apt-get -qq download nginx 2>/dev/null || { apt-get -qq update && apt-get -qq download nginx; }; } \
			&& dpkg -x nginx_*.deb . && found=$$PWD/usr/sbin/nginx; \
	fi; \
	if [ -n "$$found" ]; then ln -sf "$$found" $(abspath $@); \
	else echo "There is no nginx here, and no way to fetch it: what needs it is left out."; fi

# As nginx: promtool checks the rules and the dashboard, prometheus scrapes a server with them.
$(BIN)/promtool: | $(BIN)/python
	@found=$$(command -v promtool); \
	if [ -z "$$found" ] && command -v apt-get >/dev/null; then \
		echo "Unpacking prometheus into $(VENV) ..."; \
		mkdir -p $(VENV)/prometheus && cd $(VENV)/prometheus \
			&& { apt-get -qq download prometheus 2>/dev/null || { apt-get -qq update && apt-get -qq download prometheus; }; } \
			&& dpkg -x prometheus_*.deb . && rm prometheus_*.deb && found=$$PWD/usr/bin/promtool; \
	fi; \
	if [ -n "$$found" ]; then \
		ln -sf "$$found" $(abspath $(BIN)/promtool) && ln -sf "$$(dirname "$$found")/prometheus" $(abspath $(BIN)/prometheus); \
	else echo "There is no promtool here, and no way to fetch it: what needs it is left out."; fi

# Installed, where that is allowed: a browser has too many libraries to be unpacked beside them.
$(VENV)/.chromium: | $(BIN)/python
	@has_chromium() { command -v chromium || command -v chromium-browser || command -v google-chrome; }; \
	if ! has_chromium >/dev/null && command -v apt-get >/dev/null; then \
		if [ "$$(id -u)" = 0 ]; then as=env; elif sudo -n true 2>/dev/null; then as="sudo -n"; else as=; fi; \
		if [ -n "$$as" ]; then \
			echo "Installing Chromium for the tests of the console ..."; \
			install="$$as env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends chromium"; \
			$$install >/dev/null 2>&1 || { $$as apt-get -qq update && $$install >/dev/null; }; \
		fi; \
	fi; \
	if has_chromium >/dev/null; then touch $@; \
	else echo "There is no Chromium here, and no right to install it: the tests in a browser are left out."; fi

# The packages are programs and nothing else: none of their scripts runs, and each program has to be the one known here.
$(VENV)/.restate: requirements/restate.sha256 | $(BIN)/python
	@command -v npm >/dev/null \
		|| { echo "The Restate server comes from npm, and there is no npm here: install Node.js with npm."; exit 1; }
	@echo "Installing the Restate server into $(VENV) ..."
	@rm -rf $(VENV)/restate && mkdir -p $(VENV)/restate
	@SCARF_ANALYTICS=false DO_NOT_TRACK=1 npm install --prefix $(VENV)/restate --ignore-scripts --no-save --no-package-lock \
		--no-audit --no-fund --no-update-notifier --loglevel=error \
		@restatedev/restate-server@$(RESTATE) @restatedev/restatectl@$(RESTATE) >/dev/null
	@platform=$$(node -p 'process.platform + "-" + process.arch'); \
	grep -- "-$$platform/" $< | (cd $(VENV)/restate && sha256sum --check --quiet) || { rm -rf $(VENV)/restate; \
		echo "What npm brought as Restate $(RESTATE) for $$platform is not what $< lists: it is removed."; exit 1; }
	@for program in $(VENV)/restate/node_modules/@restatedev/*/bin/*; do ln -sf "$$PWD/$$program" $(BIN)/; done
	@touch $@

$(BIN)/uv: | $(BIN)/python
	@$(PIP) uv

$(BIN)/pip-audit: | $(BIN)/python
	@$(PIP) pip-audit
