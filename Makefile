# `make help` lists what there is. Everything needs only Go and make, except `e2e`,
# `clients`, `hostile`, `chaos` and the benches, which say what they need.

GO       ?= go
BIN      := bin
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS  := -s -w -X github.com/ommer/ommer/bus/process.version=$(VERSION)
BLOCKS   ?= $(shell $(GO) list -m -f '{{.Dir}}' github.com/ethereum/go-ethereum)/core/rawdb/eradb/testdata/sepolia-00021-b8814b14.era1
FUZZTIME ?= 20s
GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
NATS     := github.com/nats-io/nats-server/v2@v2.15.2
CLIENTS  := deploy/e2e/clients/node_modules/.package-lock.json
GETH     := github.com/ethereum/go-ethereum/cmd/geth@v1.17.8

.DEFAULT_GOAL := help
.PHONY: help build run test race fuzz bench bench-bus bench-connections e2e clients hostile chaos lint golden cross clean

help: ## This list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build bin/ommer, bin/ommer-edge and bin/ommer-worker
	@mkdir -p $(BIN)
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/ ./deploy/cmd/ommer ./edge/cmd/ommer-edge ./workers/cmd/ommer-worker

run: build ## Build, then serve real Sepolia blocks on this machine
	@$(GO) mod download github.com/ethereum/go-ethereum
	$(BIN)/ommer serve --blocks $(BLOCKS)

test: ## Every test that needs no other program
	$(GO) vet ./...
	$(GO) test ./...

race: ## The same tests under the race detector
	$(GO) test -race ./...

fuzz: ## Each fuzz target for FUZZTIME (20s)
	@for pkg in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "== $$pkg $$target"; \
	    $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x $$pkg || exit 1; \
	  done; \
	done

e2e: build $(BIN)/nats-server $(BIN)/geth ## The programs as processes, and their answers against those of geth
	OMMER_BIN=$(CURDIR)/$(BIN) $(GO) test -count=1 -v -timeout 20m -tags e2e -skip '^TestClients' ./deploy/e2e/... ./deploy/bench

clients: build $(BIN)/nats-server $(CLIENTS) ## web3.js, ethers, viem, ws and wscat against the programs; needs Node.js 18
	OMMER_BIN=$(CURDIR)/$(BIN) $(GO) test -count=1 -v -timeout 10m -tags e2e -run '^TestClients' ./deploy/e2e/

bench: build $(BIN)/nats-server $(BIN)/geth ## Requests per second, CPU per request and memory per connection, against geth
	$(GO) run ./deploy/bench --bin $(CURDIR)/$(BIN)

bench-bus: $(BIN)/nats-server ## The bus alone: CPU per request of each way to ask, beside nc.Request
	$(GO) run ./deploy/bench bus --bin $(CURDIR)/$(BIN)

bench-connections: build $(BIN)/nats-server $(BIN)/geth ## 150,000 connections held on this machine, and the memory they take (Linux)
	$(GO) run ./deploy/bench connections --bin $(CURDIR)/$(BIN)

hostile: build $(BIN)/nats-server ## Attackers on a running edge beside honest clients: ends, memory, latency; HOSTILE=--short
	$(GO) run ./deploy/hostile --bin $(CURDIR)/$(BIN) $(HOSTILE)

chaos: build $(BIN)/nats-server ## A deployment whose parts die, freeze and lose each other, under checked load; Linux, root; CHAOS='--duration 10m --seed N'
	$(GO) run ./deploy/chaos --bin $(CURDIR)/$(BIN) $(CHAOS)

lint: ## gofmt, go vet and golangci-lint
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo 'run gofmt -w on these'; exit 1; }
	$(GO) vet ./...
	$(GO) run $(GOLANGCI) run ./...

golden: ## Rewrite golden files
	$(GO) test $$(grep -rl --include='*_test.go' 'flag.Bool("update"' . | xargs -n 1 dirname | sort -u) -update

cross: ## Build for linux/arm64 and darwin/arm64 as well
	@for target in linux/arm64 darwin/arm64; do \
	  echo "== $$target"; \
	  CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target#*/} $(GO) build -o /dev/null ./deploy/cmd/ommer && \
	  CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target#*/} $(GO) build -o /dev/null ./edge/cmd/ommer-edge && \
	  CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target#*/} $(GO) build -o /dev/null ./workers/cmd/ommer-worker || exit 1; \
	done

clean: ## Remove what was built
	rm -rf $(BIN)

$(CLIENTS): deploy/e2e/clients/package-lock.json
	npm ci --prefix deploy/e2e/clients --ignore-scripts --no-audit --no-fund

$(BIN)/nats-server:
	GOBIN=$(CURDIR)/$(BIN) $(GO) install $(NATS)

$(BIN)/geth:
	GOBIN=$(CURDIR)/$(BIN) $(GO) install $(GETH)
