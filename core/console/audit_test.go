package console_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/console"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// The page of the audit log has words for each action of core/audit.go, and for no other.
func TestAuditActions(t *testing.T) {
	t.Parallel()

	const file = "app/pages/admin/audit.js"
	table := regexp.MustCompile(`(?s)function acts\(\) \{\n  return \{\n(.*?)\n  \};`).FindSubmatch(console.Modules()[file])
	if table == nil {
		t.Fatalf("%s has no function acts that returns a table", file)
	}
	var got []core.AuditAction
	for _, kind := range regexp.MustCompile(`(\w+): \{([^}]*)\}`).FindAllSubmatch(table[1], -1) {
		for _, act := range regexp.MustCompile(`(\w+): t\(`).FindAllSubmatch(kind[2], -1) {
			got = append(got, core.AuditAction(kind[1])+"."+core.AuditAction(act[1]))
		}
	}
	want := slices.Sorted(slices.Values(core.AuditActions))
	slices.Sort(got)
	cmptest.Same(t, got, want, "the actions that the function acts in core/console/%s has, and core/audit.go", file)
}
