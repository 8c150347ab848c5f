package main

import (
	"context"
	"log/slog"
	"math"
	"runtime/debug"
	"time"

	"github.com/veneer-skins/veneer/shared/httpserver"
)

const (
	// baseBytes is the memory of everything except caches and connections: up to 64 MiB of
	// sample maps (the usual sizes need few), one render, and the runtime. Pages of
	// the executable, about 30 MiB, do not count.
	baseBytes = 72 << 20
	// workerBytes is the memory of each further concurrent render, at the maximum size.
	workerBytes = 50 << 20
	// spriteBytes is the memory of a sprite that is being made: 3.2 MB of pixels, and eight skins of usual
	// sizes. Eight of the maximum size would be 32 MB.
	spriteBytes = 4 << 20
	// connectionBytes is the maximum memory of a connection while a request arrives, without
	// and with TLS, as TestConnectionMemory in shared/httpserver measures it.
	connectionBytes    = 80 << 10
	tlsConnectionBytes = 116 << 10
	// connectionStep is the change in the number of connections at which the limit is
	// adjusted: debug.SetMemoryLimit stops the world.
	connectionStep = 256
)

// limitMemory sets the garbage collector's memory limit from the budgets of caches, workers
// and request bodies, and adjusts it to the number of connections until ctx ends. Without a
// limit the heap would grow to twice the live memory. A quarter of the caches is added for
// garbage and fragmentation. Connections are added while they are open: otherwise the live
// memory could exceed the limit, and the collector would run all the time.
//
// A limit that is set with GOMEMLIMIT is not changed.
func limitMemory(ctx context.Context, log *slog.Logger, cfg settings) {
	caches := cfg.Pictures.CacheBytes + cfg.Pictures.TextureCacheBytes + cfg.Mappings.Bytes + cfg.Mappings.NegativeBytes
	unset := debug.SetMemoryLimit(-1) == math.MaxInt64
	workers := int64(cfg.Pictures.Workers())
	sprites := 2*workers + 1 // as many as edge.Pictures makes at once
	limit := caches + caches/4 + baseBytes + (workers-1)*workerBytes + sprites*spriteBytes + int64(cfg.Limits.BodiesBytes)
	if unset {
		debug.SetMemoryLimit(limit)
	}
	log.InfoContext(ctx, "memory", "caches_bytes", caches, "limit_bytes", debug.SetMemoryLimit(-1))
	if unset {
		perConnection := int64(connectionBytes)
		if cfg.TLSCert != "" {
			perConnection = tlsConnectionBytes
		}
		go adjustForConnections(ctx, limit, perConnection)
	}
}

// adjustForConnections adds perConnection bytes for every open connection to the limit, until
// ctx ends.
func adjustForConnections(ctx context.Context, limit, perConnection int64) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for counted := int64(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if open := httpserver.Connections() / connectionStep * connectionStep; open != counted {
			debug.SetMemoryLimit(limit + open*perConnection)
			counted = open
		}
	}
}
