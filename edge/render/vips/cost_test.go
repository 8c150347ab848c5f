//go:build !race

package vips_test

import (
	"testing"

	"github.com/veneer-skins/veneer/edge/render/internal/costtest"
)

func BenchmarkCost(b *testing.B) { costtest.Accuracy(b, reducer) }

func TestCostLimit(t *testing.T) {
	t.Parallel()
	costtest.Limit(t, reducer)
}
