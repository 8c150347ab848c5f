package main

import (
	"context"
	"log/slog"
	"math"
	"runtime/debug"
)

// aside is what the program takes beside its caches: up to 64 MiB of plans, the
// pictures being drawn, connections, and the runtime itself.
const aside = 96 << 20

// limitMemory has the garbage collector keep the program near the bytes that its
// caches are given. Without a limit it would let the heap grow to twice of what is
// in use before it collects. An eighth of the caches is left to garbage and to
// gaps between values of different sizes.
//
// A limit that whoever started the program has set with GOMEMLIMIT stays.
func limitMemory(ctx context.Context, log *slog.Logger, caches int64) {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(caches + caches/4 + aside)
	}
	log.InfoContext(ctx, "memory", "caches_bytes", caches, "limit_bytes", debug.SetMemoryLimit(-1))
}
