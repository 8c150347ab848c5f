// Package metricstest parses metrics as Prometheus does.
package metricstest

import (
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/veneer-skins/veneer/shared/metrics"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Text returns the metrics of a gatherer in the text format.
func Text(tb testing.TB, gatherer prometheus.Gatherer) string {
	tb.Helper()
	var text strings.Builder
	testenv.Do(tb, metrics.Write(&text, gatherer))
	return text.String()
}

// Value returns the value of a series, which the text must contain, given as
// name{label="value"} with the labels in alphabetical order.
func Value(tb testing.TB, text, series string) float64 {
	tb.Helper()
	for line := range strings.Lines(text) {
		if written, ok := strings.CutPrefix(line, series+" "); ok {
			return testenv.Must(strconv.ParseFloat(strings.TrimSpace(written), 64))(tb)
		}
	}
	tb.Fatalf("the metrics lack %s:\n%s", series, text)
	return 0
}

// Check checks that Prometheus can parse the text, that every metric has a type and a help
// text, and that counters, and only they, end in _total.
func Check(tb testing.TB, text string) {
	tb.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families := testenv.Must(parser.TextToMetricFamilies(strings.NewReader(text)))(tb)
	for name, family := range families {
		kind := family.GetType()
		testenv.Check(tb, kind != dto.MetricType_UNTYPED, "%s has no type", name)
		testenv.Check(tb, strings.TrimSpace(family.GetHelp()) != "", "%s has no help", name)
		testenv.Check(tb, strings.HasSuffix(name, "_total") == (kind == dto.MetricType_COUNTER),
			"%s is a %v", name, kind)
	}
	testenv.Check(tb, len(families) != 0, "there are no metrics")
}
