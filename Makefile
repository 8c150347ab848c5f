# The commands are scripts in deploy/dev; this file lists them.

.PHONY: help run cluster faults launchers engine test lint audit fuzz build bench bench-compare bench-go soak gallery images reset clean clean-all

help: ## Print this help
	@echo 'Targets:'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

run: ## Run everything here until Ctrl-C; OBJECTS=minio for a real MinIO, DEV_PORTS=21000 for other ports
	@deploy/dev/run

cluster: ## Run a whole cluster here until Ctrl-C: failover, four object store nodes
	@deploy/dev/faults -stay

faults: ## Inject every fault into a cluster under load, and write docs/operations/faults.md; ARGS="-only 'core killed'"
	@deploy/dev/faults $(ARGS)

launchers: ## Test the API of launchers with programs from elsewhere; ARGS='-suite yggdrasil-mock/test -agent authlib-injector.jar'
	@deploy/dev/launchers $(ARGS)

engine: ## Run the container files and their pages on a Docker Engine, as root: 5 GB in .dev/engine, twenty minutes the first time; QUICK=1 for the main steps
	@deploy/dev/engine $(ARGS)

test: ## Run every test; QUICK=1 in a minute without the slow ones; ARGS='-run Closet ./core/...' for some
	@deploy/dev/test $(ARGS)

lint: ## Run the linters; ARGS=--fix applies automatic fixes
	@deploy/dev/lint $(ARGS)

audit: ## Look for advisories on dependencies; for every night. GOVULNDB=file:///folder for a copy of Go's database
	@deploy/dev/audit

fuzz: ## Run every fuzz target for its share of two minutes; FUZZ_SECONDS=3600 for longer, ARGS=httpserver for some
	@deploy/dev/fuzz $(ARGS)

build: ## Build core and edge into .dev/bin
	@deploy/dev/build

bench: ## Benchmark Veneer against the alternatives; QUICK=1 only checks that everything runs; ARGS='-only hot', ARGS=-h for all
	@deploy/dev/bench $(ARGS)

bench-go: ## Run the Go benchmarks; ARGS='-bench Memory -benchtime 1x ./bench/speed/compare' for some
	@deploy/dev/bench-go $(ARGS)

bench-compare: ## Compare the Go benchmarks at BASE=<rev> with the working tree; ARGS='-bench Hit ./edge/...'
	@deploy/dev/bench-compare "$(BASE)" $(ARGS)

soak: ## Run a mixed load for MINUTES=20 and print resource usage
	@deploy/dev/bench -only soak -soak "$${MINUTES:-20}m" $(ARGS)

gallery: ## Regenerate docs/gallery.png and docs/images/views.webp
	@deploy/dev/install && go run -buildvcs=false ./bench/gallery

images: ## Build the images of docker-compose.yml
	@REVISION=$$(git describe --always --dirty) docker compose build

reset: ## Stop running programs and remove their data: databases, textures, objects
	@deploy/dev/clean data

clean: ## Stop running programs and remove data, secrets and logs; built tools stay
	@deploy/dev/clean

clean-all: ## Stop running programs and remove .dev, built tools included
	@deploy/dev/clean all
