# `make test` is the one that must pass; the others are parts of it, or shortcuts.
SHELL := /bin/bash
.DEFAULT_GOAL := help

cargo_target := $(or $(CARGO_TARGET_DIR),target)

.PHONY: help
help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## The three incidents against an embedded snapshot, over real TLS
	cargo run --locked -- demo

.PHONY: test
test: control-plane tools ## Everything: unit, integration and end-to-end tests, and the static binary in an empty root
	cargo test --locked --workspace --no-fail-fast
	tests/static-binary.sh

# The end-to-end tests look for the link next to Cargo's own folders, or in KUBEBUILDER_ASSETS.
.PHONY: control-plane
control-plane: ## Build etcd, kube-apiserver and kube-controller-manager for the tests; minutes the first time
	@folder=$$(tests/control-plane/build.sh) && mkdir -p $(cargo_target) && ln -sfn "$$folder" $(cargo_target)/control-plane

.PHONY: tools
tools: ## Install the browser and xmllint, by which tests look at what is printed, if they are missing
	@tests/tools.sh

.PHONY: e2e
e2e: control-plane ## The end-to-end tests alone; make e2e ONLY=incidents for some of them
	cargo test --locked --test e2e -- $(ONLY)

.PHONY: drills
drills: ## Attacks on a running guard, with figures; make drills ONLY=hooks for some of them
	cargo test --locked --profile $(or $(DRILL_PROFILE),ci) --test drills -- $(ONLY)

# A failing world is printed as files for `review`; FIRST=SEED WORLDS=1 looks at it again.
.PHONY: properties
properties: ## Random worlds against the reference model and the properties; make properties WORLDS=1000000
	CASCADE_GUARD_WORLDS=$(or $(WORLDS),10000) CASCADE_GUARD_FIRST_WORLD=$(or $(FIRST),1) \
		cargo test --locked --profile ci --package cascade-guard-core --test reference

.PHONY: lives
lives: ## A hundred thousand random lives of the rollout watchdog, optimised; ordinary tests live through fewer
	CASCADE_GUARD_LIVES=100000 cargo test --locked --profile ci --package cascade-guard-core --test watchdog

.PHONY: lint
lint: ## What CI checks besides the tests; the core first and alone, with its own dependencies
	cargo fmt --all --check
	cargo clippy --locked --package cascade-guard-core --all-targets -- -D warnings
	cargo clippy --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --locked --workspace --no-deps
	cargo deny --locked check bans licenses sources

.PHONY: crds
crds: ## Write manifests/guardpolicies.yaml and the watchdog's definitions anew from the types
	cargo run --locked --quiet -- crds > $(cargo_target)/guardpolicies.yaml
	mv $(cargo_target)/guardpolicies.yaml manifests/guardpolicies.yaml
	cargo run --locked --quiet -- crds --watchdog > $(cargo_target)/definitions.yaml
	mv $(cargo_target)/definitions.yaml manifests/components/watchdog/definitions.yaml

.PHONY: image
image: ## Build the container image; needs docker, or DOCKER=podman
	$(or $(DOCKER),docker) build --tag cascade-guard:$$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml) .

.PHONY: image-watchdog
image-watchdog: ## Build the image of the rollout watchdog, which has git and ssh
	$(or $(DOCKER),docker) build --target watchdog --tag cascade-guard-watchdog:$$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml) .
