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

	"github.com/veneer-skins/veneer/edge/origin"
	"github.com/veneer-skins/veneer/edge/warm"
	"github.com/veneer-skins/veneer/shared/cli"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
)

// warmConfig is what the command reads: where the edge listens that it warms if none is
// named, and core if it is to be asked.
type warmConfig struct {
	PublicListener
	likedConfig
}

// warmCommand has running edges make pictures ahead. That some could not be made is
// an error.
func warmCommand(ctx context.Context, i cli.Invocation) error {
	var edges []string
	flags := cli.Flags("edge warm")
	flags.Func("to", "base `URL` of an edge to be warmed, given once for each (default: the edge that listens at EDGE_LISTEN)", func(text string) error {
		base, err := warm.Base(text)
		edges = append(edges, base)
		return err
	})
	liked := flags.Int("liked", 0, fmt.Sprintf("warm so many of the textures that most closets hold, at most %d, and no HASH; asks the core that EDGE_CORE_URL names", edgeproto.MaxLiked))
	views := flags.String("views", warm.CommonViews, "`paths` to ask for, separated by commas, {hash} being a texture's; those that are asked for without further wishes:\n"+
		"the file, which games load, the flat avatar in both formats, the isometric one, and the preview")
	job := warm.Job{}
	flags.IntVar(&job.Parallel, "parallel", 2, "pictures to ask each edge for at once; few, as each may take a slot that a visitor would have")
	flags.DurationVar(&job.RetryFor, "patience", 30*time.Second, "longest time to ask again, less and less often, for a picture that an edge has no time for")
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
		return fmt.Errorf("-patience is %s, but must not be negative", job.RetryFor)
	}
	if edges == nil {
		config, err := config.Read[PublicListener](prefix, i.Environ)
		if err != nil {
			return err
		}
		if config.TLSCert != "" {
			return errors.New("EDGE_TLS_CERT is set, so -to must say by which name of the certificate to ask, as in -to https://edge-1.example.org")
		}
		edges = []string{"http://" + string(config.Listen)}
	}
	if job.Hashes, err = texturesToWarm(ctx, i, *liked, operands); err != nil {
		return err
	}
	return warmAll(ctx, i.Stdout, edges, job)
}

// texturesToWarm returns the textures that an operator names, each once.
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

// likedConfig is what asking core reads.
type likedConfig struct {
	Core origin.Config `envPrefix:"CORE_"`
}

// mostLiked asks core.
func mostLiked(ctx context.Context, environ []string, limit int) ([]skin.Hash, error) {
	config, err := config.Read[likedConfig](prefix, environ)
	if err != nil {
		return nil, err
	}
	core, err := origin.NewCore(config.Core, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, fmt.Errorf("%sCORE_%w", prefix, err)
	}
	return core.Liked(ctx, limit)
}

// readHashes reads hashes, one a line.
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

// distinct returns hashes without those that stood before: textures of two models can
// have one file.
func distinct(hashes []skin.Hash) []skin.Hash {
	seen := map[skin.Hash]bool{}
	return slices.DeleteFunc(hashes, func(hash skin.Hash) bool {
		before := seen[hash]
		seen[hash] = true
		return before
	})
}

// warmAll warms all edges at once, and says what became of each.
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
	asked := len(job.Hashes) * len(job.Views)
	for at, r := range reports {
		fmt.Fprintf(out, "%s: of %d pictures of %d textures, %d were made, %d were there, %d do not exist for their type and %d failed, in %s\n",
			edges[at], asked, len(job.Hashes), r.Loaded, r.Cached, r.NotFound, r.Failed, elapsed[at].Round(time.Millisecond))
		if r.Failed > 0 {
			failures = append(failures, fmt.Sprintf("%d of %d pictures could not be made at %s: %v", r.Failed, asked, edges[at], r.FirstError))
		}
	}
	if failures != nil {
		return errors.New(strings.Join(failures, "; "))
	}
	return nil
}
