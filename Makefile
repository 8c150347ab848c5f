# A target of more than one command is a script in deploy/dev; this file is their table of contents.

.PHONY: help run cluster faults test lint fuzz build bench bench-bodies bench-chaos bench-compare bench-flood bench-go bench-hits bench-memory bench-ratio bench-scale bench-sizes bench-speed soak gallery images reset clean clean-all

help: ## Print this help
	@echo 'Targets:'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

run: ## Run everything here until Ctrl-C; OBJECTS=minio for a real MinIO, DEV_PORTS=21000 for other ports
	@deploy/dev/run

cluster: ## Run a cluster of everything here until Ctrl-C: fail-over, four object nodes
	@deploy/dev/cluster

faults: ## Let everything in a cluster fail under load, and write docs/operations/faults.md; ARGS="-only 'core killed'"
	@deploy/dev/faults $(ARGS)

test: ## Run every test; QUICK=1 in a minute without the slow ones; ARGS='-run Closet ./core/...' for some
	@deploy/dev/test $(ARGS)

lint: ## Run the linters; ARGS=--fix mends what they can
	@deploy/dev/lint $(ARGS)

fuzz: ## Run every fuzz target for its share of two minutes; ARGS='-fuzztime 1h -run serve' for longer, and some
	@deploy/dev/fuzz $(ARGS)

build: ## Build core and edge into .dev/bin
	@deploy/dev/build

bench: ## Measure beside what else does the work; QUICK=1 to see whether all runs; ARGS='-only hot'
	@deploy/dev/bench $(ARGS)

bench-go: ## Run the Go benchmarks; ARGS as for test
	@deploy/dev/bench-go $(ARGS)

bench-compare: ## Compare the code's Go benchmarks at BASE=<rev> and here; ARGS='-bench Hit ./edge/...'
	@deploy/dev/bench-compare "$(BASE)" $(ARGS)

bench-chaos: ## Try edges against the truth while all else fails; TEST_CHAOS_SEED=… for a run
	@deploy/dev/bench-chaos $(ARGS)

bench-hits: ## Measure answers from memory beside nginx, and by TLS; ARGS='-rounds 60'
	@deploy/dev/bench-hits $(ARGS)

bench-bodies: ## Measure core and an edge beside uploads that stall and crawl
	@deploy/dev/bench-bodies $(ARGS)

bench-flood: ## Measure hits beside a flood of new pictures
	@deploy/dev/bench-flood

bench-sizes: ## Measure the pictures' sizes; ARGS='-formats webp' for the quick half
	@deploy/dev/bench-sizes $(ARGS)

bench-speed: ## Measure how long pictures take on one core
	@deploy/dev/bench-speed

bench-ratio: ## Simulate the picture cache's hit ratio; ARGS="-only 'Zipf 0.9'" for one trace
	@deploy/dev/bench-ratio $(ARGS)

bench-memory: ## Watch an edge's memory while it draws two million pictures
	@deploy/dev/bench-memory $(ARGS)

bench-scale: ## Measure what changes as all grows; takes an hour and 20 GB; QUICK=1 to see whether all runs
	@deploy/dev/bench-scale $(ARGS)

soak: ## Run a mixed day for MINUTES=20 and plot what the programs have in use
	@deploy/dev/soak $(ARGS)

gallery: ## Draw the README's picture, docs/gallery.png, anew
	@deploy/dev/gallery

images: ## Build the images of docker-compose.yml
	@REVISION=$$(git describe --always --dirty) docker compose build

reset: ## Stop what runs and remove its data: databases, textures, objects
	@deploy/dev/clean data

clean: ## Stop what runs and remove data, secrets and logs; built tools stay
	@deploy/dev/clean

clean-all: ## Stop what runs and remove .dev, built tools included
	@deploy/dev/clean all
