package gobench_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/blobstore"
)

// BenchmarkBroadcast sends a million users one notification a day for a year. It measures how long
// sending takes, core's peak memory, and how long lists of unread notifications take for users with
// one unread notification. Then all users read one, which is trimmed. With -short there are a
// hundred times fewer users, which says little.
func BenchmarkBroadcast(b *testing.B) {
	total, days, readers := 1_000_000, 365, 500
	if testing.Short() {
		total /= 100
	}
	core := stack.NewCore(b, blobstore.Config{URL: "file://" + b.TempDir()})
	core.Set("CORE_LIMIT_REQUESTS", "0")
	users := core.SignIn(b, readers)
	conn := postgrestest.Conn(b, core.Setting("CORE_DATABASE_URL"))
	exec := func(sql string, args ...any) {
		b.Helper()
		if _, err := conn.Exec(b.Context(), sql, args...); err != nil {
			b.Fatal(err)
		}
	}
	exec(`
		INSERT INTO users (email, email_key, nickname, password_hash)
		SELECT 'user' || n || '@example.com', 'user' || n || '@example.com', 'User ' || n, 'none' FROM generate_series(1, $1::int) n`, total-readers)
	exec("UPDATE users SET permission = 2 WHERE uid = $1", users[0].User)
	exec("VACUUM ANALYZE users")
	core.Start(b)
	core.AwaitReady(b)
	api := "http://" + core.Address(b, "public")
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	took := func(user stack.SignedInUser, method, path, form string) time.Duration {
		b.Helper()
		request.Reset()
		request.SetRequestURI(api + path)
		request.Header.SetMethod(method)
		request.Header.SetContentType("application/x-www-form-urlencoded")
		request.Header.Set(fasthttp.HeaderAuthorization, "Bearer "+user.Bearer)
		request.SetBodyString(form)
		began := time.Now()
		if err := fasthttp.Do(request, response); err != nil {
			b.Fatal(err)
		}
		if response.StatusCode() != fasthttp.StatusOK {
			b.Fatalf("%s %s: %d %s", method, path, response.StatusCode(), response.Body())
		}
		return time.Since(began)
	}
	quantile := func(durations []time.Duration, percent int) float64 {
		slices.Sort(durations)
		return float64(durations[(len(durations)-1)*percent/100].Microseconds()) / 1000
	}
	lists := func() (durations []time.Duration) {
		for range 4 {
			for _, user := range users {
				durations = append(durations, took(user, fasthttp.MethodGet, "/api/user/notifications", ""))
			}
		}
		return durations
	}

	empty := lists()
	b.ResetTimer()
	var sending []time.Duration
	for day := range days {
		form := fmt.Sprintf("to=%s&title=Day+%d&content=News", []string{"all", "normal"}[day%2], day)
		sending = append(sending, took(users[0], fasthttp.MethodPost, "/api/admin/notifications", form))
	}
	exec("INSERT INTO broadcast_reads (uid, mid) SELECT uid, mid FROM users, broadcasts WHERE uid <= $1 AND mid < (SELECT max(mid) FROM broadcasts)", users[readers-1].User)
	exec("VACUUM ANALYZE broadcasts, broadcast_reads, messages")
	full := lists()
	_, most := core.Memory(b)

	exec("INSERT INTO broadcast_reads (uid, mid) SELECT uid, min(mid) FROM users, broadcasts GROUP BY uid ON CONFLICT DO NOTHING")
	exec("UPDATE messages SET sent_at = 'epoch' WHERE mid = (SELECT min(mid) FROM messages)")
	began := time.Now()
	trimmed, err := postgrestest.Connect(b, core.Setting("CORE_DATABASE_URL")).TrimNotifications(b.Context(), began.Add(-time.Hour))
	if err != nil || trimmed != 1 {
		b.Fatalf("%d messages were trimmed, %v; want 1", trimmed, err)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(time.Since(began).Milliseconds()), "trim-ms")
	b.ReportMetric(quantile(sending, 50), "send-p50-ms")
	b.ReportMetric(quantile(sending, 99), "send-p99-ms")
	b.ReportMetric(quantile(empty, 50), "list-none-p50-ms")
	b.ReportMetric(quantile(empty, 99), "list-none-p99-ms")
	b.ReportMetric(quantile(full, 50), "list-year-p50-ms")
	b.ReportMetric(quantile(full, 99), "list-year-p99-ms")
	b.ReportMetric(float64(most>>20), "core-MiB")
}
