package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/veneer-skins/veneer/core/mail/mailtest"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// findingsOf returns what core doctor finds, by check: the state and the detail.
func findingsOf(t *testing.T, environ []string) map[string]string {
	t.Helper()
	out, err := invoke(t, environ, "", "doctor", "-json")
	var findings []finding
	testenv.Do(t, json.Unmarshal([]byte(out), &findings))
	all, failed := map[string]string{}, 0
	for _, f := range findings {
		all[f.Check] = f.State + ": " + f.Detail
		if f.State == "failed" {
			failed++
		}
	}
	testenv.Equal(t, err != nil, failed > 0, "core doctor fails")
	return all
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	s := newBackedUp(t, artwork.Explorer())
	running := startServe(t, s.environ)
	mails := mailtest.Start(t, mailtest.Options{})
	environ := append(slices.Clone(s.environ), "CORE_PUBLIC_URL=http://"+running.public, "CORE_MAIL_URL=http://"+running.public,
		"CORE_SMTP_HOST="+mails.Host, fmt.Sprint("CORE_SMTP_PORT=", mails.Port), "CORE_SMTP_TLS=none", "CORE_SMTP_FROM=noreply@example.org")
	environ = withSetting(withSetting(environ, "CORE_LISTEN", running.public), "CORE_OPS_LISTEN", running.operators)

	// A site without faults, as people read it.
	before := findingsOf(t, environ)
	testenv.Contains(t, before["backup"], "warning: there is no backup yet", "before the first backup")
	s.backUp(t)
	out := succeed(t, environ, "", "doctor")
	for _, want := range []string{
		"ok       settings        valid", "ok       database        PostgreSQL 1", "ok       texture store   writes, reads, lists and removes", "accepts the password",
		"ok       clock           as the database's", "answers as this site", "all addresses of clients came from trusted proxies", "skipped  lists ", "skipped  key files ",
		" % of ", "ok       backup          the last whole one began 0s ago",
	} {
		testenv.Contains(t, out, want, "core doctor prints")
	}
	testenv.Contains(t, succeed(t, s.environ, "", "sweep", "-dry-run"), "1 files seen", "after the doctor")

	// Each fault is named, and what to do.
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }))
	t.Cleanup(other.Close)
	secret := filepath.Join(t.TempDir(), "keys")
	testenv.Do(t, os.WriteFile(secret, []byte(keys()), 0o600))
	testenv.Do(t, os.Chmod(filepath.Dir(secret), 0o755))
	forwarded := testenv.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+running.public+"/api/site", http.NoBody))(t)
	forwarded.Header.Set("X-Forwarded-For", "192.0.2.1")
	response, err := http.DefaultClient.Do(forwarded)
	testenv.Do(t, err)
	testenv.Do(t, response.Body.Close())
	for _, c := range []struct{ check, want, name, value string }{
		{"settings", "failed: CORE_LISTEN is ", "CORE_LISTEN", "here"},
		{"database", "failed: CORE_DATABASE_URL ", "CORE_DATABASE_URL", "postgres://veneer@127.0.0.1:1/veneer"},
		{"schema", "run core migrate", "CORE_DATABASE_URL", postgrestest.Empty(t)},
		{"texture store", "failed: CORE_OBJECTS_URL ", "CORE_OBJECTS_URL", "file://" + t.TempDir()},
		{"mail", "check CORE_SMTP_HOST", "CORE_SMTP_PORT", "1"},
		{"public URL", "failed: " + other.URL + " answers as another site", "CORE_PUBLIC_URL", other.URL},
		{"public URL", "failed: Get ", "CORE_PUBLIC_URL", "http://127.0.0.1:1"},
		{"public URL", "warning: ", "CORE_LISTEN", "127.0.0.1:1"},
		{"proxies", "warning: an address of a client was sent by a peer that is not trusted", "CORE_LISTEN", running.public},
		{"proxies", "warning: no core runs here", "CORE_OPS_LISTEN", "127.0.0.1:1"},
		{"key files", "ok: 1 files, which other users cannot read", "CORE_TOKEN_KEYS_FILE", secret},
	} {
		changed := withSetting(environ, c.name, c.value)
		if c.name == "CORE_TOKEN_KEYS_FILE" {
			changed = withSetting(changed, "CORE_TOKEN_KEYS", "")
		}
		testenv.Contains(t, findingsOf(t, changed)[c.check], c.want, "%s with %s=%s", c.check, c.name, c.value)
	}
	inContainer := withSetting(withSetting(environ, "CORE_LISTEN", "0.0.0.0:1"), "CORE_PUBLIC_URL", "http://127.0.0.1:1")
	testenv.Contains(t, findingsOf(t, inContainer)["public URL"], "warning: http://127.0.0.1:1 is an address of the machine itself", "the public URL in a container")
	testenv.Do(t, os.Chmod(secret, 0o644))
	environ = withSetting(withSetting(environ, "CORE_TOKEN_KEYS_FILE", secret), "CORE_TOKEN_KEYS", "")
	testenv.Contains(t, findingsOf(t, environ)["key files"], "warning: every user of this machine can read "+secret, "key files")
}
