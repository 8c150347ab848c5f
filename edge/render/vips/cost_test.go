//go:build !race

package vips_test

import (
	"testing"

	"github.com/veneer-skins/veneer/edge/render/internal/costtest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestCost(t *testing.T) { //nolint:paralleltest // it measures the whole process
	testenv.SkipShort(t)
	costtest.Accuracy(t, reducer)
}

func TestCostLimit(t *testing.T) {
	t.Parallel()
	costtest.Limit(t, reducer)
}
