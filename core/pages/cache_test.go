package pages

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Concurrent requests for a page that does not exist take two queries: the page may have been made after
// the first one began.
func TestMissingPagesShareQueries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCache(time.Now)
		calls, ended := make(chan struct{}, 50), make(chan error, 50)
		hold := make(chan struct{})
		for range cap(ended) {
			go func() {
				_, err := c.get(t.Context(), "/p/nobody", func(context.Context) (*page, error) {
					calls <- struct{}{}
					<-hold
					return nil, fault.New(fault.NotFound, "There is none.")
				})
				ended <- err
			}()
		}
		for queries := range 2 {
			synctest.Wait()
			testenv.Equal(t, len(calls), queries+1, "queries")
			hold <- struct{}{}
		}
		for range cap(ended) {
			testenv.Equal(t, fault.KindOf(<-ended), fault.NotFound, "the fault")
		}
		testenv.Equal(t, len(calls), 2, "queries of all requests")
	})
}

// Changes that pages may show are known up to a bound. Then all are forgotten, and all pages obsolete.
func TestChangesAreBounded(t *testing.T) {
	t.Parallel()
	c := newCache(time.Now)
	shown := &entry{page: &page{shows: []edgeproto.Key{edgeproto.TIDKey(1)}}}
	c.apply([]edgeproto.Key{edgeproto.UIDKey(1), edgeproto.HashKey(skin.Hash{})}, true)
	testenv.Equal(t, len(c.changed), 0, "keys that no page has")
	var keys []edgeproto.Key
	for i := range maxChanged {
		keys = append(keys, edgeproto.TIDKey(int64(i+2)))
	}
	c.apply(keys, true)
	testenv.Equal(t, c.isObsolete(shown), false, "a page is obsolete after changes of others")
	c.apply([]edgeproto.Key{edgeproto.TIDKey(maxChanged + 2)}, true)
	testenv.Equal(t, c.isObsolete(shown), true, "a page is obsolete once changes are forgotten")
	testenv.Equal(t, len(c.changed), 0, "keys that are known then")
}
