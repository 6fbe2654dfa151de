# Two commands bring a fresh checkout to life: `make demo` and `make test`.
# Everything is installed into .venv and the user's cache directory, nowhere else.

SHELL := /bin/bash
.DEFAULT_GOAL := help
PY := .venv/bin/python
PYTEST := $(PY) -m pytest
FAST := not clients and not crash and not cluster and not thorough

.PHONY: help setup setup-servers setup-browser demo test check test-fast test-clients test-crash \
  test-cluster test-thorough test-lowest test-extras bench bench-broker bench-capture bench-pipelines bench-views bench-events bench-sinks bench-patterns \
  bench-console bench-verify bench-mirror test-web docs lock codegen fuzz web clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

setup: ## build .venv with everything (uv if present, else pip); under 2 s when nothing changed
	@scripts/setup

setup-servers: ## install Redis and MariaDB from Debian's packages (needs root)
	DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends redis-server mariadb-server

setup-browser: ## install Chromium from Debian's packages (needs root)
	DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium

demo: setup ## run the main job on the embedded default
	@.venv/bin/tailrace demo $(DEMO)

test: ## environment, then make check beside the test suite; a table of the seconds each took
	@scripts/test

check: setup ## format, lint, types, import layers, docs
	@scripts/check

test-clients: setup ## other people's clients: Java tools, Go, JavaScript, librdkafka … (needs Maven, Go, npm)
	$(PYTEST) tests -m clients

test-crash: setup ## kill -9, power cuts, full disks, for minutes
	$(PYTEST) tests -m crash --timeout 1800

test-cluster: setup ## the same project on a 3-broker Kafka and a Spark cluster (needs Maven)
	$(PYTEST) tests -m cluster --timeout 1800

test-thorough: setup ## thousands of random cases
	HYPOTHESIS_PROFILE=thorough $(PYTEST) tests -m "thorough or not (clients or crash or cluster)" --timeout 3600

test-lowest: setup ## the suite on the lowest versions that pyproject.toml allows
	@scripts/test-lowest

test-extras: setup ## every extra alone, in an environment of its own
	@scripts/test-extras

bench: bench-broker bench-capture bench-pipelines bench-views bench-events bench-patterns bench-sinks bench-console bench-verify bench-mirror ## every benchmark, one table each

bench-broker: setup ## the broker beside Apache Kafka (needs Maven and a C compiler)
	@$(PY) -m benchmarks.broker
	@$(PY) -m benchmarks.writer
	@$(PY) -m benchmarks.transactions
	@$(PY) -m benchmarks.compaction
	@$(PY) -m benchmarks.queues
	@$(PY) -m benchmarks.secured
	@$(PY) -m benchmarks.permissions

bench-capture: setup ## capture beside pg_recvlogical and Debezium, of Postgres and MySQL
	@$(PY) -m benchmarks.capture
	@$(PY) -m benchmarks.capture_mysql

bench-pipelines: setup ## pipelines beside Spark's own state
	@$(PY) -m benchmarks.pipelines
	@$(PY) -m benchmarks.pipelines_streams

bench-views: setup ## views: cost follows the change; ticks, latency; beside Flink SQL
	@$(PY) -m benchmarks.views
	@$(PY) -m benchmarks.views_live
	@$(PY) -m benchmarks.nexmark

bench-events: setup ## decisions a second, take-over, rebuild; beside eventsourcing on SQLite and Postgres
	@$(PY) -m benchmarks.events

bench-patterns: setup ## patterns beside Flink SQL, stored queries beside Lucene's Monitor (needs Maven), a million in memory
	@$(PY) -m benchmarks.patterns
	@$(PY) -m benchmarks.percolate 1000000

bench-sinks: setup ## sinks beside the plain drivers
	@$(PY) -m benchmarks.sinks

bench-console: setup ## the console: look-ups, status calls, subscribers; the demo as a whole
	@$(PY) -m benchmarks.console
	@$(PY) -m benchmarks.demo

bench-verify: setup ## the checker of tailrace verify: ten million sends
	@$(PY) -m benchmarks.verify

bench-mirror: setup ## a mirror beside MirrorMaker 2 (needs Maven)
	@$(PY) -m benchmarks.mirror

docs: setup ## build the documentation into site/
	@$(PY) -m mkdocs build --strict --quiet && echo "site/index.html"

web: ## build the console's page (needs npm)
	cd web && npm install --no-save && npm run build

fuzz: setup ## ten minutes of coverage-guided fuzzing of the decoders (needs atheris)
	$(PY) tests/wire/fuzz.py -max_total_time=600

test-web: ## types, logic and freshness of the console's page (needs npm)
	@scripts/check-web

codegen: setup ## generate wire/messages from the kafka-clients jar (needs Maven)
	$(PY) codegen/generate.py

lock: ## compile requirements/*.txt from pyproject.toml (needs uv)
	echo uv | uv pip compile - --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade -q -o requirements/uv.txt
	uv pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade -q -o requirements/dev.txt

clean: ## remove everything that was built
	rm -rf .venv site dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache web/node_modules
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
