# Targets of more than one command are scripts in deploy/dev; this file lists them.

.PHONY: help run cluster faults launchers test lint fuzz build bench bench-bodies bench-chaos bench-compare bench-flood bench-go bench-hits bench-memory bench-ratio bench-scale bench-sizes bench-speed soak gallery images reset clean clean-all

help: ## Print this help
	@echo 'Targets:'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

run: ## Run everything here until Ctrl-C; OBJECTS=minio for a real MinIO, DEV_PORTS=21000 for other ports
	@deploy/dev/run

cluster: ## Run a whole cluster here until Ctrl-C: failover, four object store nodes
	@deploy/dev/cluster

faults: ## Inject every fault into a cluster under load, and write docs/operations/faults.md; ARGS="-only 'core killed'"
	@deploy/dev/faults $(ARGS)

launchers: ## Test the API of launchers with programs from elsewhere; ARGS='-suite yggdrasil-mock/test -agent authlib-injector.jar'
	@deploy/dev/launchers $(ARGS)

test: ## Run every test; QUICK=1 in a minute without the slow ones; ARGS='-run Closet ./core/...' for some
	@deploy/dev/test $(ARGS)

lint: ## Run the linters; ARGS=--fix applies automatic fixes
	@deploy/dev/lint $(ARGS)

fuzz: ## Run every fuzz target for its share of two minutes; ARGS='-fuzztime 1h -run fastpath' for longer, and some
	@deploy/dev/fuzz $(ARGS)

build: ## Build core and edge into .dev/bin
	@deploy/dev/build

bench: ## Benchmark Veneer against the alternatives; QUICK=1 only checks that everything runs; ARGS='-only hot'
	@deploy/dev/bench $(ARGS)

bench-go: ## Run the Go benchmarks; ARGS as for test
	@deploy/dev/bench-go $(ARGS)

bench-compare: ## Compare the Go benchmarks at BASE=<rev> with the working tree; ARGS='-bench Hit ./edge/...'
	@deploy/dev/bench-compare "$(BASE)" $(ARGS)

bench-chaos: ## Check that edges stay correct while everything else fails; TEST_CHAOS_SEED=… repeats a run
	@deploy/dev/bench-chaos $(ARGS)

bench-hits: ## Measure cache hits against nginx, without and with TLS; ARGS='-rounds 60'
	@deploy/dev/bench-hits $(ARGS)

bench-bodies: ## Measure core and an edge during stalled and slow uploads
	@deploy/dev/bench-bodies $(ARGS)

bench-flood: ## Measure cache hits during a flood of new pictures
	@deploy/dev/bench-flood

bench-sizes: ## Measure picture sizes against other encoders; ARGS='-formats webp' for the quick half
	@deploy/dev/bench-sizes $(ARGS)

bench-speed: ## Measure render time on one core
	@deploy/dev/bench-speed

bench-ratio: ## Simulate the picture cache's hit ratio; ARGS="-only 'Zipf 0.9'" for one trace
	@deploy/dev/bench-ratio $(ARGS)

bench-memory: ## Measure an edge's memory while it renders two million pictures
	@deploy/dev/bench-memory $(ARGS)

bench-scale: ## Measure how everything scales; takes an hour and 20 GB; QUICK=1 only checks that everything runs
	@deploy/dev/bench-scale $(ARGS)

soak: ## Run a mixed load for MINUTES=20 and plot resource usage
	@deploy/dev/soak $(ARGS)

gallery: ## Regenerate docs/gallery.png and docs/images/views.webp
	@deploy/dev/gallery

images: ## Build the images of docker-compose.yml
	@REVISION=$$(git describe --always --dirty) docker compose build

reset: ## Stop running programs and remove their data: databases, textures, objects
	@deploy/dev/clean data

clean: ## Stop running programs and remove data, secrets and logs; built tools stay
	@deploy/dev/clean

clean-all: ## Stop running programs and remove .dev, built tools included
	@deploy/dev/clean all
