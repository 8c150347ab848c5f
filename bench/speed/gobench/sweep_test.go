package gobench_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/skin"
)

// BenchmarkSweep measures a sweep of 100,000 files: of a directory and of a bucket,
// first with a texture for each of them, and then after every tenth texture was
// deleted. With -short there are a hundred times fewer.
func BenchmarkSweep(b *testing.B) {
	b.Run("directory", func(b *testing.B) { benchmarkSweep(b, blobstoretest.Directory(b)) })
	b.Run("bucket", func(b *testing.B) { benchmarkSweep(b, blobstoretest.Bucket(b)) })
}

func benchmarkSweep(b *testing.B, backend blobstoretest.Backend) {
	b.Helper()
	n := 100_000
	if testing.Short() {
		n /= 100
	}
	files := blobstoretest.Open(b, backend.Config)
	if err := files.Init(b.Context()); err != nil {
		b.Fatal(err)
	}
	hashes := putFiles(b, files, n)
	address := postgrestest.URL(b)
	db, conn := postgrestest.Connect(b, address), postgrestest.Conn(b, address)
	columns := strings.Fields("bytes public type hash pixels name")
	if _, err := conn.CopyFrom(b.Context(), pgx.Identifier{"textures"}, columns, pgx.CopyFromSlice(n, func(i int) ([]any, error) {
		return []any{1, true, "steve", hashes[i][:], hashes[i][:], "N"}, nil
	})); err != nil {
		b.Fatal(err)
	}
	execute(b, conn, "VACUUM ANALYZE textures")
	sweep := func() (core.SweepReport, float64) {
		b.Helper()
		sweep := core.NewSweep(db, files, core.SweepOptions{
			Before:    time.Now().Add(time.Hour),
			OnMissing: func(tid core.TextureID, _ skin.Hash) { b.Errorf("texture %d has no file", tid) },
		})
		began := time.Now()
		if err := sweep.Run(b.Context()); err != nil {
			b.Fatal(err)
		}
		return sweep.Report(), time.Since(began).Seconds()
	}

	b.ResetTimer()
	all, took := sweep()
	if all.Files != n || all.Orphans != 0 {
		b.Errorf("of %d files with textures: %+v", n, all)
	}
	b.ReportMetric(float64(all.Files)/took, "files/s")
	execute(b, conn, "DELETE FROM textures WHERE tid % 10 = 0")
	rest, took := sweep()
	if rest.Files != n || rest.Removed != n/10 {
		b.Errorf("of %d files, a tenth of them orphans: %+v", n, rest)
	}
	b.ReportMetric(float64(rest.Removed)/took, "removals/s")
	b.ReportMetric(0, "ns/op")
}

// putFiles stores so many files of 2 KiB, the size of an ordinary skin, and returns their hashes.
func putFiles(b *testing.B, files *blobstore.Store, n int) []skin.Hash {
	b.Helper()
	hashes := make([]skin.Hash, n)
	var writers sync.WaitGroup
	const atOnce = 32
	for first := range atOnce {
		writers.Go(func() {
			file := bytes.Repeat([]byte("texture "), 256)
			for i := first; i < n && !b.Failed(); i += atOnce {
				binary.LittleEndian.PutUint64(file, uint64(i))
				hashes[i] = skin.HashOf(file)
				if err := files.Put(b.Context(), hashes[i], file); err != nil {
					b.Error(err)
				}
			}
		})
	}
	writers.Wait()
	return hashes
}

func execute(b *testing.B, conn *pgx.Conn, sql string) {
	b.Helper()
	if _, err := conn.Exec(b.Context(), sql); err != nil {
		b.Fatal(err)
	}
}
