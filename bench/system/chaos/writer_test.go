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
	"github.com/veneer-skins/veneer/shared/skin/paint"
)

// testUser is a user with one player, whom one writer changes.
type testUser struct {
	bearer      string
	pid         int64
	names       [2]*resource // the player has one of two names
	nameIndex   int          // which
	skinIndex   int          // index of the skin; -1 for none
	skinChanges int          // how many it has worn
	user        *resource
}

// writer changes people, one change after another, over any core.
type writer struct {
	*rand.Rand
	t         *testing.T
	client    *http.Client
	cores     []string // base URLs
	coreIndex int      // which is asked, until it fails
	bearer    string   // somebody's who is never changed
	tids      []int64  // of the skins to wear
	tags      []string // entity tags of their pictures
	capes     []int64  // TIDs of the capes to wear
	recent    *recentChanges
	noiseSeed *atomic.Uint64 // makes every upload another

	idle   []*testUser // who was not touched yet
	active []*testUser

	committed *atomic.Int64
	unknown   int
}

// activePerWriter is how many people a writer changes in turns.
const activePerWriter = 20

// run makes changes, one a tick, until ctx ends.
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
			w.t.Error("there is nobody left to change")
			return
		}
		i := w.IntN(len(w.active))
		if w.change(ctx, w.active[i]) {
			continue
		}
		// It may be committed, now or later: nobody knows what this person wears
		// before all is over. Another core may do better.
		w.coreIndex++
		w.unknown++
		w.active = append(w.active[:i], w.active[i+1:]...)
		w.awaitCore(ctx)
	}
}

// change makes a random change and reports whether it is known to be committed.
func (w *writer) change(ctx context.Context, p *testUser) bool {
	tagOf := func(index int) string {
		if index < 0 {
			return missing
		}
		return w.tags[index]
	}
	player := "/api/players/" + strconv.FormatInt(p.pid, 10)
	// Each wears every skin once before the first comes again, so that what is old
	// is told from what is new.
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

// commit sends a change of what subjects show. What a cape changes is compared in
// the end.
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

// upload adds a texture, which visitors may have missed before. What its picture
// looks like is compared in the end.
func (w *writer) upload(ctx context.Context, p *testUser) bool {
	form := stack.SheetForm("chaos", skin.Classic, paint.Noise(w.noiseSeed.Add(1), 64, 64))
	return w.send(ctx, p.bearer, "POST", "/api/textures", stack.UploadType, form)
}

// api returns the base URL of the core that is asked.
func (w *writer) api() string { return w.cores[w.coreIndex%len(w.cores)] }

// send sends a request to one core after another until one takes it, and reports
// whether that answered with success.
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

// awaitCore waits until a core answers from its database.
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

// call sends a request and returns the answer's status and the TID in it.
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

// playerPath is before the name in the address of a player's picture.
const playerPath = "/avatar/player/"
