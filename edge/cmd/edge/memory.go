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
	// baseBytes is what the program takes beside its caches and connections: up to 64 MiB of
	// plans, of which usual sizes need few, a picture being drawn, and the runtime itself.
	// Pages of the program's file, about 30 MiB, do not count here.
	baseBytes = 72 << 20
	// workerBytes is what another picture takes that is drawn at the same time, if both are
	// as large as they can be.
	workerBytes = 50 << 20
	// connectionBytes is what a connection takes at most while a request arrives, in clear and
	// by TLS, by TestMemoryOfAConnection in shared/httpserver.
	connectionBytes    = 80 << 10
	tlsConnectionBytes = 116 << 10
	// connectionStep is by how many more or fewer connections the limit is set anew,
	// which stops the program for a moment.
	connectionStep = 256
)

// limitMemory has the garbage collector keep the program near the bytes that its
// caches are given and its slots and bodies take, until ctx ends. Without a limit it would let the
// heap grow to twice of what is in use before it collects. A quarter of the caches is
// left to garbage and to gaps between values of different sizes. Connections add to the
// limit while they are open: it would be passed by what is in use otherwise, and the
// collector would never rest.
//
// A limit that whoever started the program has set with GOMEMLIMIT stays.
func limitMemory(ctx context.Context, log *slog.Logger, caches int64, workers, bodies int, overTLS bool) {
	unset := debug.SetMemoryLimit(-1) == math.MaxInt64
	limit := caches + caches/4 + baseBytes + int64(workers-1)*workerBytes + int64(bodies)
	if unset {
		debug.SetMemoryLimit(limit)
	}
	log.InfoContext(ctx, "memory", "caches_bytes", caches, "limit_bytes", debug.SetMemoryLimit(-1))
	if unset {
		perConnection := int64(connectionBytes)
		if overTLS {
			perConnection = tlsConnectionBytes
		}
		go adjustForConnections(ctx, limit, perConnection)
	}
}

// adjustForConnections adds the connections that are open, of so many bytes each, to a limit, until
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
