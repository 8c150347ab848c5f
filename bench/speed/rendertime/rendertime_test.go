package main

import (
	"testing"
	"time"
)

func TestEveryTextureIsInTheCorpus(t *testing.T) {
	t.Parallel()

	for _, name := range append(skins, capes...) {
		if texture, err := findTexture(name); err != nil || texture.Name != name {
			t.Errorf("findTexture(%q) = %q, %v", name, texture.Name, err)
		}
	}
	if texture, err := findTexture("Unknown"); err == nil {
		t.Errorf("findTexture(Unknown) = %q", texture.Name)
	}
}

// The CPU time grows while something is computed.
func TestProcessorTimePasses(t *testing.T) {
	t.Parallel()

	began, err := processorTime()
	if err != nil {
		t.Fatal(err)
	}
	for spent := began; spent <= began; {
		if spent, err = processorTime(); err != nil {
			t.Fatal(err)
		}
	}
}

// The heap use of other goroutines counts as well, so this test does not run in parallel.
func TestHeapOf(t *testing.T) {
	got, err := heapOf(func() ([]byte, error) { return make([]byte, 1<<16), nil })
	if err != nil || got.objects != 1 || got.bytes>>10 != 64 { // the runtime allocates some bytes now and then
		t.Errorf("one slice of 64 KiB: %v, %v", got, err)
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()

	if got := median([]time.Duration{9, 1, 7, 2, 8}); got != 7 {
		t.Errorf("median: %d; want 7", got)
	}
}
