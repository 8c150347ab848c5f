package core_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// A file that is changed is read again. While it is missing or wrong, its page stays, and the log has one line.
func TestSitePages(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	dir, at := t.TempDir(), time.Now()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		testenv.Do(t, os.WriteFile(path, []byte(text), 0o600))
		at = at.Add(time.Second) // later than the former time, whatever the file system's resolution is
		testenv.Do(t, os.Chtimes(path, at, at))
	}
	write("rules.md", "# Rules of ours\n\nBe kind.")
	pages := testenv.Must(core.NewSitePages(dir, slog.New(slog.NewTextHandler(&log, nil))))(t)
	f := func(want, wantLog string) {
		t.Helper()
		log.Reset()
		for range 3 {
			testenv.Do(t, pages.Refresh(t.Context()))
		}
		page, _ := pages.Texts().Page("rules", "en")
		testenv.Equal(t, page.Title+": "+page.HTML, want, "the page")
		lines := strings.Count(log.String(), "\n")
		testenv.Check(t, strings.Contains(log.String(), wantLog) && lines == min(1, len(wantLog)), "the log has %q; want one line with %q", log.String(), wantLog)
	}
	const first, second = "Rules of ours: <p>Be kind.</p>\n", "Rules: <p>Be good.</p>\n"
	f(first, "")
	before := pages.Texts()
	f(first, "")
	testenv.Check(t, pages.Texts() == before, "without a change there are other texts")
	write("rules.md", "Be good.")
	f(second, "")
	write("rules.md", "\xff")
	f(second, "not valid UTF-8")
	write("rules.md", "# \u200b\nBe good.")
	f(second, "heading must have")
	write("rules.md", strings.Repeat("x", 256<<10+1))
	f(second, "is larger than 256 KiB")
	testenv.Do(t, os.Remove(filepath.Join(dir, "rules.md")))
	f(second, "is missing")
	write("rules.md", "")
	f(": ", "")
	write("rules.md", "# Rules of ours\nBe kind.")
	f(first, "")
	write("imprint.md", "We.")
	f(first, "its name is not one as rules.md")
	testenv.Do(t, os.Remove(filepath.Join(dir, "imprint.md")))

	write("rules.de.md", "Seid nett.")
	f(first, "")
	german, _ := pages.Texts().Page("rules", "de")
	testenv.Equal(t, german.HTML, "<p>Seid nett.</p>\n", "the page in German")
	testenv.Do(t, os.Rename(dir, dir+".gone"))
	testenv.Check(t, pages.Refresh(t.Context()) != nil && len(pages.Texts().Pages("en")) == 1, "without the directory there is no error, or no page")
	testenv.Do(t, os.Rename(dir+".gone", dir))

	_, err := core.NewSitePages(filepath.Join(dir, "rules.md"), slog.Default())
	testenv.Check(t, err != nil && strings.Contains(err.Error(), "a directory that cannot be read: not a directory"), "the error of a file is %v", err)
}
