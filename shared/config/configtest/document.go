package configtest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// Document tests that the page at path has a table of all settings of T in the section of a
// program, see Section.
func Document[T any](t *testing.T, path, program, prefix string) {
	t.Helper()
	var want strings.Builder
	want.WriteString("\n| setting | default | allowed | meaning |\n|---|---|---|---|\n")
	for _, s := range config.List[T](prefix) {
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", s.Name, defaultOf(s), s.Allowed, strings.ReplaceAll(s.Help, "|", `\|`))
	}
	want.WriteString("\n")
	Section(t, path, program, want.String())
}

// Section tests that the page at path has a text between the lines "<!-- name -->" and
// "<!-- end of name -->", or writes it with -update.
func Section(t *testing.T, path, name, want string) {
	t.Helper()
	content := testenv.Must(os.ReadFile(path))(t)
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
	before, rest, hasBegin := strings.Cut(string(content), begin)
	got, after, hasEnd := strings.Cut(rest, end)
	if !hasBegin || !hasEnd {
		t.Fatalf("%s lacks the lines %q and %q", path, begin, end)
	}
	if *update {
		testenv.Do(t, os.WriteFile(path, []byte(before+begin+want+end+after), 0o600))
		return
	}
	cmptest.Same(t, got, want, "%s is not what the program's %s are now; -update writes it anew", path, name)
}

// defaultOf returns a setting's default in Markdown.
func defaultOf(s config.Setting) string {
	switch {
	case s.Required:
		return "required"
	case s.Default == "":
		return "none"
	default:
		return "`" + strings.ReplaceAll(s.Default, "|", `\|`) + "`"
	}
}
