package results

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/plot"
)

func TestTicks(t *testing.T) {
	t.Parallel()

	f := func(ticker plot.Ticker, least, greatest float64, want ...string) {
		t.Helper()
		var got []string
		for _, tick := range ticker.Ticks(least, greatest) {
			got = append(got, tick.Label)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("ticks from %v to %v (-want +got):\n%s", least, greatest, diff)
		}
	}

	f(logTicks(number), 0.5, 20, "0.5", "1", "2", "5", "10", "20")
	f(logTicks(number), 0.05, 100, "0.1", "1", "10", "100") // all of them would be too many
	f(logTicks(number), 2100, 4900, "3,000", "4,000")
	f(roundTicks(number), 0, 410, "0", "100", "200", "300", "400")
	f(roundTicks(number), 0, 500, "0", "200", "400")
	f(roundTicks(number), 0, 1, "0", "0.5", "1")
	f(roundTicks(number), 0, 0.3, "0", "0.1", "0.2", "0.3")
}

// The axis of ratios has space for every bar and for the text at its end.
func TestSpan(t *testing.T) {
	t.Parallel()

	chart := bars{labels: 100, values: 40, rows: []bar{
		{heading: "hot"},
		{name: "slower", ratio: Summary{Median: 40, Low: 39, High: 41}},
		{name: "faster, in too few rounds", ratio: Summary{Median: 0.5, Low: math.Inf(-1), High: math.Inf(1)}},
		{name: "not installed", absent: "missing"},
	}}
	least, greatest := chart.span()
	length := math.Log(greatest / least)
	for end, share := range map[string]float64{
		"left": math.Log(0.5/least) / length, "right": math.Log(greatest/41) / length,
	} {
		if need := float64(40.0 / (plotWidth - 2*margin - 100)); share < need-1e-9 || share > 2*need {
			t.Errorf("at the %s end there is room for %.3f of the axis; want %.3f", end, share, need)
		}
	}
	if least, greatest := (&bars{rows: []bar{{heading: "hot"}, {absent: "missing"}}}).span(); least >= 1 || greatest < 2 {
		t.Errorf("an axis without bars goes from %v to %v", least, greatest)
	}
}
