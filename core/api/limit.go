package api

import (
	"fmt"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/fault"
)

// Limits bounds how often one client may ask. Each core counts for itself. A
// limit of 0 is none.
type Limits struct {
	Requests      int `env:"REQUESTS" envDefault:"50" help:"most API requests a second of a user, or of an address that is not signed in, at each core; 0 for any number"`
	RequestsBurst int `env:"REQUESTS_BURST" envDefault:"200" help:"most of those requests at once, after a pause"`
	Registrations int `env:"REGISTRATIONS" envDefault:"20" help:"most registrations, and changes of an e-mail address, an hour from an address, at each core; 0 for any number"`
	Uploads       int `env:"UPLOADS" envDefault:"30" help:"most uploads a minute of a user, at each core; 0 for any number"`
}

// mostTimes bounds limits, far beyond any that limits: times between requests are
// reckoned in nanoseconds.
const mostTimes = 1_000_000

func (l Limits) check() error {
	for name, value := range map[string]int{
		"LIMIT_REQUESTS": l.Requests, "LIMIT_REQUESTS_BURST": l.RequestsBurst, "LIMIT_REGISTRATIONS": l.Registrations, "LIMIT_UPLOADS": l.Uploads,
	} {
		if value < 0 || value > mostTimes {
			return fmt.Errorf("%s is %d, but must be 0 to %d", name, value, mostTimes)
		}
	}
	if l.Requests > 0 && l.RequestsBurst < 1 {
		return fmt.Errorf("LIMIT_REQUESTS_BURST is %d, but must be at least 1", l.RequestsBurst)
	}
	return nil
}

// client is who is counted: a user, or the network that the address of somebody
// stands for who is not signed in, or a token that works no longer.
type client struct {
	user    core.UserID
	network netip.Prefix
	token   uuid.UUID
}

// The headers by which a client can pace itself, in the form in which fasthttp
// keeps names: every answer has them.
var (
	headerLimit     = []byte("Ratelimit-Limit")
	headerRemaining = []byte("Ratelimit-Remaining")
	headerReset     = []byte("Ratelimit-Reset")
)

// limiter lets each client do a thing so often: burst times at once, and then
// once in every interval. It is a token bucket, kept as the one time at which the
// bucket is full again (the generic cell rate algorithm of ITU-T I.371).
type limiter struct {
	what     string // in complaints: requests
	interval time.Duration
	burst    int
	limit    []byte // burst in digits
	now      core.Clock
	shards   [16]limiterShard
}

type limiterShard struct {
	mu      sync.Mutex
	full    map[client]time.Time
	sweepAt int // the size at which those whose bucket is full are forgotten
}

// minSweep keeps small maps from being swept all the time, maxClients bounds the
// memory of a shard to about a megabyte.
const (
	minSweep   = 1024
	maxClients = 1 << 13
)

// newLimiter returns a limiter to so many times in a period; nil for no limit.
func newLimiter(what string, times int, period time.Duration, burst int, now core.Clock) *limiter {
	if times == 0 {
		return nil
	}
	l := &limiter{what: what, interval: period / time.Duration(times), burst: burst, limit: strconv.AppendInt(nil, int64(burst), 10), now: now}
	for i := range l.shards {
		l.shards[i].full, l.shards[i].sweepAt = map[client]time.Time{}, minSweep
	}
	return l
}

func (l *limiter) shard(c client) *limiterShard {
	h := uint64(c.user) + uint64(c.token[0]) // tokens' ids are random
	if c.network.IsValid() {
		for _, b := range c.network.Addr().As16() {
			h = h*31 + uint64(b)
		}
	}
	return &l.shards[h%uint64(len(l.shards))]
}

// take counts one more time and says so in the answer's headers. It returns a
// TooMany fault, and counts nothing, when the client has to wait.
func (l *limiter) take(rc *fasthttp.RequestCtx, c client) error { return l.ask(rc, c, true) }

// look returns what take would return, and counts nothing.
func (l *limiter) look(rc *fasthttp.RequestCtx, c client) error { return l.ask(rc, c, false) }

func (l *limiter) ask(rc *fasthttp.RequestCtx, c client, count bool) error {
	if l == nil {
		return nil
	}
	now, shard := l.now(), l.shard(c)
	shard.mu.Lock()
	full := shard.full[c]
	if full.Before(now) {
		full = now
	}
	full = full.Add(l.interval)
	room := time.Duration(l.burst)*l.interval - full.Sub(now)
	if room >= 0 && count {
		shard.put(c, full, now)
	}
	shard.mu.Unlock()
	if room >= 0 && !count {
		return nil
	}

	if room < 0 {
		full = full.Add(-l.interval)
	}
	l.tell(rc, max(0, int(room/l.interval)), full.Sub(now))
	if room < 0 {
		return &fault.Error{
			Kind: fault.TooMany, Message: "There were too many " + l.what + ". Please wait before the next one.", RetryAfter: -room,
		}
	}
	return nil
}

// giveBack takes back one time that should not have counted.
func (l *limiter) giveBack(c client) {
	if l == nil {
		return
	}
	shard := l.shard(c)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if full, ok := shard.full[c]; ok {
		shard.full[c] = full.Add(-l.interval)
	}
}

// put remembers a client. Once in a while it forgets those whose bucket is full:
// they are as good as new. Should too many be left, half of them get a new bucket
// at once, so that even then few calls look through all.
func (s *limiterShard) put(c client, full, now time.Time) {
	s.full[c] = full
	if len(s.full) < s.sweepAt {
		return
	}
	kept := map[client]time.Time{} // deleting would not give the old one's memory back
	for other, at := range s.full {
		if at.After(now) && len(kept) < maxClients/2 {
			kept[other] = at
		}
	}
	s.full, s.sweepAt = kept, min(max(minSweep, 2*len(kept)), maxClients)
}

// tell says how many times are possible at once, how many are left, and in how
// many seconds all are again.
func (l *limiter) tell(rc *fasthttp.RequestCtx, left int, full time.Duration) {
	var digits [20]byte
	header := &rc.Response.Header
	header.SetCanonical(headerLimit, l.limit)
	header.SetCanonical(headerRemaining, strconv.AppendInt(digits[:0], int64(left), 10))
	header.SetCanonical(headerReset, strconv.AppendInt(digits[:0], int64((full+time.Second-1)/time.Second), 10))
}
