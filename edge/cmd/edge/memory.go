package main

import (
	"context"
	"log/slog"
	"math"
	"runtime/debug"
)

// aside is what the program takes beside its caches: up to 64 MiB of plans, of
// which usual sizes need few, the pictures being drawn, connections, and the
// runtime itself. Pages of the program's file, about 30 MiB, do not count here.
const aside = 80 << 20

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
