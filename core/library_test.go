package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/fold"
	"github.com/veneer-skins/veneer/shared/skin"
)

// Whoever changes textures sees so in the next list, however many lists and changes
// there are at once, and whichever core is asked.
func TestLibraryShowsWhatIsCommitted(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	db := postgrestest.Connect(t, address)
	libraries := []*core.Library{core.NewLibrary(db), core.NewLibrary(postgrestest.Connect(t, address))}
	user, err := db.CreateUser(t.Context(), core.NewUser{Email: "a", EmailKey: fold.Key("a"), Nickname: "A", PasswordHash: "x"})
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			for j := range 8 {
				name := fmt.Sprintf("texture %d of %d", j, i)
				texture, err := db.AddTexture(t.Context(), core.NewTexture{
					Name: name, Type: skin.Steve, Hash: skin.HashOf([]byte(name)), Pixels: skin.HashOf([]byte(name)), Bytes: 1, Uploader: user.ID, Public: true,
				}, core.Terms{}, func(context.Context) error { return nil })
				if err != nil {
					t.Error(err)
					return
				}
				want := 1
				if j%4 == 3 {
					want = 0
					if err := db.DeleteTexture(t.Context(), texture.ID); err != nil {
						t.Error(err)
					}
				}
				for _, library := range libraries {
					page, err := library.List(t.Context(), core.User{}, core.LibraryQuery{Name: name, Liked: i%2 == 0, Page: 1, PerPage: 6})
					if err != nil || page.Total != want || len(page.Items) != want {
						t.Errorf("%s: %+v, %v; want %d", name, page, err, want)
					}
				}
			}
		})
	}
	group.Wait()
}

// slowStore is a store without textures that is read as slowly as a test wants.
type slowStore struct {
	core.LibraryStore
	reads, changes atomic.Int32
	wait           func() error
	lost           bool // whether changes cannot be told
}

func (s *slowStore) ReadLibrary(context.Context, func(core.Listing) error) (core.LibraryMoment, error) {
	s.reads.Add(1)
	return core.LibraryMoment{Epoch: "e"}, s.wait()
}

func (s *slowStore) LibraryChanges(_ context.Context, since core.LibraryMoment) ([]core.Listing, core.LibraryMoment, bool, error) {
	s.changes.Add(1)
	return nil, since, !s.lost, s.wait()
}

var firstPage = core.LibraryQuery{Page: 1, PerPage: 6}

// However many lists are asked for while changes are read, one more reading is
// enough for all of them.
func TestLibraryIsReadForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{wait: func() error { <-time.After(time.Second); return nil }}
		library := core.NewLibrary(store)
		var group sync.WaitGroup
		list := func() {
			group.Go(func() {
				if _, err := library.List(t.Context(), core.User{}, firstPage); err != nil {
					t.Error(err)
				}
			})
		}
		list()
		synctest.Wait() // it reads everything
		for range 10 {
			list()
		}
		group.Wait()
		if store.reads.Load() != 1 || store.changes.Load() != 1 {
			t.Errorf("everything is read %d times, and changes are %d times; want once each", store.reads.Load(), store.changes.Load())
		}

		store.lost = true
		list()
		group.Wait()
		if store.reads.Load() != 2 {
			t.Errorf("everything is read %d times; want again, as changes are lost", store.reads.Load())
		}

		// Who waits for the others' turn does so no longer than they can.
		list()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := library.List(ctx, core.User{}, firstPage); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a list that comes too late: %v", err)
		}
		group.Wait()
	})
}

// What nobody asks for is read now and then; an outage is told of once.
func TestLibraryRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		store := &slowStore{wait: func() error {
			if down.Load() {
				return errors.New("away")
			}
			return nil
		}}
		library := core.NewLibrary(store)
		var log bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { library.Run(ctx, slog.New(slog.NewTextHandler(&log, nil))) })
		pass := func(d time.Duration) {
			<-time.After(d)
			synctest.Wait()
		}
		pass(16 * time.Second)
		if store.reads.Load() != 1 || store.changes.Load() != 3 {
			t.Errorf("within 16 s everything is read %d times, and changes are %d times", store.reads.Load(), store.changes.Load())
		}
		down.Store(true)
		pass(30 * time.Second)
		down.Store(false)
		pass(30 * time.Second)
		cancel()
		group.Wait()
		if got := log.String(); strings.Count(got, "cannot be read") != 1 || strings.Count(got, "is read again") != 1 {
			t.Errorf("the log says\n%s", got)
		}
	})
}
