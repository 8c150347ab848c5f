// Package clientapi has what the adapters on core's public listener share: the rate limits of
// clients. Package decode below it parses request bodies.
package clientapi

import (
	"net/netip"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/ratelimit"
)

// HeaderLaunchers tells launchers where their API is, relative to the URL of the response.
const HeaderLaunchers = "X-Authlib-Injector-API-Location"

// Limits are the rate limits of a client. Each core counts by itself. 0 is no limit. Intervals are
// computed in nanoseconds, and rates above the settings' bounds would limit nothing.
// Its settings are CORE_LIMIT_REQUESTS, CORE_LIMIT_REQUESTS_BURST, CORE_LIMIT_REGISTRATIONS,
// CORE_LIMIT_UPLOADS, CORE_LIMIT_PRICES, CORE_LIMIT_CHANGES, CORE_LIMIT_REPORTS, CORE_LIMIT_RESETS.
type Limits struct {
	Requests      int `env:"REQUESTS" envDefault:"50" min:"0" max:"1000000" help:"most API requests a second of a user, or of an address that is not signed in, at each core; 0 for any number"`
	RequestsBurst int `env:"REQUESTS_BURST" envDefault:"200" min:"1" max:"1000000" help:"most of those requests at once, after a pause"`
	Registrations int `env:"REGISTRATIONS" envDefault:"20" min:"0" max:"1000000" help:"most registrations, and changes of an e-mail address, an hour from an address, at each core, and five times as many from a client network; 0 for any number"`
	Uploads       int `env:"UPLOADS" envDefault:"30" min:"0" max:"1000000" help:"most uploads a minute of a user, at each core; 0 for any number"`
	Prices        int `env:"PRICES" envDefault:"120" min:"0" max:"1000000" help:"most requests for the price of an upload a minute of a user, at each core; 0 for any number"`
	Changes       int `env:"CHANGES" envDefault:"120" min:"0" max:"1000000" help:"most changes of players, avatars, textures and closets, a minute of a user, at each core; 0 for any number"`
	Reports       int `env:"REPORTS" envDefault:"20" min:"0" max:"1000000" help:"most reports of textures an hour of a user, at each core, and five times as many of a client network; 0 for any number"`
	Resets        int `env:"RESETS" envDefault:"20" min:"0" max:"1000000" help:"most requests for a link that resets a password, an hour from an address, at each core, and five times as many from a client network; 0 for any number"`
}

// perNetworkFactor times the limit of one user or address is the limit of a client network, since
// one person can have many of both.
const perNetworkFactor = 5

// Key is the subject of a rate limit: a user, the network of a client that is not signed in, or a
// token that is no longer valid.
type Key struct {
	User    core.UserID
	Network netip.Prefix
	Token   uuid.UUID
}

// Limiters are the rate limits of one core. All its adapters share them. A nil Limiter limits
// nothing.
type Limiters struct {
	Requests, Uploads *Limiter
	// Registrations are limited by address and by client network.
	Registrations, NetworkRegistrations *Limiter
	// Prices limits requests for the price of an upload, which is checked as an upload is.
	Prices *Limiter
	// Changes limits what is written to the change stream of the edges, and to closets.
	Changes *Limiter
	// Reports are limited by user and by client network.
	Reports, NetworkReports *Limiter
	// EndedTokens limits requests with tokens of ended sessions.
	EndedTokens *Limiter
	// Resets limits requests for a link that resets a password, by address and by client network.
	Resets, NetworkResets *Limiter
}

// Limiters returns the rate limits of the settings.
func (l Limits) Limiters(now core.Clock) Limiters {
	each := func(noun string, times int, period time.Duration) *Limiter {
		return newLimiter(noun, times, period, times, now)
	}
	ofNetwork := func(noun string, times int) *Limiter {
		return each(noun+" from your network", perNetworkFactor*times, time.Hour)
	}
	return Limiters{
		Requests:             newLimiter("requests", l.Requests, time.Second, l.RequestsBurst, now),
		EndedTokens:          newLimiter("requests", l.Requests, time.Second, l.RequestsBurst, now),
		Registrations:        each("registrations", l.Registrations, time.Hour),
		NetworkRegistrations: ofNetwork("registrations", l.Registrations),
		Uploads:              each("uploads", l.Uploads, time.Minute),
		Prices:               each("requests for a price", l.Prices, time.Minute),
		Changes:              each("changes", l.Changes, time.Minute),
		Reports:              each("reports", l.Reports, time.Hour),
		NetworkReports:       ofNetwork("reports", l.Reports),
		Resets:               each("requests for a new password", l.Resets, time.Hour),
		NetworkResets:        ofNetwork("requests for a new password", l.Resets),
	}
}

// Rate limit headers of every response, in the canonical form of fasthttp.
var (
	headerLimit     = []byte("Ratelimit-Limit")
	headerRemaining = []byte("Ratelimit-Remaining")
	headerReset     = []byte("Ratelimit-Reset")
)

// Limiter is a rate limit that is reported in response headers.
type Limiter struct {
	noun    string // as in "too many requests"
	limit   []byte // the burst, in decimal
	now     core.Clock
	clients *ratelimit.Limiter[Key]
}

// newLimiter returns a limiter of times requests in a period, and burst at once; nil if times
// is 0, for no limit.
func newLimiter(noun string, times int, period time.Duration, burst int, now core.Clock) *Limiter {
	if times == 0 {
		return nil
	}
	return &Limiter{noun: noun, limit: strconv.AppendInt(nil, int64(burst), 10), now: now, clients: ratelimit.New[Key](times, period, burst)}
}

// Take counts a request and sets the headers. When the limit is reached it returns a TooMany fault
// and does not count.
func (l *Limiter) Take(rc *fasthttp.RequestCtx, key Key) error {
	if l == nil {
		return nil
	}
	state := l.clients.Take(key, l.now())
	l.setHeaders(rc, state)
	return l.tooMany(state)
}

// Peek returns what Take would return, without counting.
func (l *Limiter) Peek(rc *fasthttp.RequestCtx, key Key) error {
	if l == nil {
		return nil
	}
	state := l.clients.Peek(key, l.now())
	if state.Wait > 0 {
		l.setHeaders(rc, state)
	}
	return l.tooMany(state)
}

// Refund undoes one Take.
func (l *Limiter) Refund(key Key) {
	if l != nil {
		l.clients.Refund(key)
	}
}

func (l *Limiter) tooMany(state ratelimit.State) error {
	if state.Wait == 0 {
		return nil
	}
	return &fault.Error{Kind: fault.TooMany, Message: "There were too many " + l.noun + ". Please wait before the next one.", RetryAfter: state.Wait}
}

// setHeaders reports the burst, what is left of it, and the seconds until it is full again.
func (l *Limiter) setHeaders(rc *fasthttp.RequestCtx, state ratelimit.State) {
	var digits [20]byte
	header := &rc.Response.Header
	header.SetCanonical(headerLimit, l.limit)
	header.SetCanonical(headerRemaining, strconv.AppendInt(digits[:0], int64(state.Left), 10))
	header.SetCanonical(headerReset, strconv.AppendInt(digits[:0], int64((state.Full+time.Second-1)/time.Second), 10))
}
