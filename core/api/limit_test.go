package api_test

import (
	"bufio"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/core/api"
	"github.com/veneer-skins/veneer/core/public"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// rateLimit has the rate limit headers of a response.
type rateLimit struct{ Limit, Remaining, Reset, RetryAfter string }

func (a response) rateLimit() rateLimit {
	return rateLimit{a.headerValue("RateLimit-Limit"), a.headerValue("RateLimit-Remaining"), a.headerValue("RateLimit-Reset"), a.headerValue("Retry-After")}
}

// hasRateLimit checks the status and the rate limit headers.
func (a response) hasRateLimit(t *testing.T, status int, want rateLimit) {
	t.Helper()
	if a.status != status {
		t.Errorf("%s: the status is %d; want %d", a.request, a.status, status)
	}
	if diff := cmp.Diff(want, a.rateLimit()); diff != "" {
		t.Errorf("%s: the limit (-want +got):\n%s", a.request, diff)
	}
	if status == 429 {
		a.isError(t, 429, 8)
	}
}

// exhaustLimit sends so many requests, which must succeed, and one that must get 429.
func (c client) exhaustLimit(t *testing.T, requests int) {
	t.Helper()
	for i := range requests {
		if a := c.get(t, "/api/user"); a.status == 429 {
			t.Fatalf("request %d of %d is one too many", i+1, requests)
		}
	}
	c.get(t, "/api/user").isError(t, 429, 8)
}

func TestRequestsAreLimited(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	c.get(t, "/api/user").hasRateLimit(t, 200, rateLimit{"200", "199", "1", ""})
	c.get(t, "/api/players").hasRateLimit(t, 200, rateLimit{"200", "198", "1", ""})
	for range 150 {
		c.get(t, "/api/user")
	}
	c.get(t, "/api/user").hasRateLimit(t, 200, rateLimit{"200", "47", "4", ""})
	c.exhaustLimit(t, 47)
	c.get(t, "/api/user").hasRateLimit(t, 429, rateLimit{"200", "0", "4", "1"})
	c.get(t, "/api/user").hasRateLimit(t, 429, rateLimit{"200", "0", "4", "1"}) // the rejected request did not count

	// Fifty a second are refilled, up to 200.
	c.site.advance(time.Second)
	c.exhaustLimit(t, 50)
	c.site.advance(time.Hour)
	c.exhaustLimit(t, 200)
}

// A user has one limit at all addresses; a client that is not signed in has the limit of its
// address.
func TestRequestLimitKeys(t *testing.T) {
	t.Parallel()

	c := start(t, "LIMIT_REQUESTS=1", "LIMIT_REQUESTS_BURST=3").signUp(t)
	first, second := c.from(t, "203.0.113.7"), c.from(t, "203.0.113.8")
	second.get(t, "/api/user").hasRateLimit(t, 200, rateLimit{"3", "2", "1", ""})
	c.signIn(t).from(t, "203.0.113.9").get(t, "/api/user").hasRateLimit(t, 200, rateLimit{"3", "1", "2", ""})
	first.exhaustLimit(t, 1)
	second.get(t, "/api/closet").isError(t, 429, 8)

	// Other users at the address, and the address itself, have their own limits.
	other := first.signUp(t)
	other.exhaustLimit(t, 3)
	first.as("").exhaustLimit(t, 3)
	for _, path := range []string{"/api/auth/login", "/api/auth/register", "/api/auth/refresh"} {
		first.post(t, path, `{}`).isError(t, 429, 8)
	}
	first.get(t, "/api/nothing").isError(t, 429, 8)
	first.as("nonsense").get(t, "/api/user").isError(t, 429, 8)
	first.as(forgery{key: "x"}.of(t, c.token)).get(t, "/api/user").isError(t, 429, 8)
	second.as("").get(t, "/api/user").isError(t, 401, 5)

	// An IPv6 client counts by its /64.
	c.as("").from(t, "2001:db8::1").exhaustLimit(t, 3)
	c.as("").from(t, "2001:db8::ffff:0:1").get(t, "/api/user").isError(t, 429, 8)
	c.as("").from(t, "2001:db8:0:1::1").get(t, "/api/user").isError(t, 401, 5)
	// An IPv4-mapped IPv6 address counts as the IPv4 address.
	c.as("").from(t, "::ffff:203.0.113.7").get(t, "/api/user").isError(t, 429, 8)
}

// Requests with a revoked token do not use up the user's limit, and are looked up in the database
// only within their own limit.
func TestRequestsWithEndedTokens(t *testing.T) {
	t.Parallel()

	s := newSite(t, "LIMIT_REQUESTS=1", "LIMIT_REQUESTS_BURST=5")
	trips := s.countRoundTrips(t)
	c := s.serve(t).signUp(t)
	guesser := c.signIn(t).from(t, "203.0.113.7")
	c.get(t, "/api/user").hasRateLimit(t, 200, rateLimit{"5", "4", "1", ""})
	c.site.exec(t, "DELETE FROM sessions WHERE sid = $1", guesser.claim(t, "sid"))

	before := trips.count()
	for range 5 {
		guesser.get(t, "/api/user").isError(t, 401, 5)
	}
	if n := trips.count() - before; n != 5 {
		t.Errorf("five requests take %d round trips; want 5", n)
	}
	for range 5 {
		guesser.get(t, "/api/user").isError(t, 429, 8)
		guesser.get(t, "/api/players").isError(t, 429, 8)
		guesser.from(t, "203.0.113.8").get(t, "/api/players").isError(t, 429, 8)
	}
	if n := trips.count() - before; n != 5 {
		t.Errorf("those beyond the limit take %d round trips; want none", n-5)
	}
	c.get(t, "/api/user").hasRateLimit(t, 200, rateLimit{"5", "3", "2", ""})
	// Another client at the address that is not signed in shares its limit.
	guesser.as("").get(t, "/api/user").isError(t, 429, 8)
	// A user at the address does not.
	c.from(t, "203.0.113.7").get(t, "/api/user").hasRateLimit(t, 200, rateLimit{"5", "2", "3", ""})

	c.site.advance(5 * time.Second)
	guesser.get(t, "/api/user").isError(t, 401, 5)
}

// Twenty registrations an hour for an address, together with other requests that reveal whether an
// e-mail address is registered.
func TestRegistrationsAreLimited(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	c.withPassword(t, rightPassword)
	object := `{"email":"user1@example.com","password":"correct horse","nickname":"A"}`
	first := c.from(t, "203.0.113.7")
	first.post(t, "/api/auth/register", `{"email":"a@example.com","password":"correct horse","nickname":"A"}`).hasRateLimit(t, 200, rateLimit{"20", "19", "180", ""})
	first.post(t, "/api/auth/register", object).hasRateLimit(t, 409, rateLimit{"20", "18", "360", ""})
	for range 25 { // an invalid request reveals nothing and is refunded
		first.post(t, "/api/auth/register", `{"email":"a","password":"a","nickname":"A"}`).hasRateLimit(t, 422, rateLimit{"20", "17", "540", ""})
	}
	first.put(t, "/api/user/email", `{"email":"c@example.com","password":"wrong"}`).hasRateLimit(t, 422, rateLimit{"20", "17", "540", ""})
	first.put(t, "/api/user/email", `{"email":"a@example.com","password":"correct horse"}`).hasRateLimit(t, 409, rateLimit{"20", "17", "540", ""})
	first.put(t, "/api/user/email", `{"email":"b@example.com","password":"correct horse"}`).hasRateLimit(t, 200, rateLimit{"20", "16", "720", ""})
	for range 16 {
		if a := first.post(t, "/api/auth/register", object); a.status == 429 {
			t.Fatal("the registration is one too many")
		}
	}
	first.post(t, "/api/auth/register", object).hasRateLimit(t, 429, rateLimit{"20", "0", "3600", "180"})
	first.put(t, "/api/user/email", `{"email":"c@example.com","password":"correct horse"}`).hasRateLimit(t, 429, rateLimit{"20", "0", "3600", "180"})
	if a := first.logIn(t, "b@example.com", rightPassword); a.status != 200 {
		t.Errorf("the log-in is answered with %d %s", a.status, a.body)
	}
	second := c.from(t, "203.0.113.8")
	second.post(t, "/api/auth/register", `{"email":"c@example.com","password":"correct horse","nickname":"A"}`).hasRateLimit(t, 200, rateLimit{"20", "19", "180", ""})

	c.site.advance(3 * time.Minute)
	first.post(t, "/api/auth/register", `{"email":"d@example.com","password":"correct horse","nickname":"A"}`).hasRateLimit(t, 200, rateLimit{"20", "0", "3600", ""})
	first.post(t, "/api/auth/register", object).hasRateLimit(t, 429, rateLimit{"20", "0", "3600", "180"})
}

// Thirty uploads a minute for a user, from all addresses, successful or not.
func TestUploadsAreLimited(t *testing.T) {
	t.Parallel()

	c := start(t, "LIMIT_REQUESTS=0").signUp(t)
	upload := func(c client) response {
		t.Helper()
		return c.send(t, "POST", "/api/textures", encodeMultipart(t, "name=A&type=skin", skinFile(t, 1)))
	}
	upload(c).hasRateLimit(t, 200, rateLimit{"30", "29", "2", ""})
	c.send(t, "POST", "/api/textures", body{"text/plain", []byte("x")}).hasRateLimit(t, 415, rateLimit{"30", "28", "4", ""})
	c.send(t, "POST", "/api/textures", body{}).hasRateLimit(t, 422, rateLimit{"30", "27", "6", ""})
	for range 26 {
		if a := upload(c); a.status != 409 {
			t.Fatalf("%s is answered with %d %s", a.request, a.status, a.body)
		}
	}
	upload(c.from(t, "203.0.113.7")).hasRateLimit(t, 409, rateLimit{"30", "0", "60", ""})
	upload(c).hasRateLimit(t, 429, rateLimit{"30", "0", "60", "2"})
	c.price(t, "name=A&type=skin", skinFile(t, 1)).hasRateLimit(t, 200, rateLimit{"120", "119", "1", ""}) // has a limit of its own
	// An upload beyond the limit is rejected before its body has arrived.
	conn, err := c.http.Dial("")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintf(conn, "POST /api/textures HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nContent-Length: 1000000\r\n\r\nx", c.token); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); !strings.Contains(line, " 429 ") {
		t.Errorf("an upload of which a byte has arrived is answered %q, %v; want 429", line, err)
	}
	upload(c.signUp(t)).hasRateLimit(t, 409, rateLimit{"30", "29", "2", ""})
	c.get(t, "/api/user").hasRateLimit(t, 200, rateLimit{})
	c.site.advance(2 * time.Second)
	upload(c).hasRateLimit(t, 409, rateLimit{"30", "0", "60", ""})
	upload(c).hasRateLimit(t, 429, rateLimit{"30", "0", "60", "2"})
}

// A price is computed as an upload is checked, so their rate is limited, too.
func TestPricesAreLimited(t *testing.T) {
	t.Parallel()

	c := start(t, "LIMIT_PRICES=2").signUp(t)
	price := func() response { return c.price(t, "name=A&type=skin", skinFile(t, 1)) }
	price().hasRateLimit(t, 200, rateLimit{"2", "1", "30", ""})
	price().hasRateLimit(t, 200, rateLimit{"2", "0", "60", ""})
	price().hasRateLimit(t, 429, rateLimit{"2", "0", "60", "30"})
	c.site.advance(30 * time.Second)
	price().hasRateLimit(t, 200, rateLimit{"2", "0", "60", ""})
}

// Changes are kept in the change stream for a day, so their rate is limited.
func TestChangesAreLimited(t *testing.T) {
	t.Parallel()

	c := start(t, "LIMIT_REQUESTS=0", "LIMIT_CHANGES=10").signUp(t)
	path := c.player(t, "Zero")
	tid := c.texture(t, "name=Steve&type=steve", skinFile(t, 1)) // counts as an upload only
	for i, change := range []func() response{
		func() response { return c.put(t, path+"/name", `{"name":"One"}`) },
		func() response { return c.put(t, path+"/textures", `{"skin":`+tid+`}`) },
		func() response { return c.delete(t, path+"/textures?type=skin") },
		func() response { return c.put(t, "/api/user/avatar", `{"tid":`+tid+`}`) },
		func() response { return c.put(t, "/api/textures/"+tid, `{"public":false}`) },
		func() response { return c.delete(t, "/api/textures/"+tid) },
		func() response { return c.post(t, "/api/players", `{"name":"Two"}`) },
		func() response { return c.delete(t, path) },
		func() response { return c.delete(t, path) },
	} {
		if a := change(); a.status != 200 && a.status != 404 || a.headerValue("RateLimit-Remaining") != fmt.Sprint(8-i) {
			t.Errorf("%s: %d, and %s changes are left; want %d", a.request, a.status, a.headerValue("RateLimit-Remaining"), 8-i)
		}
	}
	c.post(t, "/api/players", `{"name":"Three"}`).hasRateLimit(t, 429, rateLimit{"10", "0", "60", "6"})
	if n := c.site.count(t, "SELECT count(*) FROM changes"); n > 11 {
		t.Errorf("there are %d changes", n)
	}
	c.put(t, "/api/user", `{"nickname":"Somebody"}`).hasRateLimit(t, 200, rateLimit{})
	c.signUp(t).post(t, "/api/players", `{"name":"Three"}`).hasRateLimit(t, 200, rateLimit{"10", "9", "6", ""})
	c.site.advance(6 * time.Second)
	c.post(t, "/api/players", `{"name":"Four"}`).hasRateLimit(t, 200, rateLimit{"10", "0", "60", ""})
}

func TestNoLimits(t *testing.T) {
	t.Parallel()

	c := start(t, "LIMIT_REQUESTS=0", "LIMIT_REQUESTS_BURST=0", "LIMIT_REGISTRATIONS=0", "LIMIT_UPLOADS=0", "LIMIT_CHANGES=0").signUp(t)
	for range 250 {
		c.get(t, "/api/user").hasRateLimit(t, 200, rateLimit{})
	}
	for range 25 {
		c.post(t, "/api/auth/register", `{"email":"","password":"","nickname":""}`).hasRateLimit(t, 422, rateLimit{})
	}
	for range 35 {
		c.send(t, "POST", "/api/textures", encodeMultipart(t, "name=A&type=skin", []byte("no PNG"))).hasRateLimit(t, 422, rateLimit{})
	}
}

// An invalid limit is an error that names the setting.
func TestLimitsAreChecked(t *testing.T) {
	t.Parallel()

	f := func(limits public.Limits, want string) {
		t.Helper()
		_, err := api.New(httpserver.Options{Log: slog.New(slog.DiscardHandler)}, api.Services{},
			api.Config{Registration: "open", BodyBytes: 65536, Limits: limits}, 0, time.Now)
		switch {
		case want == "" && err != nil:
			t.Errorf("%+v: %v", limits, err)
		case want != "" && (err == nil || !strings.HasPrefix(err.Error(), want+" is ")):
			t.Errorf("%+v: %v; want an error that names %s", limits, err, want)
		}
	}

	f(public.Limits{}, "")
	f(public.Limits{Requests: 1, RequestsBurst: 1}, "")
	f(public.Limits{Requests: 1_000_000, RequestsBurst: 1_000_000, Registrations: 1_000_000, Uploads: 1_000_000}, "")
	f(public.Limits{Requests: 1}, "LIMIT_REQUESTS_BURST")
	f(public.Limits{Requests: -1, RequestsBurst: 1}, "LIMIT_REQUESTS")
	f(public.Limits{Requests: 2_000_000_000, RequestsBurst: 1}, "LIMIT_REQUESTS")
	f(public.Limits{Requests: 1, RequestsBurst: -1}, "LIMIT_REQUESTS_BURST")
	f(public.Limits{Requests: 1, RequestsBurst: 1 << 40}, "LIMIT_REQUESTS_BURST")
	f(public.Limits{Registrations: -1}, "LIMIT_REGISTRATIONS")
	f(public.Limits{Uploads: -1}, "LIMIT_UPLOADS")
	f(public.Limits{Prices: -1}, "LIMIT_PRICES")
	f(public.Limits{Changes: -1}, "LIMIT_CHANGES")
}
