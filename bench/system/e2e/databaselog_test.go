package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/core/mail/mailtest"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
)

// do sends a JSON body and returns the status and the body of the response.
func (c *client) do(t *testing.T, method, path string, body map[string]any) (status int, content string) {
	t.Helper()
	encoded, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, c.base+path, bytes.NewReader(encoded))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := c.http.Do(request)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer func() { _ = response.Body.Close() }()
	read, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return response.StatusCode, string(read)
}

var linkToken = regexp.MustCompile(`#token=([\w-]+)`)

// A duplicate e-mail address or player name is rejected without appearing in PostgreSQL's log, even
// under concurrency.
func TestDatabaseLogHasNoPersonalData(t *testing.T) {
	t.Parallel()
	postgres, files := stack.NewPostgres(t), blobstoretest.Directory(t).Config
	mails := mailtest.Start(t, mailtest.Options{})
	core := stack.NewCoreAt(t, files, postgres.URL(postgres.Address))
	for name, value := range map[string]string{
		"CORE_LIMIT_REQUESTS": "0", "CORE_LIMIT_REGISTRATIONS": "0",
		"CORE_SMTP_HOST": mails.Host, "CORE_SMTP_PORT": fmt.Sprint(mails.Port), "CORE_SMTP_TLS": "none", "CORE_SMTP_FROM": "noreply@skins.example.org",
		"CORE_MAIL_URL": "https://skins.example.org",
	} {
		core.Set(name, value)
	}
	confirming := core.Clone()
	confirming.Set("CORE_REGISTRATION", "confirm")
	for _, process := range []*stack.Process{core, confirming} {
		process.Start(t)
		process.AwaitReady(t)
	}

	const email, password, player = "Private.Person@example.com", "correct horse", "PrivatePlayer"
	c := &client{http: &http.Client{}, base: "http://" + core.Address(t, "public")}
	register := func(email, player string) map[string]any {
		return map[string]any{"email": email, "password": password, "nickname": "N", "player_name": player}
	}
	signIn := func(email string) *client {
		t.Helper()
		return &client{http: c.http, base: c.base, token: c.call(t, http.MethodPost, "/api/auth/login", map[string]any{"email": email, "password": password}).Token}
	}
	c.call(t, http.MethodPost, "/api/auth/register", register(email, player))
	c.call(t, http.MethodPost, "/api/auth/register", register("admin@example.com", ""))
	core.Run(t, "user", "permission", "-set", "2", "admin@example.com")
	other := &client{http: c.http, base: c.base}
	other.call(t, http.MethodPost, "/api/auth/register", register("other@example.com", "OtherPlayer"))
	other, admin := signIn("other@example.com"), signIn("admin@example.com")

	wantConflict := func(by *client, method, path string, body map[string]any) {
		t.Helper()
		if status, content := by.do(t, method, path, body); status != http.StatusConflict {
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
	waiting := &client{http: c.http, base: "http://" + confirming.Address(t, "public"), token: other.token}
	if status, content := waiting.do(t, http.MethodPut, "/api/user/email", map[string]any{"email": "late.person@example.com", "password": password}); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, content)
	}
	token := ""
	for count := before + 1; token == ""; count++ {
		if mail := mails.Await(t, count)[count-1]; mail.To == "late.person@example.com" {
			token = linkToken.FindStringSubmatch(mail.Text)[1]
		}
	}
	c.call(t, http.MethodPost, "/api/auth/register", register("Late.Person@example.com", ""))
	wantConflict(c, http.MethodPost, "/api/auth/verify", map[string]any{"token": token})

	// Concurrent requests.
	wantSuccesses := func(want int, do func(i int) int) {
		t.Helper()
		var all sync.WaitGroup
		statuses := make([]int, 8)
		for i := range statuses {
			all.Go(func() { statuses[i] = do(i) })
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
		if successes != want {
			t.Errorf("%d concurrent requests succeed; want %d", successes, want)
		}
	}
	wantSuccesses(1, func(int) int {
		status, _ := c.do(t, http.MethodPost, "/api/auth/register", register("rushed.person@example.com", ""))
		return status
	})
	wantSuccesses(1, func(i int) int {
		status, _ := c.do(t, http.MethodPost, "/api/auth/register", register(fmt.Sprintf("rusher%d@example.com", i), "RushedPlayer"))
		return status
	})
	var players []int
	for i := range 8 {
		players = append(players, other.call(t, http.MethodPost, "/api/players", map[string]any{"name": fmt.Sprintf("Rusher_%d", i)}).Data.PID)
	}
	wantSuccesses(1, func(i int) int {
		status, _ := other.do(t, http.MethodPut, fmt.Sprintf("/api/players/%d/name", players[i]), map[string]any{"name": "RushedName"})
		return status
	})
	wantSuccesses(1, func(i int) int {
		if i%2 == 0 {
			status, _ := other.do(t, http.MethodPost, "/api/players", map[string]any{"name": "RushedTwice"})
			return status
		}
		status, _ := other.do(t, http.MethodPut, fmt.Sprintf("/api/players/%d/name", players[i]), map[string]any{"name": "RushedTwice"})
		return status
	})

	personal := regexp.MustCompile(`(?i)person@|@example\.com|private_?player|other_?player|rushed|rusher`)
	if match := personal.FindString(postgres.Log(t)); match != "" {
		t.Errorf("PostgreSQL's log contains %q:\n%s", match, postgres.Log(t))
	}
	// The log would contain it.
	conn, err := pgx.Connect(t.Context(), postgres.URL(postgres.Address))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), "UPDATE users SET email_key = $1", lower); err == nil || !personal.MatchString(postgres.Log(t)) {
		t.Errorf("after %v PostgreSQL's log contains no personal data:\n%s", err, postgres.Log(t))
	}
}
