package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/edge/origin"
	"github.com/veneer-skins/veneer/edge/warm"
	"github.com/veneer-skins/veneer/shared/cli"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
)

// warmConfig is the settings of edge warm: the listener of the edge to warm by default, and
// core for -liked.
type warmConfig struct {
	PublicListener
	likedConfig
}

// warmCommand loads pictures into the caches of running edges. It returns an error if some
// could not be loaded.
func warmCommand(ctx context.Context, i cli.Invocation) error {
	var edges []string
	flags := cli.Flags("edge warm")
	flags.Func("to", "base `URL` of an edge to warm; may be repeated (default: the edge at EDGE_LISTEN)", func(text string) error {
		base, err := warm.Base(text)
		edges = append(edges, base)
		return err
	})
	liked := flags.Int("liked", 0, fmt.Sprintf("warm this number of the most liked textures, at most %d, instead of HASH; they are read from core at EDGE_CORE_URL", edgeproto.MaxLiked))
	views := flags.String("views", strings.Join(edge.WarmPaths(), ","), "`paths` to request, separated by commas, with {hash} for the hash of a texture; the default has the usual responses of each view")
	job := warm.Job{}
	flags.IntVar(&job.Parallel, "parallel", 2, "concurrent requests to each edge; each may occupy a render worker that clients need")
	flags.DurationVar(&job.RetryFor, "retry-for", 30*time.Second, "how long to retry a picture, with a growing backoff, while an edge is overloaded")
	operands, err := i.ParseArgs(flags, "[HASH ... | -]")
	if err != nil {
		return err
	}
	if job.Views, err = warm.ParseViews(*views); err != nil {
		return fmt.Errorf("-views: %w", err)
	}
	switch {
	case job.Parallel < 1:
		return fmt.Errorf("-parallel is %d, but must be at least 1", job.Parallel)
	case job.RetryFor < 0:
		return fmt.Errorf("-retry-for is %s, but must not be negative", job.RetryFor)
	}
	if edges == nil {
		cfg, err := config.Read[PublicListener](prefix, i.Environ)
		if err != nil {
			return err
		}
		if cfg.TLSCert != "" {
			return errors.New("EDGE_TLS_CERT is set, so -to must have a host name of the certificate, as in -to https://edge-1.example.org")
		}
		edges = []string{"http://" + string(cfg.Listen)}
	}
	if job.Hashes, err = texturesToWarm(ctx, i, *liked, operands); err != nil {
		return err
	}
	return warmAll(ctx, i.Stdout, edges, job)
}

// texturesToWarm returns the textures that the arguments select, without duplicates.
func texturesToWarm(ctx context.Context, i cli.Invocation, liked int, operands []string) ([]skin.Hash, error) {
	switch {
	case liked < 0 || liked > edgeproto.MaxLiked:
		return nil, fmt.Errorf("-liked is %d, but must be from 1 to %d", liked, edgeproto.MaxLiked)
	case liked > 0 && len(operands) > 0:
		return nil, errors.New("give either hashes or -liked")
	case liked > 0:
		hashes, err := mostLiked(ctx, i.Environ, liked)
		return distinct(hashes), err
	case slices.Equal(operands, []string{"-"}):
		return readHashes(i.Stdin)
	case len(operands) == 0:
		return nil, errors.New("give the hashes of textures, - to read them from standard input, or -liked")
	}
	hashes := make([]skin.Hash, len(operands))
	for at, operand := range operands {
		hash, err := skin.ParseHash(operand)
		if err != nil {
			return nil, fmt.Errorf("%q is not the hash of a texture", operand)
		}
		hashes[at] = hash
	}
	return distinct(hashes), nil
}

// likedConfig is the settings of -liked.
type likedConfig struct {
	Core origin.Config `envPrefix:"CORE_"`
}

// mostLiked returns the most liked textures from core.
func mostLiked(ctx context.Context, environ []string, limit int) ([]skin.Hash, error) {
	cfg, err := config.Read[likedConfig](prefix, environ)
	if err != nil {
		return nil, err
	}
	core, err := origin.NewCore(cfg.Core, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, config.In(prefix+"CORE_", err)
	}
	return core.Liked(ctx, limit)
}

// readHashes reads hashes from lines.
func readHashes(r io.Reader) ([]skin.Hash, error) {
	var hashes []skin.Hash
	lines := bufio.NewScanner(r)
	for number := 1; lines.Scan(); number++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		hash, err := skin.ParseHash(text)
		if err != nil {
			return nil, fmt.Errorf("line %d of standard input is not the hash of a texture", number)
		}
		hashes = append(hashes, hash)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read standard input: %w", err)
	}
	return distinct(hashes), nil
}

// distinct removes duplicate hashes: textures of two models can have the same file.
func distinct(hashes []skin.Hash) []skin.Hash {
	seen := map[skin.Hash]bool{}
	return slices.DeleteFunc(hashes, func(hash skin.Hash) bool {
		before := seen[hash]
		seen[hash] = true
		return before
	})
}

// warmAll warms all edges concurrently, and prints a report for each.
func warmAll(ctx context.Context, out io.Writer, edges []string, job warm.Job) error {
	reports, elapsed := make([]warm.Report, len(edges)), make([]time.Duration, len(edges))
	var runs sync.WaitGroup
	for at, base := range edges {
		runs.Go(func() {
			began := time.Now()
			reports[at] = warm.Run(ctx, base, job)
			elapsed[at] = time.Since(began)
		})
	}
	runs.Wait()

	var failures []string
	pictures := len(job.Hashes) * len(job.Views)
	for at, r := range reports {
		fmt.Fprintf(out, "%s: of %d pictures of %d textures, %d were loaded, %d were cached, %d do not exist for their type and %d failed, in %s\n",
			edges[at], pictures, len(job.Hashes), r.Loaded, r.Cached, r.NotFound, r.Failed, elapsed[at].Round(time.Millisecond))
		if r.Failed > 0 {
			failures = append(failures, fmt.Sprintf("%d of %d pictures could not be loaded at %s: %v", r.Failed, pictures, edges[at], r.FirstError))
		}
	}
	if failures != nil {
		return errors.New(strings.Join(failures, "; "))
	}
	return nil
}
