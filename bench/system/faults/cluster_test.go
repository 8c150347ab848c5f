//go:build !race

package faults

import (
	"testing"

	"github.com/veneer-skins/veneer/bench/system/cluster"
)

// A cluster starts and survives the quick faults, so that the harness does not rot. The full run
// takes PostgreSQL's and MinIO's nodes, and minutes.
func TestCluster(t *testing.T) {
	t.Parallel()
	rows := 0
	Run(t, Options{Options: cluster.Options{RepoRoot: "../../..", Prometheus: "prometheus"}, Quick: true, Out: t.Output()}, func(row Row) {
		rows++
		if row.Acknowledged == 0 || row.Lost+row.Mismatched > 0 {
			t.Errorf("%s: %d writes acknowledged, %d lost, %d mismatched", row.Fault, row.Acknowledged, row.Lost, row.Mismatched)
		}
		if row.Hits != nil && row.Hits.failed > 0 {
			t.Errorf("%s: pictures in memory fail: %s", row.Fault, row.Hits)
		}
	})
	const faults = 3
	if rows != faults+1 { // and the final comparison
		t.Errorf("there are %d rows; want %d", rows, faults+1)
	}
}
