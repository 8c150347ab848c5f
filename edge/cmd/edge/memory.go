package main

import (
	"context"
	"log/slog"
	"math"
	"runtime/debug"
	"time"

	"github.com/veneer-skins/veneer/shared/serve"
)

const (
	// aside is what the program takes beside its caches and connections: up to 64 MiB of
	// plans, of which usual sizes need few, a picture being drawn, and the runtime itself.
	// Pages of the program's file, about 30 MiB, do not count here.
	aside = 72 << 20
	// slotBytes is what another picture takes that is drawn at the same time, if both are
	// as large as they can be.
	slotBytes = 50 << 20
	// connectionBytes is what a connection takes at most while a request arrives, in clear and
	// by TLS, by TestMemoryOfAConnection in shared/serve.
	connectionBytes    = 80 << 10
	tlsConnectionBytes = 116 << 10
	// connectionsEach is by how many more or fewer connections the limit is set anew,
	// which stops the program for a moment.
	connectionsEach = 256
)

// limitMemory has the garbage collector keep the program near the bytes that its
// caches are given and its slots and bodies take, until ctx ends. Without a limit it would let the
// heap grow to twice of what is in use before it collects. A quarter of the caches is
// left to garbage and to gaps between values of different sizes. Connections add to the
// limit while they are open: it would be passed by what is in use otherwise, and the
// collector would never rest.
//
// A limit that whoever started the program has set with GOMEMLIMIT stays.
func limitMemory(ctx context.Context, log *slog.Logger, caches int64, slots, bodies int, overTLS bool) {
	isOurs := debug.SetMemoryLimit(-1) == math.MaxInt64
	limit := caches + caches/4 + aside + int64(slots-1)*slotBytes + int64(bodies)
	if isOurs {
		debug.SetMemoryLimit(limit)
	}
	log.InfoContext(ctx, "memory", "caches_bytes", caches, "limit_bytes", debug.SetMemoryLimit(-1))
	if isOurs {
		each := int64(connectionBytes)
		if overTLS {
			each = tlsConnectionBytes
		}
		go followConnections(ctx, limit, each)
	}
}

// followConnections adds the connections that are open, of so many bytes each, to a limit, until
// ctx ends.
func followConnections(ctx context.Context, limit, each int64) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for counted := int64(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if open := serve.Connections() / connectionsEach * connectionsEach; open != counted {
			debug.SetMemoryLimit(limit + open*each)
			counted = open
		}
	}
}
