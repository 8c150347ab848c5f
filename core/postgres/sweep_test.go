package postgres_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/skin"
)

func TestTextureHashes(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	db, conn := postgrestest.Connect(t, address), postgrestest.Conn(t, address)
	collect := func() (hashes []skin.Hash) {
		t.Helper()
		for hash, err := range db.TextureHashes(t.Context()) {
			hashes = append(hashes, must(hash, err)(t))
		}
		return hashes
	}
	if hashes, ever, err := db.NewestTextures(t.Context(), 3); len(hashes) != 0 || ever || err != nil || len(collect()) != 0 {
		t.Errorf("a database without textures: %v, %t, %v", hashes, ever, err)
	}

	// More than one page, some hashes twice, with the first and the last possible hash.
	if _, err := conn.Exec(t.Context(), `
		INSERT INTO textures (bytes, public, type, hash, pixels, name)
		SELECT 1, false, 'steve', CASE n WHEN 1 THEN decode(repeat('00', 32), 'hex') WHEN 2 THEN decode(repeat('ff', 32), 'hex') ELSE sha256((n % 20000)::text::bytea) END,
			sha256(n::text::bytea), 'N'
		FROM generate_series(1, 25000) n`); err != nil {
		t.Fatal(err)
	}
	got := collect()
	if len(got) != 20_002 || !slices.IsSortedFunc(got, func(a, b skin.Hash) int { return slices.Compare(a[:], b[:]) }) {
		t.Errorf("%d hashes, in order or not; want 20,002 in order", len(got))
	}
	if n := len(slices.Compact(slices.Clone(got))); n != len(got) {
		t.Errorf("%d of %d hashes come once", n, len(got))
	}
	want := []skin.Hash{skin.HashOf([]byte("5000")), skin.HashOf([]byte("4999")), skin.HashOf([]byte("4998"))}
	hashes, ever, err := db.NewestTextures(t.Context(), 3)
	if diff := cmp.Diff(want, hashes); diff != "" || !ever || err != nil {
		t.Errorf("the newest are (-want +got), %t, %v:\n%s", ever, err, diff)
	}
	if _, err := conn.Exec(t.Context(), "DELETE FROM textures"); err != nil {
		t.Fatal(err)
	}
	if hashes, ever, err := db.NewestTextures(t.Context(), 3); len(hashes) != 0 || !ever || err != nil {
		t.Errorf("a database whose textures are deleted: %v, %t, %v", hashes, ever, err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var last error
	for _, last = range db.TextureHashes(ctx) {
		continue
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("cancelled: %v", last)
	}
}

func TestLockHashes(t *testing.T) {
	t.Parallel()
	db, address := openNamed(t)
	ann := addUser(t, db, "ann")
	conn := postgrestest.Conn(t, address)
	fresh := func(word string) core.NewTexture { return texture(ann.ID, skin.Classic, ann.Email+address+word, true) }
	one, other := fresh("named"), fresh("orphan")
	tid := addTexture(t, db, one).ID
	twin := fresh("twin")
	twin.Hash = one.Hash
	second := addTexture(t, db, twin).ID
	both := []skin.Hash{one.Hash, other.Hash}
	f := func(want map[skin.Hash][]core.TextureID, during func()) {
		t.Helper()
		if err := db.LockHashes(t.Context(), both, func(got map[skin.Hash][]core.TextureID) error {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("locked (-want +got):\n%s", diff)
			}
			during()
			return nil
		}); err != nil {
			t.Error(err)
		}
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
	if err := db.LockHashes(t.Context(), both, func(map[skin.Hash][]core.TextureID) error { return trouble }); !errors.Is(err, trouble) {
		t.Errorf("got %v; want what do returned", err)
	}
	f(all, func() {})

	// A lost connection loses the locks.
	err := db.LockHashes(t.Context(), both, func(map[skin.Hash][]core.TextureID) error {
		_, err := conn.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = current_schema() AND state = 'idle in transaction'")
		return err
	})
	if err == nil {
		t.Error("the loss of the locks is not reported")
	}
}

// A sweep disables the server's timeout for idle transactions.
func TestLockHashesKeepsItsLocks(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	db, conn := postgrestest.Connect(t, address+"&idle_in_transaction_session_timeout=20"), postgrestest.Conn(t, address)
	err := db.LockHashes(t.Context(), []skin.Hash{skin.HashOf([]byte(address))}, func(map[skin.Hash][]core.TextureID) error {
		_, err := conn.Exec(t.Context(), "SELECT pg_sleep(0.2)")
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
