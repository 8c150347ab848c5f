package api

import (
	"strconv"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// A slot keeps its response while that is requested now and then, and not longer. It does not keep what another request
// could not share.
func TestRepeatSlot(t *testing.T) {
	t.Parallel()
	s := new(Server)
	var slot repeatSlot
	var now string
	at := time.Unix(1790000000, 0)
	file := func(modified int64) func(*httpserver.FastContext, *exchange) {
		return func(_ *httpserver.FastContext, x *exchange) {
			x.request.Kind, x.response.Mapping.Modified = edge.KindFile, modified
		}
	}
	keep := func(target string, edit func(*httpserver.FastContext, *exchange)) {
		c, x := &httpserver.FastContext{Target: []byte(target)}, &exchange{at: at, response: edge.Response{Body: []byte("picture")}}
		if edit != nil {
			edit(c, x)
		}
		if !s.tryRepeat(c, &slot, 0) {
			slot.keep(c, 0, x)
		}
		if now = ""; slot.kept.Load() != nil {
			now = slot.kept.Load().target
		}
	}
	for name, edit := range map[string]func(*httpserver.FastContext, *exchange){
		"a response without a body":       func(_ *httpserver.FastContext, x *exchange) { x.response.Body = nil },
		"a profile":                       func(_ *httpserver.FastContext, x *exchange) { x.request.Kind = edge.KindProfile },
		"a file that was just changed":    file(at.Unix()),
		"a large picture":                 func(_ *httpserver.FastContext, x *exchange) { x.response.Body = make([]byte, maxRepeatBody+1) },
		"a long target":                   func(c *httpserver.FastContext, _ *exchange) { c.Target = make([]byte, maxRepeatTarget+1) },
		"a condition that is not a tag's": func(c *httpserver.FastContext, _ *exchange) { c.Conditions = []byte("If-Match: *\r\n") },
	} {
		keep("/0", edit)
		testenv.Equal(t, now, "", "%s is kept", name)
	}
	for _, modified := range []int64{at.Unix() - 1, 0} {
		slot = repeatSlot{}
		keep("/file", file(modified))
		testenv.Equal(t, now, "/file", "an empty slot keeps a file of %d as", modified)
	}
	slot = repeatSlot{}
	keep("/0", nil)
	for i := range maxStrikes - 1 {
		keep("/"+strconv.Itoa(i+1), nil)
	}
	testenv.Equal(t, now, "/0", "after maxStrikes-1 other requests the slot keeps")
	keep("/last", nil)
	testenv.Equal(t, now, "/last", "after maxStrikes the slot keeps")
}
