package e2e

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/core/mail/mailtest"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// A duplicate e-mail address or player name is rejected without appearing in PostgreSQL's log, even
// under concurrency.
func TestDatabaseLogHasNoPersonalData(t *testing.T) {
	t.Parallel()
	postgres, files := stack.NewPostgres(t), blobstoretest.Directory(t).Config
	mails := mailtest.Start(t, mailtest.Options{})
	core := site.NewCoreAt(t, files, postgres.URL(postgres.Address))
	core.Set(
		"CORE_LIMIT_REQUESTS=0", "CORE_LIMIT_REGISTRATIONS=0", "CORE_MAIL_URL=https://skins.example.org",
		"CORE_SMTP_HOST="+mails.Host, fmt.Sprint("CORE_SMTP_PORT=", mails.Port), "CORE_SMTP_TLS=none",
		"CORE_SMTP_FROM=noreply@skins.example.org",
	)
	confirming := core.Clone(t)
	confirming.Set("CORE_REGISTRATION=confirm")
	core.StartReady(t)
	confirming.StartReady(t)

	const email, player = "Private.Person@example.com", "PrivatePlayer"
	c := &site.Client{Base: core.BaseURL(t, "public")}
	register := func(email, player string) map[string]any {
		return map[string]any{"email": email, "password": password, "nickname": "N", "player_name": player}
	}
	signIn := func(email string) *site.Client {
		t.Helper()
		signedIn := &site.Client{Base: c.Base}
		signedIn.LogIn(t, email, password)
		return signedIn
	}
	c.Call(t, http.MethodPost, "/api/auth/register", register(email, player))
	c.Call(t, http.MethodPost, "/api/auth/register", register("admin@example.com", ""))
	core.Run(t, "user", "permission", "-set", "2", "admin@example.com")
	c.Call(t, http.MethodPost, "/api/auth/register", register("other@example.com", "OtherPlayer"))
	other, admin := signIn("other@example.com"), signIn("admin@example.com")

	wantConflict := func(by *site.Client, method, path string, body map[string]any) {
		t.Helper()
		if status, content := by.Do(t, method, path, body); status != http.StatusConflict {
			t.Errorf("%s %s with what is taken: %d %s", method, path, status, content)
		}
	}
	lower := strings.ToLower(email)
	wantConflict(c, http.MethodPost, "/api/auth/register", register(lower, ""))
	wantConflict(c, http.MethodPost, "/api/auth/register", register("third@example.com", strings.ToUpper(player)))
	wantConflict(other, http.MethodPut, "/api/user/email", map[string]any{"email": lower, "password": password})
	wantConflict(other, http.MethodPost, "/api/players", map[string]any{"name": player})
	wantConflict(other, http.MethodPut, "/api/players/2/name", map[string]any{"name": player})
	wantConflict(admin, http.MethodPut, "/api/admin/users/3/email", map[string]any{"email": lower})
	wantConflict(admin, http.MethodPut, "/api/admin/players/2/name", map[string]any{"name": player})
	if output, err := core.Try(t, "user", "add", lower); err == nil {
		t.Errorf("core user add adds what is taken: %s", output)
	}

	// A link to an address that is taken by the time it is opened.
	before := len(mails.Mails())
	waiting := &site.Client{Base: confirming.BaseURL(t, "public"), Token: other.Token}
	if status, content := waiting.Do(t, http.MethodPut, "/api/user/email", map[string]any{"email": "late.person@example.com", "password": password}); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, content)
	}
	token, link := "", regexp.MustCompile(`#token=([\w-]+)`)
	for count := before + 1; token == ""; count++ {
		if mail := mails.Await(t, count)[count-1]; mail.To == "late.person@example.com" {
			token = link.FindStringSubmatch(mail.Text)[1]
		}
	}
	c.Call(t, http.MethodPost, "/api/auth/register", register("Late.Person@example.com", ""))
	wantConflict(c, http.MethodPost, "/api/auth/verify", map[string]any{"token": token})

	// Concurrent requests.
	wantOneSuccess := func(do func(i int) (status int, content string)) {
		t.Helper()
		var all sync.WaitGroup
		statuses := make([]int, 8)
		for i := range statuses {
			all.Go(func() { statuses[i], _ = do(i) })
		}
		all.Wait()
		successes := 0
		for _, status := range statuses {
			if status == http.StatusOK {
				successes++
			} else if status != http.StatusConflict {
				t.Errorf("a concurrent request: %d", status)
			}
		}
		testenv.Equal(t, successes, 1, "concurrent requests that succeed")
	}
	wantOneSuccess(func(int) (int, string) {
		return c.Do(t, http.MethodPost, "/api/auth/register", register("rushed.person@example.com", ""))
	})
	wantOneSuccess(func(i int) (int, string) {
		return c.Do(t, http.MethodPost, "/api/auth/register", register(fmt.Sprintf("rusher%d@example.com", i), "RushedPlayer"))
	})
	var players []int
	for i := range 8 {
		players = append(players, other.AddPlayer(t, fmt.Sprintf("Rusher_%d", i)))
	}
	rename := func(i int, name string) (int, string) {
		return other.Do(t, http.MethodPut, fmt.Sprintf("/api/players/%d/name", players[i]), map[string]any{"name": name})
	}
	wantOneSuccess(func(i int) (int, string) { return rename(i, "RushedName") })
	wantOneSuccess(func(i int) (int, string) {
		if i%2 == 0 {
			return other.Do(t, http.MethodPost, "/api/players", map[string]any{"name": "RushedTwice"})
		}
		return rename(i, "RushedTwice")
	})

	personal := regexp.MustCompile(`(?i)person@|@example\.com|private_?player|other_?player|rushed|rusher`)
	if match := personal.FindString(postgres.Log(t)); match != "" {
		t.Errorf("PostgreSQL's log contains %q:\n%s", match, postgres.Log(t))
	}
	// The log would contain it.
	conn := postgrestest.Conn(t, postgres.URL(postgres.Address))
	if _, err := conn.Exec(t.Context(), "UPDATE users SET email_key = $1", lower); err == nil || !personal.MatchString(postgres.Log(t)) {
		t.Errorf("after %v PostgreSQL's log contains no personal data:\n%s", err, postgres.Log(t))
	}
}

func listNames(t *testing.T, c *site.Client, query string) (names []string) {
	t.Helper()
	var list struct{ Data []struct{ Name string } }
	c.Get(t, "/api/textures?"+query, &list)
	for _, item := range list.Data {
		names = append(names, item.Name)
	}
	return names
}

func awaitList(t *testing.T, c *site.Client, query string, want ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("?%s lists %q", query, want), func() string {
		if names := listNames(t, c, query); !slices.Equal(names, want) {
			return fmt.Sprintf("%q", names)
		}
		return ""
	})
}

// Lists are read from a standby as far as it has replayed, and from the primary without one. All
// else is read from the primary.
func TestListsFromAStandby(t *testing.T) {
	t.Parallel()
	primary := stack.NewPostgres(t)
	standby := primary.Standby(t)
	files := blobstoretest.Directory(t).Config
	core := site.NewCoreAt(t, files, primary.URL(primary.Address))
	core.Set(
		"CORE_LIBRARY_DATABASE_URL="+primary.URL(standby.Address+","+primary.Address)+"&target_session_attrs=prefer-standby",
		"CORE_LIMIT_REQUESTS=0",
	)
	core.StartReady(t)
	ann := signUp(t, core.BaseURL(t, "public"))

	first := upload(t, ann, "First", drawSheet(1))
	const all, search = "", "q=first"
	awaitList(t, ann, all, "First")
	onStandby := postgrestest.Conn(t, standby.URL(standby.Address))
	testenv.Must(onStandby.Exec(t.Context(), "SELECT pg_wal_replay_pause()"))(t)
	// Replay continues until it notices the pause.
	bounded, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for paused := ""; paused != "paused"; {
		testenv.Do(t, onStandby.QueryRow(bounded, "SELECT pg_get_wal_replay_pause_state()").Scan(&paused))
	}
	second := upload(t, ann, "First again", drawSheet(2))
	for _, query := range []string{all, search, "uploader=1&sort=likes"} {
		cmptest.Same(t, listNames(t, ann, query), []string{"First"}, "the list of ?%s, as far as the standby has replayed", query)
	}
	var texture struct{ Name string }
	ann.Get(t, fmt.Sprint("/api/textures/", second.TID), &texture)
	testenv.Equal(t, texture.Name, "First again", "the texture itself is")

	// A deleted texture is not listed, even if the standby still has it.
	ann.Call(t, http.MethodDelete, fmt.Sprint("/api/textures/", first.TID), nil)
	cmptest.Same(t, listNames(t, ann, all), []string(nil), "the list after all was deleted that the standby has")

	standby.Kill(t)
	for _, query := range []string{all, search} {
		awaitList(t, ann, query, "First again")
	}
	if status, body := readiness(t, core); status != http.StatusOK || !strings.Contains(body, "postgres for lists") {
		t.Errorf("without the standby: %d %s", status, body)
	}
}
