package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
)

// testUser is a user that makes one write of each kind in a fixed order, so that a number says what
// was acknowledged. After a write without a successful response there is no further one: that write
// may be committed, now or later.
type testUser struct {
	site.SignedInUser

	acked        int         // number of acknowledged writes
	uncertain    bool        // one more was sent
	voided       atomic.Bool // its writes are to be lost
	sessionEnded atomic.Bool // with or without a log-out
	// From the responses.
	pid, tid  int
	hash      string
	closetTID int // TID of another user's texture for the closet
}

// The writes in their order. Each constant is the number of writes up to it.
const (
	playerAdded = iota + 1
	skinUploaded
	skinSet
	closetItemAdded
	playerRenamed
	closetItemRenamed
	signedOut
)

// formType is the content type of the fields.
const formType = "application/x-www-form-urlencoded"

// names returns the name of the user's player before and after the rename.
func (u *testUser) names() [2]string {
	return [2]string{fmt.Sprintf("n%da", u.User), fmt.Sprintf("n%db", u.User)}
}

// state is a user's state in PostgreSQL.
type state struct {
	UID        int64
	Name, Skin string // of the player, and the hash of its skin
	Closet     string // as TID=name,…
	Live       bool   // of the session
}

// stateAfter returns the state after a number of committed writes.
func (u *testUser) stateAfter(writes int) state {
	s := state{UID: int64(u.User), Live: writes < signedOut && !u.sessionEnded.Load()}
	var items []string
	if writes >= playerAdded {
		s.Name = u.names()[0]
	}
	if writes >= playerRenamed {
		s.Name = u.names()[1]
	}
	if writes >= skinSet {
		s.Skin = u.hash
	}
	if writes >= closetItemAdded { // its TID is the lower one
		name := map[bool]string{true: "second", false: "first"}[writes >= closetItemRenamed]
		items = append(items, fmt.Sprintf("%d=%s", u.closetTID, name))
	}
	if writes >= skinUploaded {
		items = append(items, fmt.Sprintf("%d=uploaded", u.tid))
	}
	s.Closet = strings.Join(items, ",")
	return s
}

// consistentWith reports whether a state contains all that was acknowledged, and nothing that was
// not sent.
func (u *testUser) consistentWith(s state) bool {
	if s == u.stateAfter(u.acked) {
		return true
	}
	next := u.stateAfter(u.acked + 1)
	if u.acked+1 == skinUploaded {
		next.Closet = s.Closet // its TID was not returned
	}
	return u.uncertain && s == next
}

// nextWrite returns the user's next write.
func (u *testUser) nextWrite() (method, path, contentType string, body []byte) {
	player := fmt.Sprintf("/api/players/%d", u.pid)
	fields := func(pairs ...string) []byte {
		values := url.Values{}
		for i := 0; i < len(pairs); i += 2 {
			values.Set(pairs[i], pairs[i+1])
		}
		return []byte(values.Encode())
	}
	switch u.acked + 1 {
	case playerAdded:
		return http.MethodPost, "/api/players", formType, fields("name", u.names()[0])
	case skinUploaded:
		return http.MethodPost, "/api/textures", site.UploadType, site.SheetForm("uploaded", skin.Classic, skintest.Noise(uint64(u.User), 64, 64))
	case skinSet:
		return http.MethodPut, player + "/textures", formType, fields("skin", fmt.Sprint(u.tid))
	case closetItemAdded:
		return http.MethodPost, "/api/closet", formType, fields("tid", fmt.Sprint(u.closetTID), "name", "first")
	case playerRenamed:
		return http.MethodPut, player + "/name", formType, fields("name", u.names()[1])
	case closetItemRenamed:
		return http.MethodPut, fmt.Sprintf("/api/closet/%d", u.closetTID), formType, fields("name", "second")
	default:
		return http.MethodPost, "/api/auth/logout", formType, nil
	}
}

// writeLog is the users with their acknowledged writes.
type writeLog struct {
	client    *http.Client
	base      string
	exhausted atomic.Bool // a write lacked a user

	mu     sync.Mutex
	idle   []*testUser
	active []*testUser
}

// take returns a user without writes; nil if none is left.
func (w *writeLog) take() *testUser {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.idle) == 0 {
		return nil
	}
	p := w.idle[0]
	w.idle, w.active = w.idle[1:], append(w.active, p)
	return p
}

func (w *writeLog) addIdle(users []*testUser) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.idle = append(w.idle, users...)
}

// markRestored records that all sessions have ended, and that the writes of all but the first users
// are lost. Other users make the later writes.
func (w *writeLog) markRestored(others int, idle []*testUser) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, p := range w.active {
		p.sessionEnded.Store(true)
		p.voided.Store(p.voided.Load() || i >= others)
	}
	w.idle = idle
}

// startedAfter returns the active users but for the first ones.
func (w *writeLog) startedAfter(others int) []*testUser {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.active[others:]
}

// writeLoop makes writes, one a tick, until ctx ends.
func (w *writeLog) writeLoop(ctx context.Context, tick <-chan time.Time, t *counts) {
	var p *testUser
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		if p == nil || p.uncertain || p.sessionEnded.Load() || p.voided.Load() || p.acked == signedOut {
			if p = w.take(); p == nil {
				w.exhausted.Store(true)
				return
			}
		}
		w.writeOnce(p, t)
	}
}

// writeOnce makes a user's next write. It waits for the response even if the load ends.
func (w *writeLog) writeOnce(p *testUser, t *counts) {
	method, path, contentType, body := p.nextWrite()
	began := time.Now()
	status, content, err := w.call(method, path, p.Bearer, contentType, body)
	if !t.count(status, err, time.Since(began)) {
		p.uncertain = true
		return
	}
	if p.acked++; p.acked > skinUploaded {
		return
	}
	var answer site.Answer
	err = json.Unmarshal(content, &answer)
	switch added := answer.Data; {
	case err != nil:
		p.uncertain = true
	case p.acked == playerAdded:
		p.pid = added.PID
	default:
		p.tid, p.hash = added.TID, added.Hash
	}
}

func (w *writeLog) call(method, path, bearer, contentType string, body []byte) (status int, content []byte, err error) {
	return call(w.client, w.base, method, path, bearer, contentType, body)
}
