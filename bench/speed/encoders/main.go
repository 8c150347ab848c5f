// Command encoders compares the sizes of pictures of textures with those of the best tools for the
// same pixels: cwebp for WebP, optipng and zopflipng for PNG. It also decodes every file, since a
// small file of other pixels is worth nothing.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sizes:", err)
		os.Exit(1)
	}
}

// target is the goal for every picture of a view: its file is at most limit times as large as the
// smallest file of the encoders.
type target struct {
	format   render.Format
	view     string
	mode     render.Mode
	of       func() []artwork.NamedSheet
	limit    float64
	encoders []encoder
}

var targets = []target{
	{render.WebP, "flat", render.Flat, skintest.Skins, 1.02, []encoder{cwebp("9")}},
	{render.WebP, "isometric", render.Isometric, skintest.Skins, 1, []encoder{cwebp("6")}},
	{render.WebP, "preview", render.Preview, skintest.Skins, 1, []encoder{cwebp("6")}},
	{render.WebP, "cape", render.Preview, skintest.Capes, 1, []encoder{cwebp("6")}},
	{render.PNG, "flat", render.Flat, skintest.Skins, 1.05, []encoder{optipng, zopflipng}},
	{render.PNG, "isometric", render.Isometric, skintest.Skins, 1.15, []encoder{optipng, zopflipng}},
	{render.PNG, "preview", render.Preview, skintest.Skins, 1.15, []encoder{optipng, zopflipng}},
	{render.PNG, "cape", render.Preview, skintest.Capes, 1.15, []encoder{optipng, zopflipng}},
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("encoders", flag.ExitOnError)
	formats := flags.String("formats", "webp,png", "formats to measure; the other encoders of png take long")
	views := flags.String("views", "flat,isometric,preview,cape", "views to measure")
	list := flags.Bool("list", false, "also list every picture that is above its limit")
	cache := flags.String("cache", ".dev/encoders", "directory in which the other encoders' results are cached")
	if err := flags.Parse(args); err != nil {
		return err
	}
	wanted := slices.DeleteFunc(slices.Clone(targets), func(a target) bool {
		return !slices.Contains(strings.Split(*formats, ","), a.format.String()) ||
			!slices.Contains(strings.Split(*views, ","), a.view)
	})
	if len(wanted) == 0 {
		return fmt.Errorf("there is nothing to measure of formats %q and views %q", *formats, *views)
	}
	renderer := render.New(new(render.NativeEncoder), nil)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	memo, err := newResultCache(*cache)
	if err != nil {
		return err
	}
	defer memo.close()

	fmt.Fprintln(out, "| format | view | size | pictures | bytes | other's | ratio | worst | limit | above |")
	fmt.Fprintln(out, "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, target := range wanted {
		for _, size := range []int{64, 128, 256, 512} {
			results, err := target.results(ctx, renderer, memo, size)
			if err != nil {
				return err
			}
			row := sum(results, target.limit)
			fmt.Fprintf(out, "| %s | %s | %d | %d | %d | %d | %.3f | %.3f | %.2f | %d |\n",
				target.format, target.view, size, len(results), row.ours, row.theirs, row.ratio(), row.worst, target.limit, len(row.above))
			if *list {
				for _, r := range row.above {
					fmt.Fprintf(out, "| | %s | | | %d | %d | %.3f | | | |\n", r.name, r.ours, r.theirs, r.ratio())
				}
			}
		}
	}
	return nil
}

// results measures all pictures of one size, in as many goroutines as there are cores.
func (t target) results(ctx context.Context, renderer *render.Renderer, memo *resultCache, size int) ([]result, error) {
	textures := t.of()
	results := make([]result, len(textures))
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(runtime.GOMAXPROCS(0))
	for i, texture := range textures {
		all.Go(func() (err error) {
			view := render.View{Mode: t.mode, Type: texture.Type, Size: size, Format: t.format}
			if results[i], err = measure(ctx, renderer, memo, texture, view, t.encoders); err != nil {
				return fmt.Errorf("%s, %s, size %d: %w", texture.Name, t.view, size, err)
			}
			return nil
		})
	}
	return results, all.Wait()
}

// result is the size of a picture's file, and the smallest of the other encoders'.
type result struct {
	name         string
	ours, theirs int
}

func (r result) ratio() float64 { return float64(r.ours) / float64(r.theirs) }

// total is the sum of a row's pictures.
type total struct {
	result
	worst float64
	above []result
}

func sum(results []result, limit float64) (t total) {
	for _, r := range results {
		t.ours += r.ours
		t.theirs += r.theirs
		t.worst = max(t.worst, r.ratio())
		if r.ratio() > limit {
			t.above = append(t.above, r)
		}
	}
	return t
}

// measure renders and encodes a picture, checks that it decodes to the same pixels, and has the
// encoders encode them.
func measure(ctx context.Context, renderer *render.Renderer, memo *resultCache, texture artwork.NamedSheet, view render.View, encoders []encoder) (result, error) {
	picture, err := renderer.Draw(texture.Sheet, skin.Sheet{}, view)
	if err != nil {
		return result{}, err
	}
	file, _, err := renderer.Render(texture.Sheet, skin.Sheet{}, view)
	if err != nil {
		return result{}, err
	}
	if err := readBack(file, view.Format, picture); err != nil {
		return result{}, err
	}
	r := result{name: texture.Name, ours: len(file)}
	for _, enc := range encoders {
		size, err := memo.size(ctx, enc, picture)
		if err != nil {
			return result{}, err
		}
		if r.theirs == 0 || size < r.theirs {
			r.theirs = size
		}
	}
	return r, nil
}
