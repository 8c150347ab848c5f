package api_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/coretest"
	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// logIn sends a log-in.
func (c client) logIn(t *testing.T, email, password string) response {
	t.Helper()
	return c.Post(t, "/api/auth/login", `{"email":"`+email+`","password":"`+password+`"}`)
}

const (
	rightPassword = "correct horse"
	wrongPassword = "wrong horse"
)

// isToken checks that the response is a token.
func isToken(t *testing.T, r response) {
	t.Helper()
	r.Is(t, 200, `{"token":"<jwt>","token_type":"Bearer","expires_in":3600}`)
}

// isRateLimited checks that the response is a 429 with Retry-After.
func isRateLimited(t *testing.T, r response, seconds string) {
	t.Helper()
	r.IsError(t, 429, 8)
	testenv.Equal(t, r.Header.Get("Retry-After"), seconds, "%s: Retry-After", r.Request())
}

// failures returns the number of failed log-ins that count.
func (s testSite) failures(t *testing.T) int {
	t.Helper()
	return s.Count(t, "SELECT count(*) FROM login_failures")
}

// addFailures inserts failed log-ins with an e-mail address, each from another client address.
func (s testSite) addFailures(t *testing.T, email string, times int) {
	t.Helper()
	account := sha256.Sum256([]byte(casefold.Key(email)))
	s.Exec(t, `
		INSERT INTO login_failures (settled, failed_at, account, address)
		SELECT true, $1, $2, inet '198.18.0.0' + n FROM generate_series(1, $3::bigint) n`, s.Clock(), account[:], times)
}

// newUser returns a client that is not signed in, on a site with one user with a password and a
// log-in from coretest.HomeNetwork.
func newUser(t *testing.T, environ ...string) client {
	t.Helper()
	c := start(t, environ...).signUp(t)
	c.withPassword(t, rightPassword)
	return c.as("")
}

const knownEmail, unknownEmail = "user1@example.com", "nobody@example.com"

// Ten failures in 15 minutes with an e-mail address from a client address, at all servers together,
// whether or not there is an account.
func TestLoginLimitPerPair(t *testing.T) {
	t.Parallel()
	c := newUser(t)
	first, second, otherServer := c.from(t, "203.0.113.7"), c.from(t, "203.0.113.8"), c.site.serve(t).from(t, "203.0.113.7")
	transcript := func(email string) (all []byte) {
		t.Helper()
		note := func(a response) response {
			all = fmt.Appendf(all, "%d %s %s\n", a.Status, a.Header.Get("Retry-After"), a.Body)
			return a
		}
		for i := range 10 {
			note([]client{first, otherServer}[i%2].logIn(t, email, wrongPassword)).IsError(t, 401, 5)
		}
		for _, c := range []client{first, otherServer} {
			isRateLimited(t, note(c.logIn(t, email, wrongPassword)), "900")
			isRateLimited(t, note(c.logIn(t, email, rightPassword)), "900")
			isRateLimited(t, note(c.logIn(t, " "+strings.ToUpper(email), rightPassword)), "900")
		}
		return all
	}
	known, unknown := transcript(knownEmail), transcript(unknownEmail)
	testenv.Equal(t, string(known), string(unknown), "the responses on an account, as on none")

	// Other e-mail addresses from the same client address do not wait, nor does the same one from
	// another.
	first.logIn(t, "another@example.com", wrongPassword).IsError(t, 401, 5)
	isToken(t, second.logIn(t, knownEmail, rightPassword))

	c.site.Advance(15*time.Minute - time.Second)
	isRateLimited(t, first.logIn(t, knownEmail, rightPassword), "1")
	testenv.Equal(t, c.site.failures(t), 21, "log-ins count as failed")
	c.site.Advance(time.Second)
	isToken(t, otherServer.logIn(t, knownEmail, rightPassword))
	first.logIn(t, knownEmail, wrongPassword).IsError(t, 401, 5)
}

// After a reset of the password by mail, its address can log in despite the failures of other
// clients.
func TestPasswordResetEndsLockout(t *testing.T) {
	t.Parallel()
	c := newUser(t)
	// addFailuresFrom inserts failed log-ins from an address, each with another e-mail address.
	addFailuresFrom := func(address string, emails ...string) {
		t.Helper()
		for _, email := range emails {
			account := sha256.Sum256([]byte(casefold.Key(email)))
			c.site.Exec(t, "INSERT INTO login_failures (settled, failed_at, account, address) VALUES (true, $1, $2, $3)", c.site.Clock(), account[:], address)
		}
	}
	var others []string
	for i := range 200 {
		others = append(others, fmt.Sprintf("other%d@example.com", i))
	}
	c.site.addFailures(t, knownEmail, 100)
	reset := func(from, network, password string) {
		t.Helper()
		addFailuresFrom(network, others...)
		addFailuresFrom(network, slices.Repeat([]string{knownEmail}, 10)...)
		at := c.from(t, from)
		at.logIn(t, knownEmail, rightPassword).IsError(t, 429, 8)
		token := c.link(t, core.ForReset)
		at.Post(t, "/api/auth/password", `{"token":"`+token+`","password":"`+password+`"}`).Is(t, 200, emptySuccess)
	}

	reset("203.0.113.7", "203.0.113.7", "second horse")
	c.from(t, "203.0.113.8").logIn(t, knownEmail, "second horse").IsError(t, 429, 8)
	first := c.from(t, "203.0.113.7")
	first.logIn(t, "other0@example.com", rightPassword).IsError(t, 429, 8)
	isToken(t, first.logIn(t, knownEmail, "second horse"))

	reset("2001:db8:1:2::1", "2001:db8:1:2::/64", "third horse")
	c.from(t, "2001:db8:1:3::1").logIn(t, knownEmail, "third horse").IsError(t, 429, 8)
	isToken(t, c.from(t, "2001:db8:1:2:ffff::9").logIn(t, knownEmail, "third horse"))

	// After that, failures count as before, and after an hour those with other e-mail addresses,
	// too.
	for range 10 {
		first.logIn(t, knownEmail, wrongPassword).IsError(t, 401, 5)
	}
	first.logIn(t, knownEmail, "third horse").IsError(t, 429, 8)
	c.site.Advance(time.Hour)
	addFailuresFrom("203.0.113.7", others...)
	first.logIn(t, knownEmail, "third horse").IsError(t, 429, 8)
}

// Each failure expires by itself, so one more attempt is possible when the first has expired.
func TestLoginFailuresExpireIndividually(t *testing.T) {
	t.Parallel()
	c := newUser(t, "LIMIT_LOGIN_FAILURES=2")
	c.logIn(t, knownEmail, wrongPassword).IsError(t, 401, 5)
	c.site.Advance(10 * time.Minute)
	c.logIn(t, knownEmail, wrongPassword).IsError(t, 401, 5)
	isRateLimited(t, c.logIn(t, knownEmail, wrongPassword), "300")
	c.site.Advance(5 * time.Minute)
	c.logIn(t, knownEmail, wrongPassword).IsError(t, 401, 5)
	isRateLimited(t, c.logIn(t, knownEmail, rightPassword), "600")
}

// 200 failures in 15 minutes from a client address, with any e-mail addresses. An IPv6 client
// counts by its /64.
func TestLoginLimitPerAddress(t *testing.T) {
	t.Parallel()
	f := func(c client, network, sameNetwork, other string) {
		t.Helper()
		c.site.Exec(t, `
			INSERT INTO login_failures (settled, failed_at, account, address)
			SELECT true, $1, sha256(n::text::bytea), $2 FROM generate_series(1, 199) n`, c.site.Clock(), network)
		first, second := c.from(t, sameNetwork), c.from(t, other)
		first.logIn(t, unknownEmail, wrongPassword).IsError(t, 401, 5)
		isRateLimited(t, first.logIn(t, knownEmail, rightPassword), "900")
		isRateLimited(t, first.logIn(t, unknownEmail, wrongPassword), "900")
		isRateLimited(t, c.site.serve(t).from(t, sameNetwork).logIn(t, knownEmail, rightPassword), "900")
		isToken(t, second.logIn(t, knownEmail, rightPassword))
		c.site.Advance(15 * time.Minute)
		isToken(t, first.logIn(t, knownEmail, rightPassword))
	}

	c := newUser(t)
	f(c, "203.0.113.7", "203.0.113.7", "203.0.113.8")
	f(c, "2001:db8::/64", "2001:db8::1234:5678:9abc:def0", "2001:db8:0:1::1")
	f(c, "203.0.113.9", "::ffff:203.0.113.9", "203.0.113.10")
}

// After 100 failures an hour with an e-mail address, from all addresses together, log-ins from
// addresses that the user never signed in from wait longer and longer. Others do not wait.
func TestLoginLimitPerAccount(t *testing.T) {
	t.Parallel()
	c := newUser(t)
	known := c.from(t, coretest.HomeNetwork.Addr().String())
	for _, email := range []string{knownEmail, unknownEmail} {
		guesses := 0
		guess := func() response {
			t.Helper()
			guesses++
			return c.from(t, fmt.Sprintf("203.0.113.%d", guesses)).logIn(t, email, wrongPassword)
		}
		c.site.addFailures(t, email, 99)
		guess().IsError(t, 401, 5)
		for _, delay := range []int{1, 2, 4, 8} {
			isRateLimited(t, guess(), fmt.Sprint(delay))
			isRateLimited(t, c.site.serve(t).from(t, "203.0.113.99").logIn(t, email, rightPassword), fmt.Sprint(delay))
			c.site.Advance(time.Duration(delay) * time.Second)
			guess().IsError(t, 401, 5)
		}
		if email == knownEmail {
			isToken(t, known.logIn(t, email, rightPassword))
			known.logIn(t, email, wrongPassword).IsError(t, 401, 5)
			isToken(t, known.logIn(t, email, rightPassword))
		} else {
			isRateLimited(t, known.logIn(t, email, wrongPassword), "16")
		}

		// The delay is bounded, and the failures expire after their hour.
		c.site.addFailures(t, email, 200)
		isRateLimited(t, guess(), "900")
		c.site.Advance(15 * time.Minute)
		guess().IsError(t, 401, 5)
		isRateLimited(t, guess(), "900")
		c.site.Advance(time.Hour)
		guess().IsError(t, 401, 5)
		guess().IsError(t, 401, 5)
	}
	// After a successful log-in the address is known.
	guest := c.from(t, "203.0.113.200")
	isToken(t, guest.logIn(t, knownEmail, rightPassword))
	c.site.addFailures(t, knownEmail, 150)
	isToken(t, guest.logIn(t, knownEmail, rightPassword))
}

// Only failures count: not a right password, a ban, or an invalid request.
func TestOnlyFailuresCount(t *testing.T) {
	t.Parallel()
	c := newUser(t, "LIMIT_LOGIN_FAILURES=3")
	for range 5 {
		isToken(t, c.logIn(t, knownEmail, rightPassword))
	}
	c.site.Exec(t, "UPDATE users SET permission = -1")
	for range 5 {
		c.logIn(t, knownEmail, rightPassword).IsError(t, 403, -1)
	}
	c.site.Exec(t, "UPDATE users SET permission = 0")
	c.Post(t, "/api/auth/login", `{"email":"user1@example.com"}`).IsError(t, 422, 4, "password")
	c.logIn(t, `user1\u0000@example.com`, wrongPassword).IsError(t, 422, 4, "email")
	testenv.Equal(t, c.site.failures(t), 0, "log-ins count as failed")

	// A success removes its own attempt from the count, and no earlier failure.
	c.logIn(t, knownEmail, wrongPassword).IsError(t, 401, 5)
	c.logIn(t, knownEmail, wrongPassword).IsError(t, 401, 5)
	isToken(t, c.logIn(t, knownEmail, rightPassword))
	c.logIn(t, knownEmail, wrongPassword).IsError(t, 401, 5)
	isRateLimited(t, c.logIn(t, knownEmail, rightPassword), "900")
}

// With a stolen token, passwords can be tried at other routes. All of these failures count
// together, at all servers.
func TestWrongCurrentPasswordsCountAsFailures(t *testing.T) {
	t.Parallel()
	c := start(t, "LIMIT_LOGIN_FAILURES=3", "LIMIT_REGISTRATIONS=0").signUp(t)
	c.withPassword(t, rightPassword)
	otherServer := c.site.serve(t).as(c.Token)
	changes := []struct{ method, path, field, object string }{
		{"PUT", "/api/user/password", "current_password", `{"current_password":"%s","new_password":"another horse"}`},
		{"PUT", "/api/user/email", "password", `{"email":"other@example.com","password":"%s"}`},
		{"DELETE", "/api/user", "password", `{"password":"%s"}`},
	}
	for i, change := range changes {
		wrong := encodeJSON(fmt.Sprintf(change.object, wrongPassword))
		[]client{c, otherServer}[i%2].Send(t, change.method, change.path, wrong).IsError(t, 422, 4, change.field)
		testenv.Equal(t, c.site.failures(t), i+1, "wrong passwords that count")
	}
	for _, change := range changes {
		right := encodeJSON(fmt.Sprintf(change.object, rightPassword))
		isRateLimited(t, otherServer.Send(t, change.method, change.path, right), "900")
	}
	isRateLimited(t, c.as("").logIn(t, knownEmail, rightPassword), "900")
	c.works(t, true)
	c.site.HasCount(t, 1, "SELECT count(*) FROM users WHERE email = $1", knownEmail)

	// Right passwords do not count, also when the change fails for another reason.
	c.site.Advance(15 * time.Minute)
	c.site.Exec(t, "DELETE FROM login_failures")
	c.signUp(t)
	c.Put(t, "/api/user/email", `{"email":"user2@example.com","password":"`+rightPassword+`"}`).IsError(t, 409, 2, "email")
	password := rightPassword
	for _, change := range changes {
		c.Send(t, change.method, change.path, encodeJSON(fmt.Sprintf(change.object, password))).HasStatus(t, 200)
		password = "another horse" // set by the first change
	}
	testenv.Equal(t, c.site.failures(t), 0, "right passwords count as failures")
}

// Concurrent log-ins with the right password get no 429, unlike guesses.
func TestConcurrentLogins(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)

	c := newUser(t)
	responses := make(chan response, 30)
	for range cap(responses) {
		go func() { responses <- c.logIn(t, knownEmail, rightPassword) }()
	}
	welcome := 0
	for range cap(responses) {
		if a := <-responses; a.Status == 200 {
			isToken(t, a)
			welcome++
		} else {
			isRateLimited(t, a, "1")
		}
	}
	testenv.Check(t, welcome >= 10,
		"%d of %d log-ins succeed; want at least as many as may fail", welcome, cap(responses))
	testenv.Equal(t, c.site.failures(t), 0, "log-ins count as failed")
	isToken(t, c.logIn(t, knownEmail, rightPassword))
}

func TestNoLoginLimits(t *testing.T) {
	t.Parallel()
	c := newUser(t, "LIMIT_LOGIN_FAILURES=0", "LIMIT_LOGIN_FAILURES_PER_ADDRESS=0", "LIMIT_LOGIN_FAILURES_PER_ACCOUNT=0")
	c.site.addFailures(t, knownEmail, 500)
	c.site.Exec(t, "INSERT INTO login_failures (settled, failed_at, account, address) SELECT true, failed_at, account, '0.0.0.0' FROM login_failures")
	c.logIn(t, knownEmail, wrongPassword).IsError(t, 401, 5)
	isToken(t, c.logIn(t, knownEmail, rightPassword))
}

// Of concurrent log-ins and changes with the right password, none fails because another one has
// replaced the hash.
func TestConcurrentRehashes(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)

	c := start(t).signUp(t)
	old := testenv.Must(bcrypt.GenerateFromPassword([]byte(rightPassword), bcrypt.MinCost))(t)
	for range 3 {
		c.site.Exec(t, "UPDATE users SET password_hash = $2 WHERE uid = $1", c.UID, string(old))
		responses := make(chan response, 4)
		for range cap(responses) / 2 {
			go func() {
				responses <- c.Put(t, "/api/user/email", `{"email":"user1@example.com","password":"`+rightPassword+`"}`)
			}()
			go func() { responses <- c.logIn(t, knownEmail, rightPassword) }()
		}
		for range cap(responses) {
			(<-responses).HasStatus(t, 200)
		}
	}
}

// A spoofed X-Forwarded-For allows no more guesses.
func TestSpoofedAddresses(t *testing.T) {
	t.Parallel()
	c := newUser(t, "LIMIT_LOGIN_FAILURES=2", "LIMIT_REGISTRATIONS=2")
	spoof := func(i int, path, object string) response {
		t.Helper()
		address := fmt.Sprintf("203.0.113.%d", i)
		return c.Send(t, "POST", path, encodeJSON(object), "X-Forwarded-For", address, "X-Real-IP", address, "Forwarded", "for="+address)
	}
	for i := range 4 {
		a := spoof(i, "/api/auth/login", `{"email":"user1@example.com","password":"wrong horse"}`)
		if i < 2 {
			a.IsError(t, 401, 5)
		} else {
			isRateLimited(t, a, "900")
		}
		if a = spoof(i, "/api/auth/register", `{"email":"user1@example.com","password":"correct horse","nickname":"A"}`); i < 2 {
			a.IsError(t, 409, 2, "email")
		} else {
			a.IsError(t, 429, 8)
		}
	}
}

// Behind a trusted proxy the address that the proxy adds counts, and not those before it, which the
// client may have sent.
func TestForwardedAddresses(t *testing.T) {
	t.Parallel()
	c := newUser(t, "TRUSTED_PROXIES=10.0.0.0/8,2001:db8:ffff::/48", "LIMIT_LOGIN_FAILURES=2")
	f := func(peer, forwarded, counted string) {
		t.Helper()
		before := c.site.Count(t, "SELECT count(*) FROM login_failures WHERE address = $1", counted)
		a := c.from(t, peer).Send(t, "POST", "/api/auth/login", encodeJSON(`{"email":"user1@example.com","password":"wrong horse"}`), "X-Forwarded-For", forwarded)
		if before == 2 {
			isRateLimited(t, a, "900")
			return
		}
		a.IsError(t, 401, 5)
		c.site.HasCount(t, before+1, "SELECT count(*) FROM login_failures WHERE address = $1", counted)
	}

	f("10.0.0.1", "203.0.113.7", "203.0.113.7")
	f("10.0.0.2", "198.51.100.1, 203.0.113.7", "203.0.113.7")
	f("10.0.0.1", "198.51.100.2, 203.0.113.7", "203.0.113.7")           // this address has to wait
	f("10.0.0.1", "198.51.100.3, 203.0.113.7, 10.9.9.9", "203.0.113.7") // two proxies
	f("10.0.0.1", "203.0.113.7, 203.0.113.8", "203.0.113.8")
	f("2001:db8:ffff::1", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64")
	f("2001:db8:ffff::1", "2001:db8:1:2::1", "2001:db8:1:2::/64")
	f("2001:db8:ffff::1", "2001:db8:1:2::2", "2001:db8:1:2::/64")
	f("10.0.0.1", "203.0.113.20:40001", "203.0.113.20") // some gateways append the port
	f("10.0.0.1", "203.0.113.20:40002, 10.9.9.9:443,", "203.0.113.20")
	f("10.0.0.1", "[2001:db8:2::1]:4711", "2001:db8:2::/64")
	f("10.0.0.1", "nonsense", "10.0.0.1")
	// X-Forwarded-For of an untrusted peer is ignored.
	f("198.51.100.9", "203.0.113.9", "198.51.100.9")
	f("198.51.100.9", "10.0.0.1", "198.51.100.9")
	f("198.51.100.9", "203.0.113.10", "198.51.100.9")
	f("10.0.0.1", "203.0.113.9", "203.0.113.9")
}
