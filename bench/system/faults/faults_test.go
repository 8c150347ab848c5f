package faults

import (
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// What was acknowledged must be there; what was sent without a response may be.
func TestWriteLogDetectsLoss(t *testing.T) {
	t.Parallel()
	p := &testUser{SignedInUser: site.SignedInUser{Token: core.Token{User: 7}}, acked: skinSet, pid: 1, tid: 20, hash: "abc", closetTID: 3}
	complete := state{UID: 7, Name: "n7a", Skin: "abc", Closet: "20=uploaded", Live: true}
	withoutSkin, withItem, signedOut := complete, complete, complete
	withoutSkin.Skin, withItem.Closet, signedOut.Live = "", "3=first,20=uploaded", false
	for _, test := range []struct {
		name  string
		loose bool
		state state
		want  bool
	}{
		{"all of it", false, complete, true},
		{"less", false, withoutSkin, false},
		{"nothing", false, state{UID: 7, Live: true}, false},
		{"more than was sent", false, withItem, false},
		{"a write without a response", true, withItem, true},
		{"a write that was never sent", true, signedOut, false},
	} {
		p.uncertain = test.loose
		testenv.Equal(t, p.consistentWith(test.state), test.want, "%s: consistent", test.name)
	}
}

// A missed goal is in the verdict unless it is a known issue of the fault.
func TestVerdict(t *testing.T) {
	t.Parallel()
	fail := func(c func(*Row) *counts, status int) func(*Row) {
		return func(r *Row) { c(r).count(status, nil, 0) }
	}
	hits, misses := func(r *Row) *counts { return r.Hits }, func(r *Row) *counts { return r.Misses }
	reads, writes := func(r *Row) *counts { return r.Reads }, func(r *Row) *counts { return r.Writes }
	slowWrite := func(r *Row) { r.Writes.count(504, nil, time.Minute) }
	gaps := func(reads, writes time.Duration) func(*Row) {
		return func(r *Row) { r.Reads.gap, r.Writes.gap = reads, writes }
	}
	known, planned := expectation{knownIssue: true}, expectation{planned: true}
	refused, failing := expectation{writesRefused: true, minWriteGap: 5 * time.Second}, expectation{writesFail: true}
	tokens := func(r *Row) { r.Problems = []string{"tokens are refused"} }
	for _, test := range []struct {
		name     string
		expected expectation
		changes  []func(*Row)
		missed   string // all goals
		verdict  string // those that are no known issue
	}{
		{"a good fail-over", expectation{}, nil, "", ""},
		{"a slow one", expectation{}, []func(*Row){gaps(20*time.Second, 24*time.Second)}, "no writes for 6.0 s besides the detection", "same"},
		{"a slow one that is known", known, []func(*Row){gaps(20*time.Second, 24*time.Second)}, "no writes for 6.0 s besides the detection", ""},
		{"one without reads for long", known, []func(*Row){gaps(24*time.Second, 24*time.Second)}, "no reads for 6.0 s besides the detection; no writes for 6.0 s besides the detection", "no reads for 6.0 s besides the detection"},
		{"one during which writes may fail", failing, []func(*Row){gaps(20*time.Second, time.Minute)}, "", ""},
		{"one in which they are refused", refused, []func(*Row){gaps(20*time.Second, time.Minute), fail(writes, 503)}, "", ""},
		{"refused with another status", refused, []func(*Row){gaps(20*time.Second, time.Minute), fail(writes, 503), fail(writes, 500)}, "writes fail other than with 503", "same"},
		{"not refused", refused, []func(*Row){gaps(0, 0)}, "all writes were accepted; writes were accepted within 0.0 s", "same"},
		{"refused for a moment", refused, []func(*Row){gaps(0, 0), fail(writes, 503), fail(reads, 503)}, "writes were accepted within 0.0 s", "same"},
		{"a loss", known, []func(*Row){func(r *Row) { r.Lost = 2 }}, "2 users lack acknowledged writes", "same"},
		{"stale answers", expectation{}, []func(*Row){func(r *Row) { r.Mismatched = 1 }}, "edges differ from PostgreSQL in 1 answers", "same"},
		{"tokens that are refused", known, []func(*Row){tokens}, "tokens are refused", "same"},
		{"no picture", known, []func(*Row){fail(hits, 503)}, "pictures in memory fail", "same"},
		{"no new picture", expectation{}, []func(*Row){fail(misses, 503)}, "new pictures fail", "same"},
		{"no new picture, which is known", known, []func(*Row){fail(misses, 503)}, "new pictures fail", ""},
		{"a restart that reads notice", planned, []func(*Row){fail(reads, 503)}, "1 reads fail", "same"},
		{"a restart that writes notice", planned, []func(*Row){fail(writes, 503)}, "1 writes fail", "same"},
		{"a known issue at a restart", expectation{knownIssue: true, planned: true}, []func(*Row){fail(reads, 503), fail(writes, 503)}, "1 reads fail; 1 writes fail", "same"},
		{"a write that takes long", known, []func(*Row){fail(misses, 503), slowWrite}, "a write took 60.0 s; new pictures fail", "a write took 60.0 s"},
	} {
		r := Row{Fault: "b", expected: test.expected, traffic: traffic{newCounts(), newCounts(), newCounts(), newCounts()}, Detected: 18 * time.Second}
		gaps(20*time.Second, 22*time.Second)(&r)
		for _, change := range test.changes {
			change(&r)
		}
		cmptest.Same(t, strings.Join(r.Missed(), "; "), test.missed, "%s", test.name)
		want, got := test.verdict, ""
		if want == "same" {
			want = test.missed
		}
		if err := Verdict([]Row{{Fault: "a", traffic: traffic{newCounts(), newCounts(), newCounts(), newCounts()}}, r}); err != nil {
			got = strings.TrimPrefix(err.Error(), "b: ")
		}
		testenv.Equal(t, got, want, "%s: the verdict", test.name)
	}
	if err := Verdict([]Row{{Fault: "a", Skipped: "it requires root"}}); err == nil || err.Error() != "a: not tried: it requires root" {
		t.Errorf("a fault that was skipped: %v", err)
	}
}

// A skipped fault meets no goals.
func TestTableMarksSkippedFaults(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	row := Row{Fault: "disk full", Description: "a disk is filled", Skipped: "it requires root"}
	testenv.Do(t, WriteTable(&table, []Row{row}))
	if got := table.String(); !strings.Contains(got, "| disk full |") || !strings.Contains(got, "| **not tried**: it requires root |") || strings.Contains(got, "met |") || strings.Contains(got, "is filled") {
		t.Errorf("the table:\n%s", got)
	}
}

// A cluster starts and survives the quick faults, so that the harness does not rot. The full run
// takes PostgreSQL's and MinIO's nodes, and minutes.
func TestCluster(t *testing.T) {
	t.Parallel()
	rows := 0
	Run(t, Options{ClusterOptions: stack.ClusterOptions{RepoRoot: "../../..", Prometheus: "prometheus"}, Quick: true, Out: t.Output()}, func(row Row) {
		rows++
		if row.Acknowledged == 0 || row.Lost+row.Mismatched > 0 {
			t.Errorf("%s: %d writes acknowledged, %d lost, %d mismatched", row.Fault, row.Acknowledged, row.Lost, row.Mismatched)
		}
		if row.Hits != nil && row.Hits.failed > 0 {
			t.Errorf("%s: pictures in memory fail: %s", row.Fault, row.Hits)
		}
		if row.expected.planned && row.Misses.failed+row.Reads.failed+row.Writes.failed > 0 {
			t.Errorf("%s: of new pictures %s fail, of reads %s, of writes %s", row.Fault, row.Misses.failures(), row.Reads.failures(), row.Writes.failures())
		}
	})
	const faults = 4
	testenv.Equal(t, rows, faults+1, "rows")
}
