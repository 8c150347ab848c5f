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

	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// The layout of a store. It must stay compatible, so the suite does not take it from the
// package under test.
const marker = ".veneer"

func nameOf(hash skin.Hash) string { return fmt.Sprintf("%.2s/%[1]s.png", hash) }

// Run tests one kind of backend, which newBackend returns.
func Run(t *testing.T, newBackend func(tb testing.TB) Backend) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Backend){
		"stores files":                    keepsFiles,
		"repairs a corrupt file":          repairs,
		"concurrent puts of one file":     concurrent,
		"missing file and missing marker": missing,
		"rejects a corrupt file":          corrupt,
		"rejects a wrong hash":            wrongHash,
		"read-only":                       readOnly,
		"deletes":                         deletes,
		"lists only files":                lists,
		"lists nothing without a marker":  listsUninitialized,
		"keeps temporary files in use":    cleansTemp,
		"concurrent Init":                 initTwice,
		"ends with the context":           contextEnds,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newBackend(t))
		})
	}
}

func keepsFiles(t *testing.T, backend Backend) {
	t.Helper()
	store := OpenInit(t, backend.Config)
	other := Open(t, backend.Config)
	for _, file := range [][]byte{nil, []byte("x"), bytes.Repeat([]byte("veneer\x00\n"), 1<<17)} {
		hash := skin.HashOf(file)
		for range 2 {
			testenv.Do(t, store.Put(t.Context(), hash, file))
			got := testenv.Must(other.Get(t.Context(), hash))(t)
			testenv.Check(t, bytes.Equal(got, file), "got %d bytes that are not the %d put", len(got), len(file))
		}
	}
}

func repairs(t *testing.T, backend Backend) {
	t.Helper()
	store := OpenInit(t, backend.Config)
	file := []byte("whole")
	hash := skin.HashOf(file)
	backend.Write(t, nameOf(hash), []byte("who"))
	testenv.Do(t, store.Put(t.Context(), hash, file))
	got := testenv.Must(store.Get(t.Context(), hash))(t)
	testenv.Check(t, bytes.Equal(got, file), "got %q", got)
}

func concurrent(t *testing.T, backend Backend) {
	t.Helper()
	store := OpenInit(t, backend.Config)
	file := bytes.Repeat([]byte("at once "), 1<<14)
	hash := skin.HashOf(file)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			testenv.Is(t, store.Put(t.Context(), hash, file), nil, "one of several puts")
		})
		group.Go(func() {
			if _, err := store.Get(t.Context(), hash); err != nil && !errors.Is(err, blobstore.ErrNotFound) {
				t.Error(err)
			}
		})
	}
	group.Wait()
	testenv.Is(t, testenv.ErrOf(store.Get(t.Context(), hash)), nil, "get after them")
	got := list(t, store)
	testenv.Check(t, len(got) == 1, "listed %v", got)
}

func missing(t *testing.T, backend Backend) {
	t.Helper()
	file, absent := []byte("there"), skin.HashOf([]byte("absent"))
	store := Open(t, backend.Config)
	wantUnavailable(t, "get before Init", testenv.ErrOf(store.Get(t.Context(), absent)))
	wantUnavailable(t, "check before Init", store.Check(t.Context()))

	testenv.Do(t, store.Init(t.Context()))
	testenv.Do(t, store.Check(t.Context()))
	testenv.Do(t, store.Put(t.Context(), skin.HashOf(file), file))
	testenv.Is(t, testenv.ErrOf(store.Get(t.Context(), absent)), blobstore.ErrNotFound, "get of an absent file")

	backend.Write(t, marker, []byte("of something else"))
	wantUnavailable(t, "get with a foreign marker", testenv.ErrOf(store.Get(t.Context(), absent)))
	wantUnavailable(t, "check with a foreign marker", store.Check(t.Context()))

	backend.Remove(t, marker)
	wantUnavailable(t, "get without marker", testenv.ErrOf(store.Get(t.Context(), absent)))
	wantUnavailable(t, "check without marker", store.Check(t.Context()))
	testenv.Is(t, testenv.ErrOf(store.Get(t.Context(), skin.HashOf(file))), nil,
		"get of an existing file without marker")
}

func corrupt(t *testing.T, backend Backend) {
	t.Helper()
	store := OpenInit(t, backend.Config)
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

func wrongHash(t *testing.T, backend Backend) {
	t.Helper()
	store := OpenInit(t, backend.Config)
	huge := make([]byte, blobstore.MaxSize+1)
	for hash, file := range map[skin.Hash][]byte{
		skin.HashOf([]byte("this")): []byte("that"),
		skin.HashOf(huge):           huge,
	} {
		err := store.Put(t.Context(), hash, file)
		testenv.Check(t, fault.KindOf(err) == fault.Internal, "got %v", err)
	}
	got := list(t, store)
	testenv.Check(t, len(got) == 0, "listed %v", got)
}

func readOnly(t *testing.T, backend Backend) {
	t.Helper()
	cfg := backend.Config
	cfg.ReadOnly = true
	reader := Open(t, cfg)
	testenv.Is(t, reader.Init(t.Context()), blobstore.ErrReadOnly, "init")
	wantUnavailable(t, "check by a reader before Init", reader.Check(t.Context()))

	store := OpenInit(t, backend.Config)
	file, other := []byte("there"), []byte("not there")
	testenv.Do(t, store.Put(t.Context(), skin.HashOf(file), file))
	testenv.Is(t, reader.Put(t.Context(), skin.HashOf(other), other), blobstore.ErrReadOnly, "put")
	testenv.Is(t, reader.Delete(t.Context(), skin.HashOf(file)), blobstore.ErrReadOnly, "delete")
	_, _, err := reader.CleanTemp(t.Context(), true)
	testenv.Is(t, err, blobstore.ErrReadOnly, "clean")
	if _, _, err := reader.CleanTemp(t.Context(), false); err != nil {
		t.Errorf("count temporary files: %v", err)
	}
	testenv.Do(t, reader.Check(t.Context()))
	if got, err := reader.Get(t.Context(), skin.HashOf(file)); err != nil || !bytes.Equal(got, file) {
		t.Errorf("get: %q, %v", got, err)
	}
	cmptest.Same(t, list(t, reader), []skin.Hash{skin.HashOf(file)}, "list")
}

func deletes(t *testing.T, backend Backend) {
	t.Helper()
	store := OpenInit(t, backend.Config)
	file, other := []byte("deleted"), []byte("other")
	testenv.Do(t, store.Put(t.Context(), skin.HashOf(file), file))
	testenv.Do(t, store.Put(t.Context(), skin.HashOf(other), other))
	for range 2 { // the second time there is nothing to delete
		testenv.Do(t, store.Delete(t.Context(), skin.HashOf(file)))
		testenv.Is(t, testenv.ErrOf(store.Get(t.Context(), skin.HashOf(file))), blobstore.ErrNotFound,
			"get of a deleted file")
	}
	cmptest.Same(t, list(t, store), []skin.Hash{skin.HashOf(other)}, "list")
}

func lists(t *testing.T, backend Backend) {
	t.Helper()
	store := OpenInit(t, backend.Config)
	if got := list(t, store); len(got) != 0 {
		t.Fatalf("listed %v of an empty store", got)
	}
	begin := time.Now()
	sizes := map[skin.Hash]int64{}
	for n := range 40 {
		file := bytes.Repeat([]byte{byte(n)}, n)
		testenv.Do(t, store.Put(t.Context(), skin.HashOf(file), file))
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
		testenv.Do(t, err)
		got[object.Hash] = object.Size
		order = append(order, object.Hash)
		// Clocks of a store may be coarse.
		if age := object.Modified.Sub(begin); age < -2*time.Second || age > time.Since(begin)+2*time.Second {
			t.Errorf("%s was modified %s after the test began", object.Hash, age)
		}
	}
	cmptest.Same(t, got, sizes, "sizes")
	if len(order) != len(got) || !slices.IsSortedFunc(order, func(a, b skin.Hash) int { return cmp.Compare(a.String(), b.String()) }) {
		t.Errorf("listed twice or out of order: %v", order)
	}

	for _, err := range store.List(t.Context()) {
		testenv.Do(t, err)
		break // a listing may be left early
	}
}

func listsUninitialized(t *testing.T, backend Backend) {
	t.Helper()
	store := OpenInit(t, backend.Config)
	testenv.Do(t, store.Put(t.Context(), skin.HashOf(nil), nil))
	backend.Remove(t, marker)
	ended := false
	for object, err := range store.List(t.Context()) {
		testenv.Check(t, !ended, "the listing goes on after an error")
		wantUnavailable(t, "list without marker", err)
		testenv.Check(t, object == (blobstore.Object{}), "listed %v", object)
		ended = true
	}
	testenv.Check(t, ended, "a store without marker looks empty")
}

func cleansTemp(t *testing.T, backend Backend) {
	t.Helper()
	_, _, err := Open(t, backend.Config).CleanTemp(t.Context(), true)
	wantUnavailable(t, "clean before Init", err)

	store := OpenInit(t, backend.Config)
	file := []byte("in use")
	testenv.Do(t, store.Put(t.Context(), skin.HashOf(file), file))
	backend.Write(t, ".unfinished-1", []byte("being written"))
	for _, remove := range []bool{false, true} {
		files, size, err := store.CleanTemp(t.Context(), remove)
		testenv.Check(t, files == 0 && size == 0 && err == nil, "cleaned %d files of %d bytes, %v", files, size, err)
	}
	backend.Remove(t, ".unfinished-1") // it must still exist
	testenv.Is(t, testenv.ErrOf(store.Get(t.Context(), skin.HashOf(file))), nil, "get of a file in use")
	testenv.Do(t, store.Check(t.Context()))
}

func initTwice(t *testing.T, backend Backend) {
	t.Helper()
	var group sync.WaitGroup
	for range 4 { // several cores start at once
		group.Go(func() {
			store, err := blobstore.New(backend.Config)
			if err == nil {
				err = store.Init(t.Context())
			}
			testenv.Is(t, err, nil, "init")
		})
	}
	group.Wait()
	file := []byte("file")
	testenv.Do(t, Open(t, backend.Config).Put(t.Context(), skin.HashOf(file), file))
	testenv.Is(t, testenv.ErrOf(OpenInit(t, backend.Config).Get(t.Context(), skin.HashOf(file))), nil,
		"get after several inits")
}

func contextEnds(t *testing.T, backend Backend) {
	t.Helper()
	store := OpenInit(t, backend.Config)
	file, absent := []byte("there"), []byte("absent")
	testenv.Do(t, store.Put(t.Context(), skin.HashOf(file), file))

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
			"list":   LastError(ctx, store),
			"clean":  func() error { _, _, err := store.CleanTemp(ctx, true); return err }(),
		} {
			wantUnavailable(t, name, err)
			testenv.Is(t, err, ctx.Err(), "%s", name)
		}
	}
	cmptest.Same(t, list(t, store), []skin.Hash{skin.HashOf(file)}, "calls with an expired context changed something")

	// A listing returns an error if its context ends half-way.
	for n := range 20 {
		testenv.Do(t, store.Put(t.Context(), skin.HashOf([]byte{byte(n)}), []byte{byte(n)}))
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
		testenv.Do(t, err)
		hashes = append(hashes, object.Hash)
	}
	return hashes
}

// LastError lists a store, and returns the error at the end of the listing.
func LastError(ctx context.Context, store *blobstore.Store) (last error) {
	for _, last = range store.List(ctx) {
		continue
	}
	return last
}

func wantUnavailable(t *testing.T, operation string, err error) {
	t.Helper()
	testenv.Check(t, fault.KindOf(err) == fault.Unavailable && !errors.Is(err, blobstore.ErrNotFound),
		"%s: got %v, want an Unavailable fault", operation, err)
}
