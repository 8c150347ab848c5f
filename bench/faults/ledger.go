package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/veneer-skins/veneer/bench/system"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/paint"
)

// person is a user who makes one write of each kind in a fixed order, so that what is
// acknowledged is told by a number. Whoever gets no answer of success makes no further
// one: the last one may be committed, or may be later.
type person struct {
	system.Person

	done  int         // how many writes were acknowledged
	loose bool        // there was one more
	void  atomic.Bool // its writes are to be lost
	ended atomic.Bool // so has the session, whether or not they signed out
	// What the answers said.
	pid, tid int64
	hash     string
	lent     int64 // TID of somebody else's texture for the closet
}

// The writes, in their order: each is done when so many are.
const (
	added = iota + 1
	uploaded
	dressed
	collected
	renamed
	relabelled
	signedOut
)

// form is how fields are sent.
const form = "application/x-www-form-urlencoded"

// names returns what the person's player is called at first and after it was renamed.
func (p *person) names() [2]string {
	return [2]string{fmt.Sprintf("n%da", p.User), fmt.Sprintf("n%db", p.User)}
}

// state is what PostgreSQL has of a person.
type state struct {
	UID         int64
	Name, Wears string // of the player, and the hash of its skin
	Closet      string // as TID=name,…
	Live        bool   // the session
}

// after returns the state when so many writes are committed.
func (p *person) after(writes int) state {
	s := state{UID: int64(p.User), Live: writes < signedOut && !p.ended.Load()}
	var items []string
	if writes >= added {
		s.Name = p.names()[0]
	}
	if writes >= renamed {
		s.Name = p.names()[1]
	}
	if writes >= dressed {
		s.Wears = p.hash
	}
	if writes >= collected { // its TID is the lower one
		items = append(items, fmt.Sprintf("%d=%s", p.lent, label(writes)))
	}
	if writes >= uploaded {
		items = append(items, fmt.Sprintf("%d=own", p.tid))
	}
	s.Closet = strings.Join(items, ",")
	return s
}

func label(writes int) string {
	if writes >= relabelled {
		return "second"
	}
	return "first"
}

// kept reports whether a state has all that was acknowledged.
func (p *person) kept(s state) bool {
	if s == p.after(p.done) {
		return true
	}
	next := p.after(p.done + 1)
	if p.done+1 == uploaded {
		next.Closet = s.Closet // nobody has said which texture it became
	}
	return p.loose && s == next
}

// next returns the person's next write.
func (p *person) next() (method, path, contentType string, body []byte) {
	player := fmt.Sprintf("/api/players/%d", p.pid)
	fields := func(pairs ...string) []byte {
		values := url.Values{}
		for i := 0; i < len(pairs); i += 2 {
			values.Set(pairs[i], pairs[i+1])
		}
		return []byte(values.Encode())
	}
	switch p.done + 1 {
	case added:
		return http.MethodPost, "/api/players", form, fields("name", p.names()[0])
	case uploaded:
		return http.MethodPost, "/api/textures", system.UploadType, system.SheetForm("own", skin.Classic, paint.Noise(uint64(p.User), 64, 64))
	case dressed:
		return http.MethodPut, player + "/textures", form, fields("skin", fmt.Sprint(p.tid))
	case collected:
		return http.MethodPost, "/api/closet", form, fields("tid", fmt.Sprint(p.lent), "name", "first")
	case renamed:
		return http.MethodPut, player + "/name", form, fields("name", p.names()[1])
	case relabelled:
		return http.MethodPut, fmt.Sprintf("/api/closet/%d", p.lent), form, fields("name", "second")
	default:
		return http.MethodPost, "/api/auth/logout", form, nil
	}
}

// ledger is what was acknowledged to whom.
type ledger struct {
	client *http.Client
	base   string

	mu     sync.Mutex
	idle   []*person
	active []*person
}

// take returns somebody who has written nothing yet; nil if nobody is left.
func (l *ledger) take() *person {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.idle) == 0 {
		return nil
	}
	p := l.idle[0]
	l.idle, l.active = l.idle[1:], append(l.active, p)
	return p
}

// bearers returns tokens of n accounts that have written nothing yet. They are the last
// that do.
func (l *ledger) bearers(n int) (tokens []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.idle[len(l.idle)-n:] {
		tokens = append(tokens, p.Bearer)
	}
	return tokens
}

// restored notes that all sessions have ended, and that what was written is lost of those
// who had begun after so many others. From now on others write.
func (l *ledger) restored(others int, idle []*person) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, p := range l.active {
		p.ended.Store(true)
		p.void.Store(p.void.Load() || i >= others)
	}
	l.idle = idle
}

// since returns who has begun to write after so many others.
func (l *ledger) since(others int) []*person {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.active[others:]
}

// write has people make their writes, one a tick, until ctx ends.
func (l *ledger) write(ctx context.Context, tick <-chan time.Time, t *tally) {
	var p *person
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		if p == nil || p.loose || p.ended.Load() || p.void.Load() || p.done == signedOut {
			if p = l.take(); p == nil {
				return
			}
		}
		l.step(p, t)
	}
}

// step makes a person's next write. It waits for the answer, whatever ends meanwhile.
func (l *ledger) step(p *person, t *tally) {
	method, path, contentType, body := p.next()
	began := time.Now()
	status, content, err := l.call(method, path, p.Bearer, contentType, body)
	if took := time.Since(began); err != nil {
		t.wrong("no answer", took)
	} else if status >= http.StatusBadRequest {
		t.wrong(fmt.Sprint(status), took)
	} else {
		t.right(took)
	}
	if err != nil || status >= http.StatusBadRequest {
		p.loose = true
		return
	}
	var answer struct {
		Data struct {
			PID, TID int64
			Hash     string
		}
	}
	if p.done++; p.done <= uploaded {
		if err := json.Unmarshal(content, &answer); err != nil {
			p.loose = true
			return
		}
		if p.done == added {
			p.pid = answer.Data.PID
		} else {
			p.tid, p.hash = answer.Data.TID, answer.Data.Hash
		}
	}
}

// call sends a request and returns the answer.
func (l *ledger) call(method, path, bearer, contentType string, body []byte) (status int, content []byte, err error) {
	return call(l.client, l.base, method, path, bearer, contentType, body)
}

func call(client *http.Client, base, method, path, bearer, contentType string, body []byte) (status int, content []byte, err error) {
	request, err := http.NewRequest(method, base+path, bytes.NewReader(body)) //nolint:noctx // the client has a timeout
	if err != nil {
		return 0, nil, err
	}
	request.GetBody = nil // a write that may have been taken is not sent again
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	content, err = io.ReadAll(response.Body)
	return response.StatusCode, content, err
}
