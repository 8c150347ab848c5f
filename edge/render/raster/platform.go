//go:build amd64 && !amd64.v3

package raster

// Platform is the processor architecture. Here the compiler does not fuse floating-point
// multiplications and additions, so that files depend on the code only, and TestRevision guards
// them.
const Platform = "amd64"
