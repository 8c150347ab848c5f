package compare

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

const (
	listDuration = time.Second / 2 // how long one page is requested in a loop
	likesEvery   = 20 * time.Millisecond
)

// BenchmarkLibrary measures GET /api/textures by filters and orders, of the first page of 20 and of
// the last page of 100 that a request may name, without a token, with a user's token, with an
// administrator's token, and for the textures of the user with a tenth of all: first without other load,
// then while 50 textures a second are liked. The figures of each list are shown with -v only.
func BenchmarkLibrary(b *testing.B) {
	textures := testenv.Must(strconv.ParseInt(cmp.Or(os.Getenv("LIBRARY_TEXTURES"), "1000000"), 10, 64))(b)
	core := newCore(b, "CORE_LIMIT_REQUESTS=0")
	users := site.SignIn(b, core, userCount)
	slices.SortFunc(users, func(x, y site.SignedInUser) int { return cmp.Compare(x.User, y.User) })
	uploader, administrator, user := users[0], users[1], users[2]
	database := core.Setting("CORE_DATABASE_URL")
	core.Set("CORE_DATABASE_URL=" + database + "&pool_max_conn_lifetime=1h") // the CPU time of a backend process is lost when it ends
	conn := postgrestest.Conn(b, database)
	fillTextures(b, conn, int64(uploader.User), userCount, textures)
	execute(b, conn, "VACUUM ANALYZE textures, texture_likes")
	execute(b, conn, "UPDATE users SET permission = 1 WHERE uid = $1", administrator.User)

	before := time.Now()
	core.Start(b)
	address := core.Address(b, "public")
	m := listMeter{core, conn}
	all := []listClient{
		{"no token", address, "", ""},
		{"a user", address, user.Bearer, ""},
		{"an administrator", address, administrator.Bearer, ""},
		{"the uploader", address, uploader.Bearer, fmt.Sprintf("&uploader=%d", uploader.User)},
	}
	all[0].page(b, "")
	b.Logf("%d textures; the first list %v after the start; core has %d MiB then", textures, time.Since(before).Round(time.Millisecond), core.Resident(b)>>20)
	b.ResetTimer()
	alone := measureAll(b, m, all)
	stop := likes(b, strings.ReplaceAll(database, "application_name=", "application_name=likes+of+"), textures) // not core's
	began := time.Now()
	underLikes := measureAll(b, m, all)
	b.Logf("%.1f likes a second", float64(stop())/time.Since(began).Seconds())
	b.StopTimer()

	// Of the p99 of the first page of 20, and of the last page that a request may name.
	first, last := 50*time.Millisecond, 300*time.Millisecond
	if textures <= 1_000_000 {
		first, last = 25*time.Millisecond, 150*time.Millisecond
	}
	for _, pages := range []struct {
		name  string
		first bool
		goal  time.Duration
	}{{"first", true, first}, {"last", false, last}} {
		worst, over, number := time.Duration(0), 0, 0
		for _, l := range underLikes {
			if l.first == pages.first {
				number++
				worst = max(worst, l.p99)
				if l.p99 > pages.goal {
					over++
				}
			}
		}
		b.Logf("%s pages: %d of %d lists exceed %v at their p99", pages.name, over, number, pages.goal)
		for figure, of := range map[string]func(listResult) time.Duration{
			"p50": func(l listResult) time.Duration { return l.p50 }, "p99": func(l listResult) time.Duration { return l.p99 },
			"PostgreSQL's CPU time": func(l listResult) time.Duration { return l.postgres },
		} {
			b.Logf("%s pages: mean %s %.2f ms, and %.2f ms while textures are liked", pages.name, figure, mean(alone, pages.first, of), mean(underLikes, pages.first, of))
		}
		b.ReportMetric(milliseconds(worst), pages.name+"-worst-p99-ms")
		b.ReportMetric(float64(over), pages.name+"-over-goal")
	}
	slices.SortFunc(underLikes, func(x, y listResult) int { return cmp.Compare(y.p99, x.p99) })
	for _, l := range underLikes {
		b.Logf("p50 %6.2f ms, p99 %6.2f ms, CPU of core %5.2f ms, of PostgreSQL %6.2f ms, %5d answers, %s",
			milliseconds(l.p50), milliseconds(l.p99), milliseconds(l.core), milliseconds(l.postgres), l.answers, l.what)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(core.Resident(b)>>20), "core-MiB")
}

func measureAll(b *testing.B, m listMeter, all []listClient) (results []listResult) {
	b.Helper()
	for _, client := range all {
		for _, kind := range []string{"", "cape"} {
			for _, q := range []string{"", "steve", "dragon", "pirate", "ragon 1", "狐狸", "golden -", "!!!", "___", "nothing here"} {
				for _, order := range []string{"newest", "likes"} {
					for _, page := range []string{"page=1&perPage=20", "page=100&perPage=100"} {
						query := "sort=" + order + "&" + page + "&q=" + url.QueryEscape(q)
						if kind != "" {
							query += "&type=" + kind
						}
						result := client.measure(b, m, query)
						result.first = page == "page=1&perPage=20"
						results = append(results, result)
					}
				}
			}
		}
	}
	return results
}

// likes adds likes to random textures until stop, which returns their number.
func likes(b *testing.B, database string, textures int64) (stop func() (count int)) {
	b.Helper()
	conn := postgrestest.Conn(b, database)
	ctx, cancel := context.WithCancel(b.Context())
	count, ended := 0, make(chan error, 1)
	go func() {
		tick := time.NewTicker(likesEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				ended <- nil
				return
			case <-tick.C:
			}
			if _, err := conn.Exec(b.Context(), "UPDATE textures SET likes = likes + 1 WHERE tid = 1 + $1::bigint", rand.Int64N(textures)); err != nil {
				ended <- err
				return
			}
			count++
		}
	}()
	return func() int {
		cancel()
		testenv.Do(b, <-ended)
		return count
	}
}

// listClient requests lists as one kind of client.
type listClient struct {
	label, address, bearer, filter string
}

// listMeter measures the CPU time of lists.
type listMeter struct {
	core *stack.Process
	conn *pgx.Conn
}

func (m listMeter) read(b *testing.B) (core, postgres time.Duration) {
	b.Helper()
	for _, took := range site.BackendCPU(b, m.conn) {
		postgres += took
	}
	return m.core.CPU(b), postgres
}

// listResult is the cost of a list.
type listResult struct {
	what           string
	first          bool // a first page
	p50, p99       time.Duration
	core, postgres time.Duration // CPU time of an answer
	answers        int64
}

// mean returns the mean of a figure over all first pages, or over all last ones, in milliseconds.
func mean(results []listResult, first bool, of func(listResult) time.Duration) float64 {
	var sum time.Duration
	n := 0
	for _, l := range results {
		if l.first == first {
			sum += of(l)
			n++
		}
	}
	return milliseconds(sum) / float64(n)
}

// measure requests a page in a loop.
func (l listClient) measure(b *testing.B, m listMeter, query string) listResult {
	b.Helper()
	query += l.filter
	core, postgres := m.read(b)
	list := streamOf(1, fasthttp.StatusOK, post("GET", "/api/textures?"+query, "", l.bearer, nil))
	list.InspectShare, list.Inspect = 1, beginWith([]string{`{"per_page":`})
	e := &env{Options: Options{TB: b}}
	result := e.send(&target{name: l.label, address: l.address, anyCPU: true}, listDuration, list)[0]
	coreAfter, postgresAfter := m.read(b)
	page := l.page(b, query)
	decoded := testenv.Must(url.QueryUnescape(strings.TrimSuffix(query, l.filter)))(b)
	return listResult{
		what: fmt.Sprintf("%s: %s: %d to %d of %d, more: %t", l.label, decoded, page.From, page.To, page.Total, page.More),
		p50:  result.Percentile(fasthttp.StatusOK, 50), p99: result.Percentile(fasthttp.StatusOK, 99),
		core: (coreAfter - core) / time.Duration(result.Total()), postgres: (postgresAfter - postgres) / time.Duration(result.Total()), answers: result.Total(),
	}
}

type libraryPage struct {
	From, To, Total int
	More            bool `json:"total_is_lower_bound"`
}

func (l listClient) page(b *testing.B, query string) (page libraryPage) {
	b.Helper()
	(&site.Client{Base: "http://" + l.address, Token: l.bearer}).Get(b, "/api/textures?"+query, &page)
	return page
}
