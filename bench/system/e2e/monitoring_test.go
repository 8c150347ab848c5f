package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/config/configtest"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/tlsreload/tlsreloadtest"
)

// monitoring is where the rules and dashboards for operators are.
const monitoring = "deploy/monitoring/"

// rule is an alert.
type rule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

// alerts returns the alerts of a file.
func alerts(t *testing.T, path string) (all []rule) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	testenv.Do(t, yaml.Unmarshal([]byte(read(t, path)), &file))
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// panel is a part of a dashboard, as far as these tests look.
type panel struct {
	ID          int
	Type, Title string
	Datasource  struct{ UID string }
	FieldConfig struct{ Defaults struct{ Unit string } }
	Targets     []struct {
		Expr       string
		Datasource struct{ UID string }
	}
}

// dashboards returns the panels of every dashboard by its file's name.
func dashboards(t *testing.T) map[string][]panel {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(top, monitoring, "dashboards/*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("there are no dashboards: %v", err)
	}
	all := map[string][]panel{}
	for _, path := range paths {
		name := filepath.Base(path)
		var dashboard struct{ Panels []panel }
		if err := json.Unmarshal([]byte(read(t, monitoring+"dashboards/"+name)), &dashboard); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all[name] = dashboard.Panels
	}
	return all
}

// Every alert has a severity, a summary and a description, and a test in which it fires.
func TestAlertsAreActionable(t *testing.T) {
	t.Parallel()
	tests := read(t, monitoring+"rules_test.yml")
	for _, rule := range alerts(t, monitoring+"rules.yml") {
		if severity := rule.Labels["severity"]; severity != "critical" && severity != "warning" {
			t.Errorf("%s has the severity %q", rule.Alert, severity)
		}
		if rule.For == "" || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
			t.Errorf("%s lacks a duration, a summary or a description", rule.Alert)
		}
		testenv.Check(t, strings.Contains(tests, `'{alertname="`+rule.Alert+`"}'`), "%s fires in no test", rule.Alert)
	}
}

var labels = regexp.MustCompile(`\{\{ \$labels\.(\w+) \}\}`)

// The page on troubles has a line for each alert, to which its runbook_url leads.
func TestAlertsHaveARunbook(t *testing.T) {
	t.Parallel()
	const page = "docs/operations/troubleshooting.md"
	var lines strings.Builder
	lines.WriteString("| alert | severity | what it means, and what to do |\n|---|---|---|\n")
	for _, path := range []string{monitoring + "rules.yml", "deploy/machines/rules.yml"} {
		for _, r := range alerts(t, path) {
			anchor := strings.ToLower(r.Alert)
			testenv.Equal(t, r.Annotations["runbook_url"], page+"#"+anchor, "runbook_url of %s", r.Alert)
			description := labels.ReplaceAllStringFunc(strings.TrimSpace(r.Annotations["description"]), func(label string) string {
				return strings.ToUpper(labels.FindStringSubmatch(label)[1])
			})
			fmt.Fprintf(&lines, "| <a id=%q></a>%s | %s | %s |\n", anchor, r.Alert, r.Labels["severity"], description)
		}
	}
	configtest.Section(t, filepath.Join(top, page), "alerts", lines.String())
}

// A dashboard shows figures in their units, from the data source and instances chosen.
func TestDashboardsUseVariables(t *testing.T) {
	t.Parallel()
	const chosen = "${datasource}"
	for file, panels := range dashboards(t) {
		seen := map[int]bool{}
		for _, panel := range panels {
			testenv.Check(t, !seen[panel.ID], "%s: two panels have the number %d", file, panel.ID)
			seen[panel.ID] = true
			if panel.Type == "row" {
				continue
			}
			if panel.FieldConfig.Defaults.Unit == "" || len(panel.Targets) == 0 || panel.Datasource.UID != chosen {
				t.Errorf("%s: %q lacks a unit, a query or the variable for the data source", file, panel.Title)
			}
			for _, target := range panel.Targets {
				if target.Datasource.UID != chosen || !strings.Contains(target.Expr, `instance=~"$instance"`) {
					t.Errorf("%s: %q ignores the chosen instances: %s", file, panel.Title, target.Expr)
				}
			}
		}
	}
}

var (
	// sampleLine matches the name and the labels of a line of /metrics.
	sampleLine = regexp.MustCompile(`^(\w+)(?:\{(.*)\})? `)
	// selector matches a metric in a query, and its label matchers.
	selector = regexp.MustCompile(`\b((?:veneer|process|go)_\w+)(?:\{([^}]*)\})?`)
	// label matches the name of a label in either.
	label = regexp.MustCompile(`(\w+)(?:=~|!~|!=|=)"`)
)

// emitted returns the metrics of programs: their names, each with all label names.
func emitted(t *testing.T, programs ...*stack.Process) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{}
	for _, program := range programs {
		for line := range strings.Lines(metricsOf(t, program)) {
			if strings.HasPrefix(line, "#") {
				continue
			}
			match := sampleLine.FindStringSubmatch(line)
			if match == nil {
				t.Fatalf("%q is no sample", line)
			}
			if all[match[1]] == nil {
				all[match[1]] = map[string]bool{"job": true, "instance": true} // added by Prometheus
			}
			for _, l := range label.FindAllStringSubmatch(match[2], -1) {
				all[match[1]][l[1]] = true
			}
		}
	}
	return all
}

// The programs emit every metric that rules and dashboards query: an alert on a renamed metric
// would never fire.
func TestMonitoredMetricsAreEmitted(t *testing.T) {
	t.Parallel()
	// Purges and e-mail are counted only if configured. Nothing listens there.
	s := site.Start(t, blobstoretest.Directory(t).Config,
		"CORE_PURGE_URL=http://127.0.0.1:1/purge", "CORE_PURGE_SECRET=a secret of core and the network",
		"CORE_SMTP_HOST=127.0.0.1", "CORE_SMTP_PORT=1", "CORE_SMTP_TLS=none", "CORE_SMTP_FROM=noreply@example.org",
		"CORE_MAIL_URL=https://skins.example.org",
	)

	// Pictures are counted from the first one on.
	hash := upload(t, signUp(t, s.CoreURL), "first", drawSheet(10)).Hash
	if picture, status := fetch(t, s.EdgeURL+"/avatar/hash/"+hash+"?png"); picture == nil {
		t.Fatalf("the avatar: %d", status)
	}

	secured := site.NewCore(t, blobstoretest.Directory(t).Config)
	chain, key := tlsreloadtest.NewAuthority(t).Issue(t)
	secured.Set("CORE_TLS_CERT="+chain, "CORE_TLS_KEY="+key)
	secured.Start(t)

	metrics := emitted(t, s.Core, s.Edge, secured)
	checked := 0
	check := func(where, query string) {
		for _, match := range selector.FindAllStringSubmatch(query, -1) {
			checked++
			labels, ok := metrics[match[1]]
			if !ok {
				t.Errorf("%s: nothing emits %s", where, match[1])
				continue
			}
			for _, l := range label.FindAllStringSubmatch(match[2], -1) {
				testenv.Check(t, labels[l[1]], "%s: %s has no label %s", where, match[1], l[1])
			}
		}
	}
	for _, rule := range alerts(t, monitoring+"rules.yml") {
		check(rule.Alert, rule.Expr)
	}
	for file, panels := range dashboards(t) {
		for _, panel := range panels {
			for _, target := range panel.Targets {
				check(file+", "+panel.Title, target.Expr)
			}
		}
	}
	testenv.Check(t, checked >= 100, "rules and dashboards contain only %d metrics", checked)
}
