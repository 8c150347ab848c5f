package compare

import (
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/veneer-skins/veneer/bench/speed/fixture"
	"github.com/veneer-skins/veneer/bench/speed/results"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/tlsreload/tlsreloadtest"
)

const (
	storedFiles      = 2000
	storeConcurrency = 16 // concurrent requests for files
	storeDuration    = 2 * time.Second
	storeRounds      = 6
)

// storeCosts measures the cost of the workload's texture files in a MinIO of one node, which shares
// all processors with its client.
func (e *env) storeCosts(tb testing.TB, c *zipfWorkload) []results.Cost {
	tb.Helper()
	server := stack.NewMinIO(tb, tlsreloadtest.NewAuthority(tb))
	e.addSetting("program of MinIO", server.Program)
	from, to := openStore(tb, blobstore.Config{URL: "file://" + fixture.Textures(e.serverEnv), Timeout: time.Minute}), openStore(tb, server.Config)
	if err := to.Init(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	hashes := c.Skins()
	hashes = hashes[:min(len(hashes), storedFiles)]
	before := diskUsage(tb, server.Data)
	forEachHash(tb, hashes, func(hash skin.Hash) error {
		file, err := from.Get(tb.Context(), hash)
		if err != nil {
			return err
		}
		return to.Put(tb.Context(), hash, file)
	})
	stored := (diskUsage(tb, server.Data) - before) / float64(len(hashes))

	var took []float64
	rounds := storeRounds
	if e.Quick {
		rounds = 1
	}
	for range rounds {
		files, cpu := 0, stack.CPU(tb, server.PID)
		for began := time.Now(); time.Since(began) < e.duration(storeDuration); files += len(hashes) {
			forEachHash(tb, hashes, func(hash skin.Hash) error {
				_, err := to.Get(tb.Context(), hash)
				return err
			})
		}
		took = append(took, float64((stack.CPU(tb, server.PID)-cpu).Microseconds())/float64(files))
	}
	const method = "a MinIO of one node, over TLS"
	return []results.Cost{
		{Figure: results.Figure{Name: "texture's file: fetched from MinIO", Unit: "µs", Rounds: took}, Method: method},
		{Figure: results.Figure{Name: "texture's file: on MinIO's disk", Unit: "bytes", Rounds: []float64{stored}}, Method: method},
	}
}

func openStore(tb testing.TB, config blobstore.Config) *blobstore.Store {
	tb.Helper()
	store, err := blobstore.New(config)
	if err != nil {
		tb.Fatal(err)
	}
	return store
}

// forEachHash calls do with all hashes, several at a time.
func forEachHash(tb testing.TB, hashes []skin.Hash, do func(skin.Hash) error) {
	tb.Helper()
	var all errgroup.Group
	all.SetLimit(storeConcurrency)
	for _, hash := range hashes {
		all.Go(func() error { return do(hash) })
	}
	if err := all.Wait(); err != nil {
		tb.Fatal(err)
	}
}

// diskUsage returns the disk usage of a directory in bytes, in whole blocks.
func diskUsage(tb testing.TB, directory string) (bytes float64) {
	tb.Helper()
	if err := filepath.WalkDir(directory, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			const block = 512
			bytes += float64(stat.Blocks * block)
		}
		return nil
	}); err != nil {
		tb.Fatal(err)
	}
	return bytes
}
