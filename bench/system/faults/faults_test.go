package faults

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/core"
)

// What was acknowledged must be there; what was sent without a response may be.
func TestWriteLogDetectsLoss(t *testing.T) {
	t.Parallel()
	p := &testUser{SignedInUser: stack.SignedInUser{Token: core.Token{User: 7}}, acked: skinSet, pid: 1, tid: 20, hash: "abc", closetTID: 3}
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
		if got := p.consistentWith(test.state); got != test.want {
			t.Errorf("%s: consistent is %t", test.name, got)
		}
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	noFailures := traffic{newCounts(), newCounts(), newCounts(), newCounts()}
	missFailure := traffic{newCounts(), newCounts(), newCounts(), newCounts()}
	missFailure.Misses.failure("503", 0)
	hitFailure := traffic{newCounts(), newCounts(), newCounts(), newCounts()}
	hitFailure.Hits.failure("503", 0)
	slowWrite := traffic{newCounts(), newCounts(), newCounts(), newCounts()}
	slowWrite.Misses.failure("503", 0)
	slowWrite.Writes.failure("504", time.Minute)
	longGaps := traffic{newCounts(), newCounts(), newCounts(), newCounts()}
	longGaps.Reads.gap, longGaps.Writes.gap = 6*time.Second, 6*time.Second
	rejected := traffic{newCounts(), newCounts(), newCounts(), newCounts()}
	rejected.Reads.failure("503", 0)
	rejected.Writes.failure("503", 0)
	known, rejecting := expectation{knownIssue: true}, expectation{writesRefused: true, minWriteGap: 5 * time.Second}
	writeFailure := traffic{newCounts(), newCounts(), newCounts(), newCounts()}
	writeFailure.Writes.failure("503", 0)
	otherStatus := traffic{newCounts(), newCounts(), newCounts(), newCounts()}
	otherStatus.Writes.failure("503", 0)
	otherStatus.Writes.failure("500", 0)
	otherStatus.Writes.gap = time.Minute
	f := func(want string, rows ...Row) {
		t.Helper()
		got := ""
		if err := Verdict(rows); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("the verdict is %q; want %q", got, want)
		}
	}
	f("", Row{Fault: "a", traffic: noFailures}, Row{Fault: "b", traffic: missFailure, expected: known})
	f("b: new pictures fail", Row{Fault: "a", traffic: noFailures}, Row{Fault: "b", traffic: missFailure})
	f("b: pictures in memory fail", Row{Fault: "b", traffic: hitFailure, expected: known})
	f("b: a write took 60.0 s", Row{Fault: "b", traffic: slowWrite, expected: known})
	f("b: tokens are refused", Row{Fault: "b", traffic: noFailures, Problems: []string{"tokens are refused"}, expected: known})
	f("b: no reads for 6.0 s besides the detection", Row{Fault: "b", traffic: longGaps, expected: known})
	f("b: 1 reads fail; 1 writes fail", Row{Fault: "b", traffic: rejected, expected: expectation{knownIssue: true, planned: true}})
	f("b: 1 writes fail", Row{Fault: "b", traffic: writeFailure, expected: expectation{planned: true}})
	f("b: all writes were accepted; writes were accepted within 0.0 s", Row{Fault: "b", traffic: noFailures, expected: rejecting})
	f("b: writes fail other than with 503", Row{Fault: "b", traffic: otherStatus, expected: rejecting})
	f("b: writes were accepted within 0.0 s", Row{Fault: "b", traffic: rejected, expected: rejecting})
	f("b: 1 users lack acknowledged writes", Row{Fault: "b", traffic: noFailures, Lost: 1, expected: known})
	f("b: edges differ from PostgreSQL in 2 answers", Row{Fault: "b", traffic: noFailures, Mismatched: 2})
	f("a: not tried: it requires root", Row{Fault: "a", Skipped: "it requires root"})
}

func TestRowReportsMissedGoals(t *testing.T) {
	t.Parallel()
	row := func(change func(*Row)) *Row {
		r := &Row{traffic: traffic{newCounts(), newCounts(), newCounts(), newCounts()}, Detected: 18 * time.Second}
		r.Reads.gap, r.Writes.gap = 20*time.Second, 22*time.Second
		change(r)
		return r
	}
	for _, test := range []struct {
		name   string
		change func(*Row)
		want   string
	}{
		{"a good fail-over", func(*Row) {}, ""},
		{"a slow one", func(r *Row) { r.Writes.gap = 24 * time.Second }, "no writes for 6.0 s besides the detection"},
		{"one during which writes may fail", func(r *Row) { r.Writes.gap, r.expected.writesFail = time.Minute, true }, ""},
		{"one in which they are refused", func(r *Row) {
			r.Writes.gap, r.expected.writesRefused = time.Minute, true
			r.Writes.failure("503", 0)
		}, ""},
		{"a loss", func(r *Row) { r.Lost = 2 }, "2 users lack acknowledged writes"},
		{"stale answers", func(r *Row) { r.Mismatched = 1 }, "edges differ from PostgreSQL in 1 answers"},
		{"tokens that are refused", func(r *Row) { r.Problems = []string{"tokens are refused"} }, "tokens are refused"},
		{"no picture", func(r *Row) { r.Hits.failure("503", 0) }, "pictures in memory fail"},
		{"a restart that is noticed", func(r *Row) { r.Reads.failure("503", 0); r.expected.planned = true }, "1 reads fail"},
		{"a write that takes long", func(r *Row) { r.Writes.failure("504", time.Minute) }, "a write took 60.0 s"},
	} {
		if diff := cmp.Diff(test.want, strings.Join(row(test.change).Missed(), "; ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// A skipped fault meets no goals.
func TestTableMarksSkippedFaults(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	if err := WriteTable(&table, []Row{{Fault: "disk full", Description: "a disk is filled", Skipped: "it requires root"}}); err != nil {
		t.Fatal(err)
	}
	if got := table.String(); !strings.Contains(got, "| disk full |") || !strings.Contains(got, "| **not tried**: it requires root |") || strings.Contains(got, "met |") || strings.Contains(got, "is filled") {
		t.Errorf("the table:\n%s", got)
	}
}
