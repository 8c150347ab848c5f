package bench_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/load"
	"github.com/veneer-skins/veneer/bench/system"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
)

// insertLibrary puts a million textures in. Half of all names have steve in them, a
// fortieth dragon, and a twentieth two Chinese characters; all end in a number of
// their own. A tenth has one uploader, the first of the users, a twentieth is
// private, and few have many likes.
const insertLibrary = `
	INSERT INTO textures (uploader, likes, upload_at, bytes, public, type, hash, pixels, name)
	SELECT
		CASE WHEN n % 10 = 3 THEN $1 ELSE $1 + n % $2 END, (1 / (0.0005 + random()))::bigint, now() - (1000000 - n) * interval '1 minute', 2000, n % 20 <> 13,
		CASE WHEN n % 10 < 5 THEN 'steve' WHEN n % 10 < 8 THEN 'alex' ELSE 'cape' END, sha256(n::text::bytea), sha256(n::text::bytea),
		(ARRAY['Red', 'Blue', 'Dark', 'Golden', 'Pixel', 'Happy', 'Sad', 'Tiny', 'Giant', 'Old', '红', '100%'])[1 + floor(random() * 12)] || ' ' ||
		CASE WHEN random() < 0.5 THEN 'Steve' ELSE (ARRAY[
			'Fox', 'Knight', 'Wizard', 'Cat', 'Dog', 'Girl', 'Boy', 'Robot', 'Ninja', 'King', 'Queen', 'Panda', 'Miner', 'Zombie', '狐狸', '狐狸', 'Wolf',
			'Slime', 'Witch', 'Dragon'])[1 + floor(random() * 20)] END || ' ' || to_hex(n * 2654435761 % 4294967296)
	FROM generate_series(1::bigint, 1000000) AS n`

const (
	libraryLook = time.Second / 2 // how long one page is asked for, again and again
	libraryGoal = 20 * time.Millisecond
	likesEvery  = 20 * time.Millisecond
)

// BenchmarkLibrary measures GET /api/textures of a million textures in every
// combination of its filters and orders, of the first page and of the last that may
// be asked for, of those that are not signed in, of somebody with 100,000 textures
// who lists their own, and of an administrator. All the while 50 textures a second
// are liked. What each of them takes is shown with -v alone.
func BenchmarkLibrary(b *testing.B) {
	core := newCore(b)
	core.Set("CORE_LIMIT_REQUESTS", "0")
	people := core.SignIn(b, users)
	slices.SortFunc(people, func(x, y system.Person) int { return cmp.Compare(x.User, y.User) })
	uploader, administrator := people[0], people[1]
	conn := postgrestest.Conn(b, core.Setting("CORE_DATABASE_URL"))
	exec := func(sql string, args ...any) {
		b.Helper()
		if _, err := conn.Exec(b.Context(), sql, args...); err != nil {
			b.Fatal(err)
		}
	}
	exec("UPDATE users SET permission = 1 WHERE uid = $1", administrator.User)
	exec("ALTER TABLE textures DISABLE TRIGGER note_change") // core is not there yet
	exec(insertLibrary, int64(uploader.User), int64(users))
	exec("ALTER TABLE textures ENABLE TRIGGER note_change")
	exec("UPDATE textures SET name_key = lower(name)") // as the program makes it of names like these
	exec("VACUUM ANALYZE textures")
	core.Start(b)
	address := core.Address(b, "public")
	library{address, "", ""}.page(b, "")
	b.Logf("core has %d MiB after its first list", core.Resident(b)>>20)

	stop := likes(b, core.Setting("CORE_DATABASE_URL"))
	b.ResetTimer()
	var all []looked
	for _, who := range []library{
		{address, "", ""}, {address, uploader.Bearer, fmt.Sprintf("&uploader=%d", uploader.User)}, {address, administrator.Bearer, ""},
	} {
		for _, kind := range []string{"", "skin", "steve", "alex", "cape"} {
			for _, q := range []string{"", "steve", "dragon", "ragon 1", "狐狸", "100%", "___", "nothing here"} {
				for _, order := range []string{"newest", "likes"} {
					for _, page := range []int{1, 100} {
						query := fmt.Sprintf("sort=%s&page=%d&perPage=100&q=%s", order, page, url.QueryEscape(q))
						if kind != "" {
							query += "&type=" + kind
						}
						all = append(all, who.look(b, core, query))
					}
				}
			}
		}
	}
	b.StopTimer()
	stop()

	slices.SortFunc(all, func(x, y looked) int { return cmp.Compare(y.p99, x.p99) })
	over := 0
	for _, l := range all {
		b.Logf("p50 %6.2f ms, p99 %6.2f ms, CPU of core %5.2f ms, %5d answers, %s",
			l.p50.Seconds()*1000, l.p99.Seconds()*1000, l.cpu.Seconds()*1000, l.answers, l.what)
		if l.p99 > libraryGoal {
			over++
		}
	}
	b.Logf("%d of %d combinations take more than %v at their p99", over, len(all), libraryGoal)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(all[0].p99.Microseconds()), "worst-p99-µs")
	b.ReportMetric(float64(all[len(all)/2].p99.Microseconds()), "median-p99-µs")
	b.ReportMetric(float64(slices.MaxFunc(all, func(x, y looked) int { return cmp.Compare(x.cpu, y.cpu) }).cpu.Microseconds()), "worst-core-cpu-µs")
	b.ReportMetric(float64(over), "over-20-ms")
}

// likes likes textures at random, until it is stopped.
func likes(b *testing.B, database string) (stop func()) {
	b.Helper()
	conn := postgrestest.Conn(b, database)
	stopped, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		tick := time.NewTicker(likesEvery)
		defer tick.Stop()
		for {
			select {
			case <-stopped:
				ended <- nil
				return
			case <-tick.C:
			}
			if _, err := conn.Exec(b.Context(), "UPDATE textures SET likes = likes + 1 WHERE tid = (1 + floor(random() * 1000000))::bigint"); err != nil {
				ended <- err
				return
			}
		}
	}()
	return func() {
		close(stopped)
		if err := <-ended; err != nil {
			b.Fatal(err)
		}
	}
}

// library is a list as one person asks for it.
type library struct {
	address, bearer, filter string
}

// looked is how long a list took.
type looked struct {
	library
	what, query   string
	p50, p99, cpu time.Duration // of core's CPU for each answer
	answers       int64
}

func (l library) authorization() string {
	if l.bearer == "" {
		return ""
	}
	return "Authorization: Bearer " + l.bearer + "\r\n"
}

// look asks for a page again and again.
func (l library) look(b *testing.B, core *system.Process, query string) looked {
	b.Helper()
	query += l.filter
	before := core.CPU(b)
	list := &load.Stream{Connections: 1, Statuses: []int{fasthttp.StatusOK}, Requests: [][]byte{
		fmt.Appendf(nil, "GET /api/textures?%s HTTP/1.1\r\nHost: %s\r\n%s\r\n", query, l.address, l.authorization()),
	}}
	begins(list, []byte(`{"per_page":100,`))
	result := send(b, target{l.address, list}, libraryLook)
	cpu := core.CPU(b) - before
	page := l.page(b, query)
	who := "anybody"
	if l.filter != "" {
		who = "the uploader"
	} else if l.bearer != "" {
		who = "an administrator"
	}
	shown, err := url.QueryUnescape(strings.TrimSuffix(query, l.filter))
	if err != nil {
		b.Fatal(err)
	}
	return looked{
		l, fmt.Sprintf("%s: %s: %d to %d of %d, more: %t", who, shown, page.From, page.To, page.Total, page.More), query,
		result.Percentile(fasthttp.StatusOK, 50), result.Percentile(fasthttp.StatusOK, 99), cpu / time.Duration(result.Total()), result.Total(),
	}
}

type libraryPage struct {
	From, To, Total int
	More            bool `json:"total_is_lower_bound"`
}

// page asks once.
func (l library) page(b *testing.B, query string) libraryPage {
	b.Helper()
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.SetRequestURI("http://" + l.address + "/api/textures?" + query)
	if l.bearer != "" {
		request.Header.Set("Authorization", "Bearer "+l.bearer)
	}
	if err := fasthttp.Do(request, response); err != nil {
		b.Fatal(err)
	}
	var page libraryPage
	if err := json.Unmarshal(response.Body(), &page); err != nil || response.StatusCode() != fasthttp.StatusOK {
		b.Fatalf("%s: %d %s", query, response.StatusCode(), response.Body())
	}
	return page
}
