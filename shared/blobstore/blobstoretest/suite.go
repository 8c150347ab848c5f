package blobstoretest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
)

// The layout of a store. It must stay compatible, so the suite does not take it from the
// package under test.
const marker = ".veneer"

func nameOf(hash skin.Hash) string { return fmt.Sprintf("%.2s/%[1]s.png", hash) }

// Run tests one kind of backend, which newBackend returns.
func Run(t *testing.T, newBackend func(tb testing.TB) Backend) {
	t.Helper()
	s := suite{newBackend}
	t.Run("stores files", s.keepsFiles)
	t.Run("repairs a corrupt file", s.repairs)
	t.Run("concurrent puts of one file", s.concurrent)
	t.Run("missing file and missing marker", s.missing)
	t.Run("rejects a corrupt file", s.corrupt)
	t.Run("rejects a wrong hash", s.wrongHash)
	t.Run("read-only", s.readOnly)
	t.Run("deletes", s.deletes)
	t.Run("lists only files", s.lists)
	t.Run("lists nothing without a marker", s.listsUninitialized)
	t.Run("keeps temporary files in use", s.cleansTemp)
	t.Run("concurrent Init", s.initTwice)
	t.Run("ends with the context", s.contextEnds)
}

type suite struct {
	newBackend func(tb testing.TB) Backend
}

func (s suite) keepsFiles(t *testing.T) {
	t.Parallel()
	backend := s.newBackend(t)
	store := openInit(t, backend.Config)
	other := Open(t, backend.Config)
	for _, file := range [][]byte{nil, []byte("x"), bytes.Repeat([]byte("veneer\x00\n"), 1<<17)} {
		hash := skin.HashOf(file)
		for range 2 {
			must(t, store.Put(t.Context(), hash, file))
			got, err := other.Get(t.Context(), hash)
			must(t, err)
			if !bytes.Equal(got, file) {
				t.Errorf("got %d bytes that are not the %d put", len(got), len(file))
			}
		}
	}
}

func (s suite) repairs(t *testing.T) {
	t.Parallel()
	backend := s.newBackend(t)
	store := openInit(t, backend.Config)
	file := []byte("whole")
	hash := skin.HashOf(file)
	backend.Write(t, nameOf(hash), []byte("who"))
	must(t, store.Put(t.Context(), hash, file))
	got, err := store.Get(t.Context(), hash)
	must(t, err)
	if !bytes.Equal(got, file) {
		t.Errorf("got %q", got)
	}
}

func (s suite) concurrent(t *testing.T) {
	t.Parallel()
	backend := s.newBackend(t)
	store := openInit(t, backend.Config)
	file := bytes.Repeat([]byte("at once "), 1<<14)
	hash := skin.HashOf(file)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if err := store.Put(t.Context(), hash, file); err != nil {
				t.Error(err)
			}
		})
		group.Go(func() {
			if _, err := store.Get(t.Context(), hash); err != nil && !errors.Is(err, blobstore.ErrNotFound) {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if _, err := store.Get(t.Context(), hash); err != nil {
		t.Error(err)
	}
	if got := list(t, store); len(got) != 1 {
		t.Errorf("listed %v", got)
	}
}

func (s suite) missing(t *testing.T) {
	t.Parallel()
	backend := s.newBackend(t)
	file, absent := []byte("there"), skin.HashOf([]byte("absent"))
	store := Open(t, backend.Config)
	_, err := store.Get(t.Context(), absent)
	wantUnavailable(t, "get before Init", err)
	wantUnavailable(t, "check before Init", store.Check(t.Context()))

	must(t, store.Init(t.Context()))
	must(t, store.Check(t.Context()))
	must(t, store.Put(t.Context(), skin.HashOf(file), file))
	if _, err := store.Get(t.Context(), absent); !errors.Is(err, blobstore.ErrNotFound) {
		t.Errorf("get of an absent file: %v", err)
	}

	backend.Write(t, marker, []byte("of something else"))
	_, err = store.Get(t.Context(), absent)
	wantUnavailable(t, "get with a foreign marker", err)
	wantUnavailable(t, "check with a foreign marker", store.Check(t.Context()))

	backend.Remove(t, marker)
	_, err = store.Get(t.Context(), absent)
	wantUnavailable(t, "get without marker", err)
	wantUnavailable(t, "check without marker", store.Check(t.Context()))
	if _, err := store.Get(t.Context(), skin.HashOf(file)); err != nil {
		t.Errorf("get of an existing file without marker: %v", err)
	}
}

func (s suite) corrupt(t *testing.T) {
	t.Parallel()
	backend := s.newBackend(t)
	store := openInit(t, backend.Config)
	file := []byte("as it was put")
	hash := skin.HashOf(file)
	for name, content := range map[string][]byte{
		"empty":     nil,
		"cut short": file[:5],
		"longer":    append(bytes.Clone(file), '!'),
		"huge":      make([]byte, blobstore.MaxSize+1),
	} {
		backend.Write(t, nameOf(hash), content)
		if got, err := store.Get(t.Context(), hash); !errors.Is(err, blobstore.ErrCorrupt) || got != nil {
			t.Errorf("%s: got %d bytes and %v", name, len(got), err)
		}
	}
}

func (s suite) wrongHash(t *testing.T) {
	t.Parallel()
	backend := s.newBackend(t)
	store := openInit(t, backend.Config)
	huge := make([]byte, blobstore.MaxSize+1)
	for hash, file := range map[skin.Hash][]byte{
		skin.HashOf([]byte("this")): []byte("that"),
		skin.HashOf(huge):           huge,
	} {
		if err := store.Put(t.Context(), hash, file); fault.KindOf(err) != fault.Internal {
			t.Errorf("got %v", err)
		}
	}
	if got := list(t, store); len(got) != 0 {
		t.Errorf("listed %v", got)
	}
}

func (s suite) readOnly(t *testing.T) {
	t.Parallel()
	backend := s.newBackend(t)
	cfg := backend.Config
	cfg.ReadOnly = true
	reader := Open(t, cfg)
	if err := reader.Init(t.Context()); !errors.Is(err, blobstore.ErrReadOnly) {
		t.Errorf("init: %v", err)
	}
	wantUnavailable(t, "check by a reader before Init", reader.Check(t.Context()))

	store := openInit(t, backend.Config)
	file, other := []byte("there"), []byte("not there")
	must(t, store.Put(t.Context(), skin.HashOf(file), file))
	if err := reader.Put(t.Context(), skin.HashOf(other), other); !errors.Is(err, blobstore.ErrReadOnly) {
		t.Errorf("put: %v", err)
	}
	if err := reader.Delete(t.Context(), skin.HashOf(file)); !errors.Is(err, blobstore.ErrReadOnly) {
		t.Errorf("delete: %v", err)
	}
	if _, _, err := reader.CleanTemp(t.Context(), true); !errors.Is(err, blobstore.ErrReadOnly) {
		t.Errorf("clean: %v", err)
	}
	if _, _, err := reader.CleanTemp(t.Context(), false); err != nil {
		t.Errorf("count temporary files: %v", err)
	}
	must(t, reader.Check(t.Context()))
	if got, err := reader.Get(t.Context(), skin.HashOf(file)); err != nil || !bytes.Equal(got, file) {
		t.Errorf("get: %q, %v", got, err)
	}
	if diff := gocmp.Diff([]skin.Hash{skin.HashOf(file)}, list(t, reader)); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
}

func (s suite) deletes(t *testing.T) {
	t.Parallel()
	backend := s.newBackend(t)
	store := openInit(t, backend.Config)
	file, other := []byte("deleted"), []byte("other")
	must(t, store.Put(t.Context(), skin.HashOf(file), file))
	must(t, store.Put(t.Context(), skin.HashOf(other), other))
	for range 2 { // the second time there is nothing to delete
		must(t, store.Delete(t.Context(), skin.HashOf(file)))
		if _, err := store.Get(t.Context(), skin.HashOf(file)); !errors.Is(err, blobstore.ErrNotFound) {
			t.Errorf("get of a deleted file: %v", err)
		}
	}
	if diff := gocmp.Diff([]skin.Hash{skin.HashOf(other)}, list(t, store)); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
}

func (s suite) lists(t *testing.T) {
	t.Parallel()
	backend := s.newBackend(t)
	store := openInit(t, backend.Config)
	if got := list(t, store); len(got) != 0 {
		t.Fatalf("listed %v of an empty store", got)
	}
	begin := time.Now()
	sizes := map[skin.Hash]int64{}
	for n := range 40 {
		file := bytes.Repeat([]byte{byte(n)}, n)
		must(t, store.Put(t.Context(), skin.HashOf(file), file))
		sizes[skin.HashOf(file)] = int64(n)
	}
	stray := skin.HashOf([]byte("stray")).String()
	for _, name := range []string{
		".unfinished-1", "notes.txt", "00/notes.txt", "zz/" + stray + ".png", stray + ".png",
		"00/" + stray + ".png", stray[:2] + "/" + stray, stray[:2] + "/." + stray + ".png", stray[:2] + "/" + stray + ".png~",
	} {
		backend.Write(t, name, []byte("stray"))
	}

	got := map[skin.Hash]int64{}
	var order []skin.Hash
	for object, err := range store.List(t.Context()) {
		must(t, err)
		got[object.Hash] = object.Size
		order = append(order, object.Hash)
		// Clocks of a store may be coarse.
		if age := object.Modified.Sub(begin); age < -2*time.Second || age > time.Since(begin)+2*time.Second {
			t.Errorf("%s was modified %s after the test began", object.Hash, age)
		}
	}
	if diff := gocmp.Diff(sizes, got); diff != "" {
		t.Errorf("sizes (-want +got):\n%s", diff)
	}
	if len(order) != len(got) || !slices.IsSortedFunc(order, func(a, b skin.Hash) int { return cmp.Compare(a.String(), b.String()) }) {
		t.Errorf("listed twice or out of order: %v", order)
	}

	for _, err := range store.List(t.Context()) {
		must(t, err)
		break // a listing may be left early
	}
}

func (s suite) listsUninitialized(t *testing.T) {
	t.Parallel()
	backend := s.newBackend(t)
	store := openInit(t, backend.Config)
	must(t, store.Put(t.Context(), skin.HashOf(nil), nil))
	backend.Remove(t, marker)
	ended := false
	for object, err := range store.List(t.Context()) {
		if ended {
			t.Error("the listing goes on after an error")
		}
		wantUnavailable(t, "list without marker", err)
		if object != (blobstore.Object{}) {
			t.Errorf("listed %v", object)
		}
		ended = true
	}
	if !ended {
		t.Error("a store without marker looks empty")
	}
}

func (s suite) cleansTemp(t *testing.T) {
	t.Parallel()
	backend := s.newBackend(t)
	_, _, err := Open(t, backend.Config).CleanTemp(t.Context(), true)
	wantUnavailable(t, "clean before Init", err)

	store := openInit(t, backend.Config)
	file := []byte("in use")
	must(t, store.Put(t.Context(), skin.HashOf(file), file))
	backend.Write(t, ".unfinished-1", []byte("being written"))
	for _, remove := range []bool{false, true} {
		if files, size, err := store.CleanTemp(t.Context(), remove); files != 0 || size != 0 || err != nil {
			t.Errorf("cleaned %d files of %d bytes, %v", files, size, err)
		}
	}
	backend.Remove(t, ".unfinished-1") // it must still exist
	if _, err := store.Get(t.Context(), skin.HashOf(file)); err != nil {
		t.Error(err)
	}
	must(t, store.Check(t.Context()))
}

func (s suite) initTwice(t *testing.T) {
	t.Parallel()
	backend := s.newBackend(t)
	var group sync.WaitGroup
	for range 4 { // several cores start at once
		group.Go(func() {
			store, err := blobstore.New(backend.Config)
			if err == nil {
				err = store.Init(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	file := []byte("file")
	must(t, Open(t, backend.Config).Put(t.Context(), skin.HashOf(file), file))
	if _, err := openInit(t, backend.Config).Get(t.Context(), skin.HashOf(file)); err != nil {
		t.Error(err)
	}
}

func (s suite) contextEnds(t *testing.T) {
	t.Parallel()
	backend := s.newBackend(t)
	store := openInit(t, backend.Config)
	file, absent := []byte("there"), []byte("absent")
	must(t, store.Put(t.Context(), skin.HashOf(file), file))

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	expired, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for _, ctx := range []context.Context{cancelled, expired} {
		for name, err := range map[string]error{
			"init":   store.Init(ctx),
			"check":  store.Check(ctx),
			"put":    store.Put(ctx, skin.HashOf(absent), absent),
			"get":    func() error { _, err := store.Get(ctx, skin.HashOf(file)); return err }(),
			"delete": store.Delete(ctx, skin.HashOf(file)),
			"list":   listErr(ctx, store),
			"clean":  func() error { _, _, err := store.CleanTemp(ctx, true); return err }(),
		} {
			wantUnavailable(t, name, err)
			if !errors.Is(err, ctx.Err()) {
				t.Errorf("%s: got %v, want %v", name, err, ctx.Err())
			}
		}
	}
	if diff := gocmp.Diff([]skin.Hash{skin.HashOf(file)}, list(t, store)); diff != "" {
		t.Errorf("calls with an expired context changed something (-want +got):\n%s", diff)
	}

	// A listing returns an error if its context ends half-way.
	for n := range 20 {
		must(t, store.Put(t.Context(), skin.HashOf([]byte{byte(n)}), []byte{byte(n)}))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, last = range store.List(ctx) {
		cancel()
	}
	wantUnavailable(t, "list that is cancelled", last)
}

func list(t *testing.T, store *blobstore.Store) []skin.Hash {
	t.Helper()
	var hashes []skin.Hash
	for object, err := range store.List(t.Context()) {
		must(t, err)
		hashes = append(hashes, object.Hash)
	}
	return hashes
}

func listErr(ctx context.Context, store *blobstore.Store) error {
	for _, err := range store.List(ctx) {
		return err
	}
	return nil
}

func wantUnavailable(t *testing.T, operation string, err error) {
	t.Helper()
	if fault.KindOf(err) != fault.Unavailable || errors.Is(err, blobstore.ErrNotFound) {
		t.Errorf("%s: got %v, want an Unavailable fault", operation, err)
	}
}
