//go:build !amd64 || amd64.v3

package raster

import "runtime"

// Platform is the processor architecture with the version of the compiler. Here the compiler may
// fuse floating-point multiplications and additions where it likes, which can change the last bit
// of an edge.
var Platform = runtime.GOARCH + " " + runtime.Version()
