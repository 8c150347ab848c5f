package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
)

// testUser is a user with one player, changed by one writer only.
type testUser struct {
	bearer      string
	pid         int64
	names       [2]*resource // the player has one of two names
	nameIndex   int          // index of the current name
	skinIndex   int          // index of the skin; -1 for none
	skinChanges int          // number of skins set so far
	user        *resource
}

// writer changes users, one change after another, through any core.
type writer struct {
	*rand.Rand
	t         *testing.T
	client    *http.Client
	cores     []string // base URLs
	coreIndex int      // index of the core in use, until it fails
	bearer    string   // of a user that is never changed
	tids      []int64  // of the skins
	tags      []string // entity tags of their avatars
	capes     []int64  // of the capes
	recent    *recentChanges
	noiseSeed *atomic.Uint64 // makes every upload different

	idle   []*testUser // not changed yet
	active []*testUser

	committed *atomic.Int64
	unknown   int
}

// activePerWriter is the number of users that a writer alternates between.
const activePerWriter = 20

// run makes one change a tick until ctx ends.
func (w *writer) run(ctx context.Context, tick <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		for len(w.active) < activePerWriter && len(w.idle) > 0 {
			w.active, w.idle = append(w.active, w.idle[0]), w.idle[1:]
		}
		if len(w.active) == 0 {
			w.t.Error("there are no users left to change")
			return
		}
		i := w.IntN(len(w.active))
		if w.change(ctx, w.active[i]) {
			continue
		}
		// The change may be committed now or later, so the values of this user are unknown
		// until the end. Another core may be reachable.
		w.coreIndex++
		w.unknown++
		w.active = append(w.active[:i], w.active[i+1:]...)
		w.awaitCore(ctx)
	}
}

// change makes a random change and reports whether it was acknowledged.
func (w *writer) change(ctx context.Context, p *testUser) bool {
	tagOf := func(index int) string {
		if index < 0 {
			return missing
		}
		return w.tags[index]
	}
	player := "/api/players/" + strconv.FormatInt(p.pid, 10)
	// Each user has every skin once before the first comes again, so that old values differ
	// from new ones.
	next := (p.skinChanges + 1) % len(w.tids)
	tid := strconv.FormatInt(w.tids[next], 10)
	switch n := w.IntN(100); {
	case n < 5:
		return w.upload(ctx, p)
	case n < 20:
		p.skinChanges++
		return w.commit(ctx, p, "PUT", "/api/user/avatar", "tid="+tid, map[*resource]string{p.user: tagOf(next)})
	case n < 32:
		other := 1 - p.nameIndex
		done := w.commit(ctx, p, "PUT", player+"/name", "name="+strings.TrimPrefix(p.names[other].path, playerPath),
			map[*resource]string{p.names[p.nameIndex]: missing, p.names[other]: tagOf(p.skinIndex)})
		p.nameIndex = other
		return done
	case n < 40 && p.skinIndex >= 0:
		p.skinIndex = -1
		return w.commit(ctx, p, "DELETE", player+"/textures", "skin=", map[*resource]string{p.names[p.nameIndex]: missing})
	case n < 45:
		cape := w.capes[w.IntN(len(w.capes))]
		return w.commit(ctx, p, "PUT", player+"/textures", fmt.Sprint("cape=", cape), nil)
	default:
		p.skinChanges++
		p.skinIndex = next
		return w.commit(ctx, p, "PUT", player+"/textures", "skin="+tid, map[*resource]string{p.names[p.nameIndex]: tagOf(next)})
	}
}

// commit sends a change of resources' values. The effect of a cape is compared at the end only.
func (w *writer) commit(ctx context.Context, p *testUser, method, path, form string, values map[*resource]string) bool {
	begun := time.Now()
	for s, values := range values {
		s.begin(values, begun)
	}
	committed := w.send(ctx, p.bearer, method, path, "application/x-www-form-urlencoded", []byte(form))
	acked := time.Now()
	for s := range values {
		s.end(committed, acked)
		w.recent.add(s)
	}
	return committed
}

// upload adds a texture. Clients may have requested its URL before. Its picture is compared at
// the end.
func (w *writer) upload(ctx context.Context, p *testUser) bool {
	form := stack.SheetForm("chaos", skin.Classic, skintest.Noise(w.noiseSeed.Add(1), 64, 64))
	return w.send(ctx, p.bearer, "POST", "/api/textures", stack.UploadType, form)
}

// api returns the base URL of the core in use.
func (w *writer) api() string { return w.cores[w.coreIndex%len(w.cores)] }

// send tries one core after another until a connection succeeds, and reports whether the response
// was a success.
func (w *writer) send(ctx context.Context, bearer, method, path, contentType string, body []byte) bool {
	for {
		_, status, err := call(ctx, w.client, method, w.api()+path, bearer, contentType, body)
		if dialed := (*net.OpError)(nil); errors.As(err, &dialed) && dialed.Op == "dial" {
			w.coreIndex++
			select { // nothing was sent
			case <-time.After(20 * time.Millisecond):
				continue
			case <-ctx.Done():
				return false
			}
		}
		switch {
		case err != nil || status >= http.StatusInternalServerError:
			return false
		case status != http.StatusOK:
			w.t.Errorf("%s %s: status %d", method, path, status)
			return false
		}
		w.committed.Add(1)
		return true
	}
}

// awaitCore waits until a core responds from its database.
func (w *writer) awaitCore(ctx context.Context) {
	for ctx.Err() == nil {
		_, status, err := call(ctx, w.client, "GET", w.api()+"/api/user", w.bearer, "", nil)
		if err == nil && status == http.StatusOK {
			return
		}
		w.coreIndex++
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// call sends a request and returns the response's status and TID.
func call(ctx context.Context, client *http.Client, method, address, bearer, contentType string, body []byte) (tid int64, status int, err error) {
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return 0, 0, err
	}
	request.Header.Set("Authorization", "Bearer "+bearer)
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, 0, err
	}
	var answer struct {
		Data struct {
			TID int64 `json:"tid"`
		} `json:"data"`
	}
	if response.StatusCode == http.StatusOK {
		if err := json.Unmarshal(content, &answer); err != nil {
			return 0, 0, fmt.Errorf("%s %s: %q: %w", method, address, content, err)
		}
	}
	return answer.Data.TID, response.StatusCode, nil
}

// playerPath is the prefix of the path of a player's avatar.
const playerPath = "/avatar/player/"
