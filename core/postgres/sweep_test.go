package postgres_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

func TestTextureHashes(t *testing.T) {
	t.Parallel()
	db := open(t)
	collect := func() (hashes []skin.Hash) {
		t.Helper()
		for hash, err := range db.TextureHashes(t.Context()) {
			hashes = append(hashes, must(hash, err)(t))
		}
		return hashes
	}
	hashes, ever, err := db.NewestTextures(t.Context(), 3)
	testenv.Check(t, len(hashes) == 0 && !ever && err == nil && len(collect()) == 0,
		"a database without textures: %v, %t, %v", hashes, ever, err)

	// More than one page, some hashes twice, with the first and the last possible hash.
	db.exec(t, `
		INSERT INTO textures (bytes, public, type, hash, pixels, name)
		SELECT 1, false, 'steve', CASE n WHEN 1 THEN decode(repeat('00', 32), 'hex') WHEN 2 THEN decode(repeat('ff', 32), 'hex') ELSE sha256((n % 20000)::text::bytea) END,
			sha256(n::text::bytea), 'N'
		FROM generate_series(1, 25000) n`)
	got := collect()
	testenv.Equal(t, len(got), 20_002, "the number of hashes")
	isSorted := slices.IsSortedFunc(got, func(a, b skin.Hash) int { return slices.Compare(a[:], b[:]) })
	testenv.Equal(t, isSorted, true, "the hashes are in order")
	testenv.Equal(t, len(slices.Compact(slices.Clone(got))), len(got), "hashes that differ")
	want := []skin.Hash{skin.HashOf([]byte("5000")), skin.HashOf([]byte("4999")), skin.HashOf([]byte("4998"))}
	hashes, ever, err = db.NewestTextures(t.Context(), 3)
	cmptest.Same(t, hashes, want, "the newest")
	testenv.Check(t, ever && err == nil, "the database ever had a texture: %t, %v", ever, err)
	db.exec(t, "DELETE FROM textures")
	hashes, ever, err = db.NewestTextures(t.Context(), 3)
	testenv.Check(t, len(hashes) == 0 && ever && err == nil, "without textures any more: %v, %t, %v", hashes, ever, err)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var last error
	for _, last = range db.TextureHashes(ctx) {
		continue
	}
	testenv.Is(t, last, context.Canceled, "cancelled")
}

func TestLockHashes(t *testing.T) {
	t.Parallel()
	db, ann := openForOne(t)
	fresh := func(word string) core.NewTexture {
		return texture(ann.ID, skin.Classic, ann.Email+db.address+word, true)
	}
	one, other := fresh("named"), fresh("orphan")
	tid := addTexture(t, db, one).ID
	twin := fresh("twin")
	twin.Hash = one.Hash
	second := addTexture(t, db, twin).ID
	both := []skin.Hash{one.Hash, other.Hash}
	f := func(want map[skin.Hash][]core.TextureID, during func()) {
		t.Helper()
		testenv.Is(t, db.LockHashes(t.Context(), both, func(got map[skin.Hash][]core.TextureID) error {
			cmptest.Same(t, got, want, "locked")
			during()
			return nil
		}), nil, "LockHashes")
	}
	all := map[skin.Hash][]core.TextureID{one.Hash: {tid, second}, other.Hash: nil}

	f(all, func() {
		f(map[skin.Hash][]core.TextureID{}, func() {}) // another sweep gets none
	})
	if _, err := db.AddTexture(t.Context(), other, core.Pricing{}, func(context.Context) error {
		f(map[skin.Hash][]core.TextureID{one.Hash: {tid, second}}, func() {})
		return errors.New("given up")
	}); err == nil {
		t.Fatal("the upload succeeds")
	}
	f(all, func() {})

	// Whatever do returns, the locks are released.
	trouble := errors.New("trouble")
	failing := func(map[skin.Hash][]core.TextureID) error { return trouble }
	testenv.Is(t, db.LockHashes(t.Context(), both, failing), trouble, "what do returned")
	f(all, func() {})

	// A lost connection loses the locks.
	err := db.LockHashes(t.Context(), both, func(map[skin.Hash][]core.TextureID) error {
		return errOf(db.conn().Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = current_database() AND state = 'idle in transaction'"))
	})
	testenv.Check(t, err != nil, "the loss of the locks is not reported")
}

// A sweep disables the server's timeout for idle transactions.
func TestLockHashesKeepsItsLocks(t *testing.T) {
	t.Parallel()
	db := open(t)
	impatient := postgrestest.Connect(t, db.address+"&idle_in_transaction_session_timeout=20")
	hashes := []skin.Hash{skin.HashOf([]byte(db.address))}
	testenv.Is(t, impatient.LockHashes(t.Context(), hashes, func(map[skin.Hash][]core.TextureID) error {
		return errOf(db.conn().Exec(t.Context(), "SELECT pg_sleep(0.2)"))
	}), nil, "LockHashes")
}
