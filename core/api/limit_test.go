package api_test

import (
	"bufio"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/core/clientapi"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// rateLimit has the rate limit headers of a response.
type rateLimit struct{ Limit, Remaining, Reset, RetryAfter string }

// hasRateLimit checks the status and the rate limit headers.
func hasRateLimit(t *testing.T, r response, status int, want rateLimit) {
	t.Helper()
	testenv.Equal(t, r.Status, status, "%s: the status", r.Request())
	get := r.Header.Get
	got := rateLimit{get("RateLimit-Limit"), get("RateLimit-Remaining"), get("RateLimit-Reset"), get("Retry-After")}
	testenv.Equal(t, got, want, "%s: the limit", r.Request())
	if status == 429 {
		r.IsError(t, 429, 8)
	}
}

// exhaustLimit sends so many requests, which must succeed, and one that must get 429.
func (c client) exhaustLimit(t *testing.T, requests int) {
	t.Helper()
	for i := range requests {
		if a := c.Get(t, "/api/user"); a.Status == 429 {
			t.Fatalf("request %d of %d is one too many", i+1, requests)
		}
	}
	c.Get(t, "/api/user").IsError(t, 429, 8)
}

func TestRequestsAreLimited(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	hasRateLimit(t, c.Get(t, "/api/user"), 200, rateLimit{"200", "199", "1", ""})
	hasRateLimit(t, c.Get(t, "/api/players"), 200, rateLimit{"200", "198", "1", ""})
	for range 150 {
		c.Get(t, "/api/user")
	}
	hasRateLimit(t, c.Get(t, "/api/user"), 200, rateLimit{"200", "47", "4", ""})
	c.exhaustLimit(t, 47)
	hasRateLimit(t, c.Get(t, "/api/user"), 429, rateLimit{"200", "0", "4", "1"})
	hasRateLimit(t, c.Get(t, "/api/user"), 429, rateLimit{"200", "0", "4", "1"}) // the rejected request did not count

	// Fifty a second are refilled, up to 200.
	c.site.Advance(time.Second)
	c.exhaustLimit(t, 50)
	c.site.Advance(time.Hour)
	c.exhaustLimit(t, 200)
}

// A user has one limit at all addresses; a client that is not signed in has the limit of its
// address.
func TestRequestLimitKeys(t *testing.T) {
	t.Parallel()
	c := start(t, "LIMIT_REQUESTS=1", "LIMIT_REQUESTS_BURST=3").signUp(t)
	first, second := c.from(t, "203.0.113.7"), c.from(t, "203.0.113.8")
	hasRateLimit(t, second.Get(t, "/api/user"), 200, rateLimit{"3", "2", "1", ""})
	hasRateLimit(t, c.signIn(t).from(t, "203.0.113.9").Get(t, "/api/user"), 200, rateLimit{"3", "1", "2", ""})
	first.exhaustLimit(t, 1)
	second.Get(t, "/api/closet").IsError(t, 429, 8)

	// Other users at the address, and the address itself, have their own limits.
	other := first.signUp(t)
	other.exhaustLimit(t, 3)
	first.as("").exhaustLimit(t, 3)
	for _, path := range []string{"/api/auth/login", "/api/auth/register", "/api/auth/refresh"} {
		first.Post(t, path, `{}`).IsError(t, 429, 8)
	}
	first.Get(t, "/api/nothing").IsError(t, 429, 8)
	first.as("nonsense").Get(t, "/api/user").IsError(t, 429, 8)
	first.as(forgery{key: "x"}.of(t, c.Token)).Get(t, "/api/user").IsError(t, 429, 8)
	second.as("").Get(t, "/api/user").IsError(t, 401, 5)

	// An IPv6 client counts by its /64.
	c.as("").from(t, "2001:db8::1").exhaustLimit(t, 3)
	c.as("").from(t, "2001:db8::ffff:0:1").Get(t, "/api/user").IsError(t, 429, 8)
	c.as("").from(t, "2001:db8:0:1::1").Get(t, "/api/user").IsError(t, 401, 5)
	// An IPv4-mapped IPv6 address counts as the IPv4 address.
	c.as("").from(t, "::ffff:203.0.113.7").Get(t, "/api/user").IsError(t, 429, 8)
}

// Requests with a revoked token do not use up the user's limit, and are looked up in the database
// only within their own limit.
func TestRequestsWithEndedTokens(t *testing.T) {
	t.Parallel()
	s := newSite(t, "LIMIT_REQUESTS=1", "LIMIT_REQUESTS_BURST=5")
	trips := s.countRoundTrips(t)
	c := s.serve(t).signUp(t)
	guesser := c.signIn(t).from(t, "203.0.113.7")
	hasRateLimit(t, c.Get(t, "/api/user"), 200, rateLimit{"5", "4", "1", ""})
	c.site.Exec(t, "DELETE FROM sessions WHERE sid = $1", guesser.claim(t, "sid"))

	before := trips.count()
	for range 5 {
		guesser.Get(t, "/api/user").IsError(t, 401, 5)
	}
	testenv.Equal(t, trips.count()-before, 5, "round trips of five requests")
	for range 5 {
		guesser.Get(t, "/api/user").IsError(t, 429, 8)
		guesser.Get(t, "/api/players").IsError(t, 429, 8)
		guesser.from(t, "203.0.113.8").Get(t, "/api/players").IsError(t, 429, 8)
	}
	testenv.Equal(t, trips.count()-before, 5, "round trips of these and of those beyond the limit")
	hasRateLimit(t, c.Get(t, "/api/user"), 200, rateLimit{"5", "3", "2", ""})
	// Another client at the address that is not signed in shares its limit.
	guesser.as("").Get(t, "/api/user").IsError(t, 429, 8)
	// A user at the address does not.
	hasRateLimit(t, c.from(t, "203.0.113.7").Get(t, "/api/user"), 200, rateLimit{"5", "2", "3", ""})

	c.site.Advance(5 * time.Second)
	guesser.Get(t, "/api/user").IsError(t, 401, 5)
}

// Twenty registrations an hour for an address, together with other requests that reveal whether an
// e-mail address is registered.
func TestRegistrationsAreLimited(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	c.withPassword(t, rightPassword)
	object := `{"email":"user1@example.com","password":"correct horse","nickname":"A"}`
	first := c.from(t, "203.0.113.7")
	hasRateLimit(t, first.Post(t, "/api/auth/register", `{"email":"a@example.com","password":"correct horse","nickname":"A"}`), 200, rateLimit{"20", "19", "180", ""})
	hasRateLimit(t, first.Post(t, "/api/auth/register", object), 409, rateLimit{"20", "18", "360", ""})
	for range 25 { // an invalid request reveals nothing and is refunded
		hasRateLimit(t, first.Post(t, "/api/auth/register", `{"email":"a","password":"a","nickname":"A"}`), 422, rateLimit{"20", "17", "540", ""})
	}
	hasRateLimit(t, first.Put(t, "/api/user/email", `{"email":"c@example.com","password":"wrong"}`), 422, rateLimit{"20", "17", "540", ""})
	hasRateLimit(t, first.Put(t, "/api/user/email", `{"email":"a@example.com","password":"correct horse"}`), 409, rateLimit{"20", "17", "540", ""})
	hasRateLimit(t, first.Put(t, "/api/user/email", `{"email":"b@example.com","password":"correct horse"}`), 200, rateLimit{"20", "16", "720", ""})
	for range 16 {
		testenv.Equal(t, first.Post(t, "/api/auth/register", object).Status == 429, false, "the registration is one too many")
	}
	hasRateLimit(t, first.Post(t, "/api/auth/register", object), 429, rateLimit{"20", "0", "3600", "180"})
	hasRateLimit(t, first.Put(t, "/api/user/email", `{"email":"c@example.com","password":"correct horse"}`), 429, rateLimit{"20", "0", "3600", "180"})
	first.logIn(t, "b@example.com", rightPassword).HasStatus(t, 200)
	second := c.from(t, "203.0.113.8")
	hasRateLimit(t, second.Post(t, "/api/auth/register", `{"email":"c@example.com","password":"correct horse","nickname":"A"}`), 200, rateLimit{"20", "19", "180", ""})

	c.site.Advance(3 * time.Minute)
	hasRateLimit(t, first.Post(t, "/api/auth/register", `{"email":"d@example.com","password":"correct horse","nickname":"A"}`), 200, rateLimit{"20", "0", "3600", ""})
	hasRateLimit(t, first.Post(t, "/api/auth/register", object), 429, rateLimit{"20", "0", "3600", "180"})
}

// A client network has five times the registrations and requests for a new password of an address. Invalid ones are
// refunded.
func TestRegistrationsAndResetsOfNetworkAreLimited(t *testing.T) {
	t.Parallel()
	c := start(t, "LIMIT_REGISTRATIONS=2", "LIMIT_RESETS=2")
	register := func(c client, n int) response {
		return c.Post(t, "/api/auth/register", fmt.Sprintf(`{"email":"n%d@example.com","password":"correct horse","nickname":"A"}`, n))
	}
	reset := func(c client) response { return c.Post(t, "/api/auth/reset", `{"email":"a@example.com"}`) }
	for i := range 10 {
		address := c.from(t, fmt.Sprintf("203.0.113.%d", i))
		address.Post(t, "/api/auth/register", `{"email":"a","password":"a","nickname":"A"}`).HasStatus(t, 422)
		register(address, i).HasStatus(t, 200)
		reset(address).HasStatus(t, 200)
	}
	hostile, other := c.from(t, "203.0.113.99"), c.from(t, "198.51.100.1")
	for _, refused := range []response{register(hostile, 10), reset(hostile)} {
		refused.IsError(t, 429, 8)
		testenv.Equal(t, refused.Header.Get("Retry-After"), "360", "Retry-After")
	}
	register(other, 11).HasStatus(t, 200)
	reset(other).HasStatus(t, 200)
	c.site.Advance(6 * time.Minute)
	register(hostile, 12).HasStatus(t, 200)
	reset(hostile).HasStatus(t, 200)
}

// Thirty uploads a minute for a user, from all addresses, successful or not.
func TestUploadsAreLimited(t *testing.T) {
	t.Parallel()
	c := start(t, "LIMIT_REQUESTS=0").signUp(t)
	upload := func(c client) response { return c.upload(t, "name=A&type=skin", skinFile(t, 1)) }
	hasRateLimit(t, upload(c), 200, rateLimit{"30", "29", "2", ""})
	hasRateLimit(t, c.Send(t, "POST", "/api/textures", raw("text/plain", "x")), 415, rateLimit{"30", "28", "4", ""})
	hasRateLimit(t, c.Send(t, "POST", "/api/textures", body{}), 422, rateLimit{"30", "27", "6", ""})
	for range 26 {
		upload(c).HasStatus(t, 409)
	}
	hasRateLimit(t, upload(c.from(t, "203.0.113.7")), 409, rateLimit{"30", "0", "60", ""})
	hasRateLimit(t, upload(c), 429, rateLimit{"30", "0", "60", "2"})
	hasRateLimit(t, c.price(t, "name=A&type=skin", skinFile(t, 1)), 200, rateLimit{"120", "119", "1", ""}) // has a limit of its own
	// An upload beyond the limit is rejected before its body has arrived.
	conn := testenv.Must(c.HTTP.Dial(""))(t)
	defer func() { _ = conn.Close() }()
	testenv.Must(fmt.Fprintf(conn, "POST /api/textures HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n"+
		"Content-Length: 1000000\r\n\r\nx", c.Token))(t)
	line := testenv.Must(bufio.NewReader(conn).ReadString('\n'))(t)
	testenv.Contains(t, line, " 429 ", "the answer to an upload of which a byte has arrived")
	hasRateLimit(t, upload(c.signUp(t)), 409, rateLimit{"30", "29", "2", ""})
	hasRateLimit(t, c.Get(t, "/api/user"), 200, rateLimit{})
	c.site.Advance(2 * time.Second)
	hasRateLimit(t, upload(c), 409, rateLimit{"30", "0", "60", ""})
	hasRateLimit(t, upload(c), 429, rateLimit{"30", "0", "60", "2"})
}

// A price is computed as an upload is checked, so their rate is limited, too.
func TestPricesAreLimited(t *testing.T) {
	t.Parallel()
	c := start(t, "LIMIT_PRICES=2").signUp(t)
	price := func() response { return c.price(t, "name=A&type=skin", skinFile(t, 1)) }
	hasRateLimit(t, price(), 200, rateLimit{"2", "1", "30", ""})
	hasRateLimit(t, price(), 200, rateLimit{"2", "0", "60", ""})
	hasRateLimit(t, price(), 429, rateLimit{"2", "0", "60", "30"})
	c.site.Advance(30 * time.Second)
	hasRateLimit(t, price(), 200, rateLimit{"2", "0", "60", ""})
}

// Changes are kept in the change stream for a day, so their rate is limited.
func TestChangesAreLimited(t *testing.T) {
	t.Parallel()
	c := start(t, "LIMIT_REQUESTS=0", "LIMIT_CHANGES=12").signUp(t)
	path := c.player(t, "Zero")
	tid := c.texture(t, "name=Steve&type=steve", skinFile(t, 1)) // counts as an upload only
	for i, change := range []func() response{
		func() response { return c.Put(t, path+"/name", `{"name":"One"}`) },
		func() response { return c.Put(t, path+"/textures", `{"skin":`+tid+`}`) },
		func() response { return c.Delete(t, path+"/textures?type=skin") },
		func() response { return c.Put(t, "/api/user/avatar", `{"tid":`+tid+`}`) },
		func() response { return c.Put(t, "/api/textures/"+tid, `{"public":false}`) },
		func() response { return c.Delete(t, "/api/textures/"+tid) },
		func() response { return c.Post(t, "/api/players", `{"name":"Two"}`) },
		func() response { return c.Delete(t, path) },
		func() response { return c.Post(t, "/api/closet", `{"tid":999,"name":"A"}`) },
		func() response { return c.Put(t, "/api/closet/999", `{"name":"B"}`) },
		func() response { return c.Delete(t, "/api/closet/999") },
	} {
		if a := change(); a.Status != 200 && a.Status != 404 || a.Header.Get("RateLimit-Remaining") != fmt.Sprint(10-i) {
			t.Errorf("%s: %d, and %s changes are left; want %d", a.Request(), a.Status, a.Header.Get("RateLimit-Remaining"), 10-i)
		}
	}
	hasRateLimit(t, c.Post(t, "/api/players", `{"name":"Three"}`), 429, rateLimit{"12", "0", "60", "5"})
	n := c.site.Count(t, "SELECT count(*) FROM changes")
	testenv.Check(t, n <= 12, "there are %d changes", n)
	hasRateLimit(t, c.Put(t, "/api/user", `{"nickname":"Somebody"}`), 200, rateLimit{})
	hasRateLimit(t, c.signUp(t).Post(t, "/api/players", `{"name":"Three"}`), 200, rateLimit{"12", "11", "5", ""})
	c.site.Advance(5 * time.Second)
	hasRateLimit(t, c.Post(t, "/api/players", `{"name":"Four"}`), 200, rateLimit{"12", "0", "60", ""})
}

func TestNoLimits(t *testing.T) {
	t.Parallel()
	c := start(t, "LIMIT_REQUESTS=0", "LIMIT_REGISTRATIONS=0", "LIMIT_UPLOADS=0", "LIMIT_CHANGES=0").signUp(t)
	for range 250 {
		hasRateLimit(t, c.Get(t, "/api/user"), 200, rateLimit{})
	}
	for range 25 {
		hasRateLimit(t, c.Post(t, "/api/auth/register", `{"email":"","password":"","nickname":""}`), 422, rateLimit{})
	}
	for range 35 {
		hasRateLimit(t, c.Send(t, "POST", "/api/textures", encodeMultipart(t, "name=A&type=skin", []byte("no PNG"))), 422, rateLimit{})
	}
}

// An invalid limit is an error that names the setting. TestWrongSettings of core/cmd/core tries each.
func TestLimitsAreChecked(t *testing.T) {
	t.Parallel()
	f := func(accepted bool, environ ...string) {
		t.Helper()
		_, err := config.Read[clientapi.Limits]("LIMIT_", environ)
		name, _, _ := strings.Cut(environ[len(environ)-1], "=")
		testenv.Check(t, accepted == (err == nil) && (err == nil || strings.HasPrefix(err.Error(), name+" is ")),
			"%s: %v; want it accepted: %t, or an error that names it", environ, err, accepted)
	}

	f(true, "LIMIT_REQUESTS=0")
	f(true, "LIMIT_REQUESTS=1", "LIMIT_REQUESTS_BURST=1")
	f(true, "LIMIT_REQUESTS=1000000", "LIMIT_REQUESTS_BURST=1000000", "LIMIT_REGISTRATIONS=1000000", "LIMIT_UPLOADS=1000000")
	f(false, "LIMIT_REQUESTS=1", "LIMIT_REQUESTS_BURST=0")
	f(false, "LIMIT_REQUESTS=1", "LIMIT_REQUESTS_BURST=-1")
	f(false, "LIMIT_REQUESTS=-1")
	f(false, "LIMIT_REQUESTS_BURST=1099511627776")
}
