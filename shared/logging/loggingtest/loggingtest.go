// Package loggingtest captures the log in tests.
package loggingtest

import (
	"bytes"
	"sync"
)

// Buffer is a buffer that may be read while it is written.
type Buffer struct {
	mu      sync.Mutex
	content bytes.Buffer
}

// Write appends to the buffer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.content.Write(p)
}

// String returns all that was written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.content.String()
}
