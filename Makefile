# Targets for people and for CI; `make` alone lists them.
DATA     ?= ./.kurabe
LISTEN   ?= 127.0.0.1:7380
FUZZTIME ?= 10s
SUITE    ?=
VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# The Go command is looked up once, and only by a target that uses it: on a bare
# machine scripts/install.sh has to come first.
GO = $(eval GO := $$(shell scripts/go.sh))$(or $(GO),$(error no usable Go))
# Built and not "go run", which adds a line of its own after the totals.
RUN_SUITES = $(GO) build -o .cache/test-run ./test/run && GO="$(GO)" .cache/test-run

# have is what is built so far: a target for a room that does not exist yet is
# neither listed nor defined.
fault := $(wildcard test/fault/*_test.go)
guard := $(wildcard ext/kurabe_guard/Makefile)

# The headers of the MariaDB server: installed, or fetched by scripts/install.sh.
headers = $(firstword $(patsubst %/mysql/service_sql.h,%,$(wildcard /usr/include/mariadb/server/mysql/service_sql.h $(CURDIR)/.cache/mariadb-headers/mysql/service_sql.h)))

# The server's own plugins that the package with its program alone has not.
plugins = $(wildcard $(CURDIR)/.cache/mariadb-plugins/usr/lib/mysql/plugin/*.so)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help install-run install-test install-bench build run test whole check race integration compat clients upgrade unit fault repro vm bench fuzz golden gen lint tidy hooks clean

help: ## This list
	@awk -v fault='$(fault)' -F ':.*## ' '/^[a-z-]+:.*## / && !(fault == "" && /^(fault|repro):/) { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@printf '\n  DATA=%s LISTEN=%s FUZZTIME=%s\n' '$(DATA)' '$(LISTEN)' '$(FUZZTIME)'

install-run:
	@scripts/install.sh run

install-test:
	@scripts/install.sh test

install-bench:
	@scripts/install.sh bench

build: install-run ## Build bin/kurabe (static) and the MariaDB plugin
	@mkdir -p bin
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags '-s -w -X main.version=$(VERSION)' -o bin/kurabe ./cmd/kurabe
	$(if $(guard),$(if $(headers),@$(MAKE) --no-print-directory -C ext/kurabe_guard OUT=$(CURDIR)/bin SERVER=$(headers),@echo "kurabe_guard: not built, the headers of the MariaDB server are missing"))
	$(if $(plugins),@cp $(plugins) bin/)

run: build ## Install what is missing, build, start the service with a demo; Ctrl-C stops it all
	@exec bin/kurabe run --data "$(DATA)" --listen "$(LISTEN)"

test: install-test build ## What CI runs: all suites, but for tests that take long
	@$(RUN_SUITES) $(SUITE)

whole: install-test build ## All tests of all suites: over an hour, before a release
	@$(RUN_SUITES) -whole $(SUITE)

check: ## make test on a machine that may have nothing yet, as CI runs it
	@.ci/run

lint: ## gofmt, vet, staticcheck, shell syntax
	@$(RUN_SUITES) lint

unit: ## Pure tests, and tidy_test: who may import whom, sizes
	@$(RUN_SUITES) unit

race: ## Unit tests under the race detector (needs gcc)
	CGO_ENABLED=1 $(GO) test -race -vet=off ./...

integration: install-test build ## Tests with real servers; as root also once more without root
	@$(RUN_SUITES) -whole lab integration engine unprivileged

compat: install-test build ## boto3 and the AWS CLI against a running service
	@$(RUN_SUITES) compat

clients: install-test build ## Ansible, Cloud Custodian, AWS's driver wrapper and others against a running service; fetches them
	@scripts/clients.sh

upgrade: install-test build ## Earlier program and this one in turn, under writing clients: make upgrade FROM=commit
	KURABE_EARLIER_BIN=$$(scripts/earlier.sh $(or $(FROM),HEAD~1)) .cache/venv/bin/python -B -m pytest -p no:cacheprovider -q test/upgrade

ifneq ($(fault),)
fault: export KURABE_HISTORY_TIME ?= 30m
fault: export KURABE_WHOLE ?= 1
fault: install-test build ## Kill, freeze, cut and fill things while a ledger checks; hours, a shorter form is in test
	@$(RUN_SUITES) -whole fault
	KURABE_SIMULATED_TIME=$${KURABE_SIMULATED_TIME:-1h} KURABE_SIMULATED_SPEND=$${KURABE_SIMULATED_SPEND:-10m} $(GO) test -count=1 -timeout=30m -run=TestHistory ./test/simulated

repro: install-test build ## One run of the fault suite again: make repro SEED=…
	@export KURABE_FAULT_SEED="$(SEED)"; $(RUN_SUITES) -whole fault
endif

vm: build ## Boot a Debian 12 with cgroup v2 and run the limits tests in it (root)
	scripts/vm.sh .cache/vm

# Built and not "go run", so that Ctrl-C reaches the program that cleans up.
bench: install-bench build ## Measure; make bench BENCH="--quick", "--only create,io", "-h"
	@$(GO) build -o .cache/bench-run ./test/bench && .cache/bench-run $(BENCH)

fuzz: ## Each fuzz target for FUZZTIME
	scripts/fuzz.sh $(FUZZTIME)

golden: ## Rewrite the golden files; read the diff before you commit it
	$(GO) test -vet=off $$(grep -rl --include='*_test.go' 'flag.Bool("update"' . | xargs -n 1 dirname | sort -u) -update

gen: ## Rewrite generated code
	$(GO) generate ./...

tidy: ## Bring go.mod and go.sum in line with the imports
	$(GO) mod tidy

hooks: ## Check each commit before it is made (.githooks/pre-commit)
	git config core.hooksPath .githooks

clean: ## Remove what was built; the data folder stays
	rm -rf bin .cache/venv .cache/test-totals
