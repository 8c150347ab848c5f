package api_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// Each route counts for the limit that security.md says: each limit has a number of its own here, which responses tell.
func TestRoutesHaveLimits(t *testing.T) {
	t.Parallel()
	settings := []string{"REQUESTS", "REGISTRATIONS", "RESETS", "UPLOADS", "PRICES", "CHANGES", "REPORTS"}
	names, configured := map[string]string{}, []string{"LIMIT_REQUESTS_BURST=1000"}
	for i, name := range settings {
		number := strconv.Itoa(1000 + i)
		configured = append(configured, "LIMIT_"+name+"="+number)
		names[number] = "`CORE_LIMIT_" + name + "`"
	}
	document := mustLoadContract(t)
	templates := map[string]string{}
	for path, item := range document.Paths.Map() {
		for method, operation := range item.Operations() {
			templates[operation.OperationID] = "`" + method + " " + strings.TrimPrefix(path, "/api") + "`"
		}
	}
	c := start(t, configured...)
	routes := map[string][]string{}
	for _, e := range document.endpoints() {
		response := c.signUpAs(t, core.SuperAdministrator).Send(t, e.method, e.path, e.example(t))
		limit := names[response.Header.Get("RateLimit-Limit")]
		testenv.Equal(t, limit != "", true, "%s %s has a limit", e.method, e.path)
		routes[limit] = append(routes[limit], templates[e.OperationID])
	}
	var rows strings.Builder
	for _, name := range settings {
		limit := "`CORE_LIMIT_" + name + "`"
		slices.Sort(routes[limit])
		rows.WriteString("| " + limit + " | " + strings.Join(routes[limit], ", ") + " |\n")
	}
	page := string(testenv.Must(os.ReadFile("../../docs/operations/security.md"))(t))
	_, listed, _ := strings.Cut(page, "| limit | routes below `/api` |\n|---|---|\n")
	listed, _, _ = strings.Cut(listed, "\n\n")
	cmptest.Same(t, listed+"\n", rows.String(), "the table of routes in security.md")
}
