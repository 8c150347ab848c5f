//go:build !race

package faults

import (
	"testing"

	"github.com/veneer-skins/veneer/bench/system/cluster"
)

// A cluster starts and lives through what takes seconds, so that what lets everything
// fail does not rot. The rest of it takes PostgreSQL's and MinIO's nodes, and minutes.
func TestCluster(t *testing.T) {
	t.Parallel()
	rows := 0
	Run(t, Options{Options: cluster.Options{RepoRoot: "../../..", Prometheus: "prometheus"}, Quick: true, Out: t.Output()}, func(row Row) {
		rows++
		if row.Acknowledged == 0 || row.Lost+row.Mismatched > 0 {
			t.Errorf("%s: %d writes acknowledged, %d lost, %d unlike", row.Fault, row.Acknowledged, row.Lost, row.Mismatched)
		}
		if row.Hits != nil && row.Hits.failed > 0 {
			t.Errorf("%s: pictures in memory fail: %s", row.Fault, row.Hits)
		}
	})
	const faults = 3
	if rows != faults+1 { // and everybody, in the end
		t.Errorf("there are %d rows; want %d", rows, faults+1)
	}
}
