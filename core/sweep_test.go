package core_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// sweepEnv is a database of textures and a store of their files.
type sweepEnv struct {
	address  string
	db       *postgres.DB
	conn     *pgx.Conn
	backend  blobstoretest.Backend
	files    *blobstore.Store
	uploader core.UserID
}

// onEachBackend runs a test with each backend of the file store.
func onEachBackend(t *testing.T, test func(t *testing.T, s *sweepEnv)) {
	t.Helper()
	for name, backend := range map[string]func(testing.TB) blobstoretest.Backend{
		"directory": blobstoretest.Directory, "bucket": blobstoretest.Bucket,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newSweepEnv(t, backend(t)))
		})
	}
}

func newSweepEnv(t *testing.T, backend blobstoretest.Backend) *sweepEnv {
	t.Helper()
	s := &sweepEnv{address: postgrestest.URL(t), backend: backend, files: blobstoretest.Open(t, backend.Config)}
	s.db, s.conn = postgrestest.Connect(t, s.address), postgrestest.Conn(t, s.address)
	testenv.Do(t, s.files.Init(t.Context()))
	s.uploader = addUser(t, s.db, "a@example.com").ID
	return s
}

// file returns a file and its hash.
func file(content string) ([]byte, skin.Hash) {
	file := []byte(content)
	return file, skin.HashOf(file)
}

// put stores a file without a texture.
func (s *sweepEnv) put(t *testing.T, content string) skin.Hash {
	t.Helper()
	data, hash := file(content)
	testenv.Do(t, s.files.Put(t.Context(), hash, data))
	return hash
}

// upload stores a file and adds its texture, as an upload does.
func (s *sweepEnv) upload(ctx context.Context, db *postgres.DB, content string, between func()) (core.TextureID, error) {
	data, hash := file(content)
	texture, err := db.AddTexture(ctx, core.NewTexture{
		Name: content, Type: skin.Classic, Hash: hash, Pixels: hash, Bytes: len(data), Uploader: s.uploader, Public: true,
	}, core.Pricing{}, func(ctx context.Context) error {
		defer between()
		return s.files.Put(ctx, hash, data)
	})
	return texture.ID, err
}

func (s *sweepEnv) mustUpload(t *testing.T, content string) core.TextureID {
	t.Helper()
	return testenv.Must(s.upload(t.Context(), s.db, content, func() {}))(t)
}

// remove deletes the textures with a file.
func (s *sweepEnv) remove(ctx context.Context, conn *pgx.Conn, content string) error {
	_, hash := file(content)
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, "SELECT tid FROM textures WHERE hash = $1 FOR UPDATE", hash[:]) // CollectRows reports the error
		tids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err == nil {
			_, err = tx.Exec(ctx, "DELETE FROM closet_items WHERE tid = ANY ($1)", tids)
		}
		if err == nil {
			_, err = tx.Exec(ctx, "DELETE FROM textures WHERE tid = ANY ($1)", tids)
		}
		return err
	})
}

// sweepOptions are options for which every file is old enough, and a missing file fails the test.
func sweepOptions(t *testing.T) core.SweepOptions {
	t.Helper()
	return core.SweepOptions{
		Before:    time.Now().Add(time.Hour),
		OnMissing: func(tid core.TextureID, hash skin.Hash) { t.Errorf("texture %d has no file %s", tid, hash) },
	}
}

// sweep sweeps once and returns its report.
func (s *sweepEnv) sweep(t *testing.T, files core.SweepFiles, opts core.SweepOptions) core.SweepReport {
	t.Helper()
	sweep := core.NewSweep(s.db, files, opts)
	testenv.Is(t, sweep.Run(t.Context()), nil, "sweep")
	return sweep.Report()
}

// has reports whether the store has a file.
func (s *sweepEnv) has(t *testing.T, hash skin.Hash) bool {
	t.Helper()
	_, err := s.files.Get(t.Context(), hash)
	if err != nil && !errors.Is(err, blobstore.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

func TestSweep(t *testing.T) {
	t.Parallel()
	onEachBackend(t, func(t *testing.T, s *sweepEnv) {
		t.Helper()
		_, kept := file("kept")
		s.mustUpload(t, "kept")
		s.mustUpload(t, "deleted")
		testenv.Do(t, s.remove(t.Context(), s.conn, "deleted"))
		orphan, size := s.put(t, "orphan"), int64(len("orphan"))
		_, deleted := file("deleted")
		s.backend.Write(t, "notes.txt", []byte("foreign"))
		s.backend.Write(t, deleted.String()[:2]+"/"+deleted.String()+".png.bak", []byte("foreign"))

		f := func(change func(*core.SweepOptions), want core.SweepReport) {
			t.Helper()
			opts := sweepOptions(t)
			change(&opts)
			cmptest.Same(t, s.sweep(t, s.files, opts), want, "report")
		}
		f(func(opts *core.SweepOptions) { opts.Before = time.Now().Add(-time.Hour) }, core.SweepReport{Files: 3, TooNew: 2})
		found := core.SweepReport{Files: 3, Orphans: 2, OrphanBytes: 2*size + 1}
		f(func(opts *core.SweepOptions) { opts.DryRun = true }, found)
		testenv.Equal(t, s.has(t, orphan) && s.has(t, deleted), true, "the files are there that are young, or of a dry run")
		found.Removed, found.FreedBytes = 2, found.OrphanBytes
		f(func(*core.SweepOptions) {}, found)
		there := [3]bool{s.has(t, orphan), s.has(t, deleted), s.has(t, kept)}
		testenv.Equal(t, there, [3]bool{false, false, true}, "which files are there: the texture's")
		f(func(*core.SweepOptions) {}, core.SweepReport{Files: 1})

		// The last texture may be deleted, too.
		testenv.Do(t, s.remove(t.Context(), s.conn, "kept"))
		r := s.sweep(t, s.files, sweepOptions(t))
		testenv.Check(t, r.Removed == 1 && !s.has(t, kept), "after the last texture is deleted: %+v", r)
		s.backend.Remove(t, "notes.txt") // fails if the sweep deleted it
	})
}

func TestSweepFindsMissingFiles(t *testing.T) {
	t.Parallel()
	onEachBackend(t, func(t *testing.T, s *sweepEnv) {
		t.Helper()
		want, there := map[core.TextureID]skin.Hash{}, []string{"a", "b", "c", "d", "e", "f"}
		for i, content := range there {
			tid := s.mustUpload(t, content)
			if _, hash := file(content); i%3 == 0 {
				want[tid] = hash
				testenv.Do(t, s.files.Delete(t.Context(), hash))
			}
		}
		orphan := s.put(t, "orphan")

		got, mu := map[core.TextureID]skin.Hash{}, sync.Mutex{}
		opts := sweepOptions(t)
		opts.OnMissing = func(tid core.TextureID, hash skin.Hash) {
			mu.Lock()
			defer mu.Unlock()
			got[tid] = hash
		}
		sweep := core.NewSweep(s.db, s.files, opts)
		testenv.ErrorHas(t, sweep.Run(t.Context()), "without a file: 2", "the sweep")
		cmptest.Same(t, got, want, "missing")
		r := sweep.Report()
		testenv.Check(t, r.Missing == 2 && r.Removed == 1 && !s.has(t, orphan), "report: %+v", r)
	})
}

// With another database every file looks like an orphan.
func TestSweepRefusesTheWrongDatabase(t *testing.T) {
	t.Parallel()
	ours := newSweepEnv(t, blobstoretest.Directory(t))
	ours.mustUpload(t, "ours")
	_, hash := file("ours")
	f := func(other *sweepEnv, want string) {
		t.Helper()
		opts := sweepOptions(t)
		opts.OnMissing = func(core.TextureID, skin.Hash) {}
		sweep := core.NewSweep(other.db, ours.files, opts)
		err := sweep.Run(t.Context())
		testenv.ErrorHas(t, err, want, "the sweep")
		testenv.ErrorHas(t, err, "nothing was removed", "the sweep")
		r := sweep.Report()
		testenv.Check(t, r.Orphans == 1 && r.Removed == 0 && ours.has(t, hash), "report: %+v", r)
	}
	other := newSweepEnv(t, blobstoretest.Directory(t))
	f(other, "never had a texture")
	for _, content := range []string{"a", "b", "c", "d"} {
		other.mustUpload(t, content)
	}
	f(other, "of the 4 newest textures 4 have no file")
}

// hookedFiles calls back at some steps of a sweep.
type hookedFiles struct {
	*blobstore.Store
	listed   func(skin.Hash) // before the file is listed
	removing func(skin.Hash) // before the file is deleted
}

func (h hookedFiles) List(ctx context.Context) iter.Seq2[blobstore.Object, error] {
	return func(yield func(blobstore.Object, error) bool) {
		for object, err := range h.Store.List(ctx) {
			if h.listed != nil && err == nil {
				h.listed(object.Hash)
			}
			if !yield(object, err) {
				return
			}
		}
	}
}

func (h hookedFiles) Delete(ctx context.Context, hash skin.Hash) error {
	if h.removing != nil {
		h.removing(hash)
	}
	return h.Store.Delete(ctx, hash)
}

// A file is stored, and its row is not written yet.
func TestSweepDuringAnUpload(t *testing.T) {
	t.Parallel()
	onEachBackend(t, func(t *testing.T, s *sweepEnv) {
		t.Helper()
		s.mustUpload(t, "other")
		var r core.SweepReport
		testenv.Must(s.upload(t.Context(), s.db, "new", func() { r = s.sweep(t, s.files, sweepOptions(t)) }))(t)
		testenv.Equal(t, r, core.SweepReport{Files: 2, Locked: 1}, "the report")
		_, hash := file("new")
		testenv.Equal(t, s.has(t, hash), true, "the file that was being uploaded is there")
		r = s.sweep(t, s.files, sweepOptions(t))
		testenv.Check(t, r.Files == 2 && r.Orphans == 0, "afterwards: %+v", r)
	})
}

// A file without a texture is listed, and then its pixels are uploaded again.
func TestSweepRechecksUnderTheLock(t *testing.T) {
	t.Parallel()
	onEachBackend(t, func(t *testing.T, s *sweepEnv) {
		t.Helper()
		s.mustUpload(t, "other")
		orphan := s.put(t, "again")
		files := hookedFiles{Store: s.files, listed: func(hash skin.Hash) {
			if hash == orphan {
				s.mustUpload(t, "again")
			}
		}}
		r := s.sweep(t, files, sweepOptions(t))
		testenv.Check(t, r.Removed == 0 && s.has(t, orphan), "the sweep removed a file that was uploaded again: %+v", r)
	})
}

// The sweep has checked that a file has no texture, and is about to delete it when the same pixels
// are uploaded again: the upload has to wait.
func TestSweepBlocksUploads(t *testing.T) {
	t.Parallel()
	onEachBackend(t, func(t *testing.T, s *sweepEnv) {
		t.Helper()
		s.mustUpload(t, "other")
		orphan := s.put(t, "again")
		uploaded := make(chan error, 1)
		files := hookedFiles{Store: s.files, removing: func(hash skin.Hash) {
			go func() { uploaded <- testenv.ErrOf(s.upload(t.Context(), s.db, "again", func() {})) }()
			s.awaitUpload(t, hash, uploaded)
		}}
		testenv.Equal(t, s.sweep(t, files, sweepOptions(t)).Removed, 1, "files are removed")
		testenv.Is(t, <-uploaded, nil, "the upload")
		testenv.Equal(t, s.has(t, orphan), true, "the file that was uploaded again is there")
	})
}

// awaitUpload waits until an upload waits for the lock on a hash.
func (s *sweepEnv) awaitUpload(t *testing.T, hash skin.Hash, ended chan error) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(2 * time.Minute); ; {
		var waits bool
		if err := s.conn.QueryRow(t.Context(),
			"SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND classid::bigint << 32 | objid::bigint = $1)",
			int64(binary.BigEndian.Uint64(hash[:]))).Scan(&waits); err != nil {
			t.Error(err)
			return
		}
		if waits {
			return
		}
		select {
		case <-tick.C:
		case err := <-ended:
			t.Errorf("the upload does not wait: %v", err)
			ended <- err
			return
		case <-deadline:
			t.Error("the upload does not reach the lock")
			return
		}
	}
}

// A sweep that is stopped ends its running deletions, and the next one does the rest.
func TestSweepStops(t *testing.T) {
	t.Parallel()
	onEachBackend(t, func(t *testing.T, s *sweepEnv) {
		t.Helper()
		const orphans = 50
		s.mustUpload(t, "other")
		for i := range orphans {
			s.put(t, fmt.Sprint(i))
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		sweep := core.NewSweep(s.db, hookedFiles{Store: s.files, removing: func(skin.Hash) { stop() }}, sweepOptions(t))
		testenv.Is(t, sweep.Run(ctx), context.Canceled, "the sweep")
		removed := sweep.Report().Removed
		testenv.Check(t, removed != 0 && removed <= 20,
			"removed %d of %d; want those that were under way", removed, orphans)
		r := s.sweep(t, s.files, sweepOptions(t))
		testenv.Check(t, r.Files == orphans+1-removed && r.Removed == orphans-removed, "after %d removed: %+v", removed, r)
	})
}

// Uploads, deletions and sweeps of the same few files run concurrently on two cores: every texture
// has a file as long as it exists.
func TestSweepBesideUploadsAndDeletions(t *testing.T) {
	t.Parallel()
	onEachBackend(t, func(t *testing.T, s *sweepEnv) {
		t.Helper()
		const contents, rounds, enough = 8, 200, 20
		s.mustUpload(t, "other") // a sweep refuses a database that never had a texture
		cores := []*postgres.DB{s.db, postgrestest.Connect(t, s.address)}
		var work, sweeps sync.WaitGroup
		var removed atomic.Int64
		workers := uint64(0)
		worker := func(do func(conn *pgx.Conn, content string) error) {
			conn, rng := postgrestest.Conn(t, s.address), rand.New(rand.NewPCG(1, workers))
			workers++
			work.Go(func() {
				for round := 0; round < rounds || removed.Load() < enough && !t.Failed(); round++ {
					if err := do(conn, strconv.Itoa(rng.IntN(contents))); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		for i := range 4 {
			worker(func(_ *pgx.Conn, content string) error {
				_, err := s.upload(t.Context(), cores[i%2], content, func() {})
				isDuplicate := fault.KindOf(err) == fault.Duplicate
				if isDuplicate || err != nil && strings.Contains(err.Error(), "at this moment, and deleted it") {
					return nil
				}
				return err
			})
		}
		for range 2 {
			worker(func(conn *pgx.Conn, content string) error { return s.remove(t.Context(), conn, content) })
		}
		worker(func(conn *pgx.Conn, content string) error { return s.read(t, conn, content) })

		done := make(chan struct{})
		for i := range 2 {
			sweeps.Go(func() {
				for {
					sweep := core.NewSweep(cores[i], s.files, sweepOptions(t))
					if err := sweep.Run(t.Context()); err != nil {
						t.Error(err)
						return
					}
					removed.Add(int64(sweep.Report().Removed))
					select {
					case <-done:
						return
					default:
					}
				}
			})
		}
		work.Wait()
		close(done)
		sweeps.Wait()
		s.sweep(t, s.files, sweepOptions(t))
		cmptest.Same(t, s.listed(t), s.hashes(t, s.db.TextureHashes(t.Context())), "textures and files at the end")
	})
}

// read checks that a file exists if it has the same texture before and after.
func (s *sweepEnv) read(t *testing.T, conn *pgx.Conn, content string) error {
	t.Helper()
	_, hash := file(content)
	tid := func() (tid core.TextureID, err error) {
		err = conn.QueryRow(t.Context(), "SELECT coalesce(min(tid), 0) FROM textures WHERE hash = $1", hash[:]).Scan(&tid)
		return tid, err
	}
	before, err := tid()
	if before == 0 || err != nil {
		return err
	}
	_, readErr := s.files.Get(t.Context(), hash)
	after, err := tid()
	if err == nil && after == before && readErr != nil {
		return fmt.Errorf("texture %d is there, its file is not: %w", before, readErr)
	}
	return err
}

// undeletableFiles has one file, without a texture, and fails to delete it.
type undeletableFiles struct {
	hookedFiles
	hash skin.Hash
}

var errNotDeleted = errors.New("not now")

func (u undeletableFiles) List(context.Context) iter.Seq2[blobstore.Object, error] {
	return func(yield func(blobstore.Object, error) bool) { yield(blobstore.Object{Hash: u.hash}, nil) }
}

func (u undeletableFiles) CleanTemp(context.Context, bool) (int, int64, error) { return 0, 0, nil }

func (u undeletableFiles) Delete(context.Context, skin.Hash) error { return errNotDeleted }

// lockRecorder is a database without textures, which records how long locks are held.
type lockRecorder struct{ held time.Duration }

func (l *lockRecorder) NewestTextures(context.Context, int) ([]skin.Hash, bool, error) {
	return nil, true, nil
}

func (l *lockRecorder) TextureHashes(context.Context) iter.Seq2[skin.Hash, error] {
	return func(func(skin.Hash, error) bool) {}
}

func (l *lockRecorder) LockHashes(_ context.Context, hashes []skin.Hash, do func(map[skin.Hash][]core.TextureID) error) error {
	began, textures := time.Now(), map[skin.Hash][]core.TextureID{}
	for _, hash := range hashes {
		textures[hash] = nil
	}
	defer func() { l.held = time.Since(began) }()
	return do(textures)
}

// A deletion that failed may still be executed later: uploads of the same pixels have to wait a
// little longer.
func TestSweepBlocksUploadsAfterAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var store lockRecorder
		sweep := core.NewSweep(&store, undeletableFiles{hash: skin.HashOf(nil)}, core.SweepOptions{Before: time.Now()})
		testenv.Is(t, sweep.Run(t.Context()), errNotDeleted, "the sweep")
		testenv.Equal(t, store.held, 10*time.Second, "how long the lock was held")
		testenv.Equal(t, sweep.Report().Removed, 0, "removed files")
	})
}

func (s *sweepEnv) hashes(t *testing.T, all iter.Seq2[skin.Hash, error]) []string {
	t.Helper()
	var hashes []string
	for hash, err := range all {
		testenv.Do(t, err)
		hashes = append(hashes, hash.String())
	}
	return hashes
}

func (s *sweepEnv) listed(t *testing.T) []string {
	t.Helper()
	var hashes []string
	for object, err := range s.files.List(t.Context()) {
		testenv.Do(t, err)
		hashes = append(hashes, object.Hash.String())
	}
	return hashes
}
