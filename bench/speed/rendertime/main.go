// Command rendertime prints how long pictures take from a decoded sheet to the bytes of a file, on
// one core, beside a floor: libwebp alone (lossless, method 1, quality 20) encoding the same
// rendered pixels, measured alternately. A ratio below 1 means that rendering and encoding take
// less than the library takes for encoding alone. Times are CPU time, the garbage collector's
// included: on an idle core that is the latency, and on a busy one still the cost of a picture.
// Libvips, as with EDGE_ENCODER=libvips, is measured, too. Then it prints the speed-up of a second
// core.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/edge/render/vips"
	"github.com/veneer-skins/veneer/edge/render/vips/libwebp"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
)

// How long each picture is measured: long enough for hundreds of rounds of most, and never fewer
// than minRounds of the slowest.
const (
	minDuration = 700 * time.Millisecond
	minRounds   = 11
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "speed:", err)
		os.Exit(1)
	}
}

func run(out io.Writer) error {
	libvips, err := vips.Start(nil)
	if err != nil {
		return err
	}
	defer libvips.Close()
	native, byLibvips := render.New(new(render.NativeEncoder), nil), render.New(libvips, nil)

	fmt.Fprintln(out, "| view | texture | floor ms | WebP ms | ratio | PNG ms | ratio | WebP allocations | PNG allocations | libvips WebP ms | PNG ms |")
	fmt.Fprintln(out, "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, view := range []struct {
		name     string
		mode     render.Mode
		size     int
		textures []string
	}{
		{"flat 64", render.Flat, 64, skins},
		{"flat 128", render.Flat, 128, skins},
		{"flat 512", render.Flat, 512, skins},
		{"isometric 64", render.Isometric, 64, skins},
		{"isometric 128", render.Isometric, 128, skins},
		{"isometric 512", render.Isometric, 512, skins},
		{"preview 128", render.Preview, 128, skins},
		{"preview 400", render.Preview, 400, skins},
		{"bust 128", render.Bust, 128, skins},
		{"bust 400", render.Bust, 400, skins},
		{"body 128", render.Body, 128, skins},
		{"body 400", render.Body, 400, skins},
		{"front 128", render.Front, 128, skins},
		{"front 400", render.Front, 400, skins},
		{"cape 400", render.Preview, 400, capes},
	} {
		for _, name := range view.textures {
			texture, err := findTexture(name)
			if err != nil {
				return err
			}
			row, err := measure(native, byLibvips, texture, render.View{Mode: view.mode, Type: texture.Type, Size: view.size})
			if err != nil {
				return fmt.Errorf("%s of %s: %w", view.name, name, err)
			}
			floor, webp, png, vipsWebP, vipsPNG := row[0], row[1], row[2], row[3], row[4]
			fmt.Fprintf(out, "| %s | %s | %.3f | %.3f | %.2f | %.3f | %.2f | %s | %s | %.3f | %.3f |\n",
				view.name, name, floor.ms(), webp.ms(), webp.ms()/floor.ms(), png.ms(), png.ms()/floor.ms(), webp.heap, png.heap,
				vipsWebP.ms(), vipsPNG.ms())
		}
	}
	fmt.Fprintln(out)
	for _, format := range []render.Format{render.WebP, render.PNG} {
		factor, err := twoCoreSpeedup(native, format)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "Two cores make %.2f times as many %s pictures as one.\n", factor, format)
	}
	return nil
}

// The textures that are measured, by their names in skintest: a usual skin, one with gradients,
// one of few colours, nothing but noise, high-resolution ones of scale 4 and 8, and a cape.
var (
	skins = []string{"Explorer", "Smooth 1", "Plain 1", "Noise", "HD Detail 1", "HD Fine 1"}
	capes = []string{"Sunrise"}
)

func findTexture(name string) (artwork.NamedSheet, error) {
	textures := append(skintest.Skins(), skintest.Capes()...)
	at := slices.IndexFunc(textures, func(texture artwork.NamedSheet) bool { return texture.Name == name })
	if at < 0 {
		return artwork.NamedSheet{}, fmt.Errorf("there is no texture %s", name)
	}
	return textures[at], nil
}

// cost is the cost of a file: the median of its CPU times, and its heap use.
type cost struct {
	time time.Duration
	heap heap
}

func (c cost) ms() float64 { return float64(c.time) / float64(time.Millisecond) }

// measure returns the costs of the floor, of WebP and of PNG, measured alternately on one core, and
// then of both written by libvips. Libvips is not measured alternately with the others: its use of
// the processor's caches would slow them down by a third.
func measure(native, byLibvips *render.Renderer, texture artwork.NamedSheet, view render.View) ([]cost, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	picture, err := native.Draw(texture.Sheet, skin.Sheet{}, view)
	if err != nil {
		return nil, err
	}
	asWebP, asPNG := view, view
	asWebP.Format, asPNG.Format = render.WebP, render.PNG
	costs, err := measureInterleaved(
		func() ([]byte, error) { return libwebp.Encode(picture.Pix, picture.Width, picture.Height, 1, 20) },
		renderFunc(native, texture, asWebP),
		renderFunc(native, texture, asPNG),
	)
	if err != nil {
		return nil, err
	}
	others, err := measureInterleaved(
		renderFunc(byLibvips, texture, asWebP),
		renderFunc(byLibvips, texture, asPNG),
	)
	return append(costs, others...), err
}

// renderFunc returns a function that renders and encodes a view.
func renderFunc(by *render.Renderer, texture artwork.NamedSheet, view render.View) func() ([]byte, error) {
	return func() ([]byte, error) {
		file, _, err := by.Render(texture.Sheet, skin.Sheet{}, view)
		return file, err
	}
}

// measureInterleaved returns the costs of files that are made alternately.
func measureInterleaved(funcs ...func() ([]byte, error)) (costs []cost, err error) {
	costs = make([]cost, len(funcs))
	for i, fn := range funcs {
		if costs[i].heap, err = heapOf(fn); err != nil {
			return nil, err
		}
	}
	times := make([][]time.Duration, len(funcs))
	for began, round := time.Now(), 0; round < minRounds || time.Since(began) < minDuration; round++ {
		for position := range funcs {
			// The order rotates, so that each follows different ones: the data of the
			// last one is in the processor's caches.
			i := (position + round) % len(funcs)
			spent, err := processorTime()
			if err != nil {
				return nil, err
			}
			if _, err := funcs[i](); err != nil {
				return nil, err
			}
			now, err := processorTime()
			if err != nil {
				return nil, err
			}
			times[i] = append(times[i], now-spent)
		}
	}
	for i := range funcs {
		costs[i].time = median(times[i])
	}
	return costs, nil
}

// processorTime returns the CPU time of all threads of this process.
func processorTime() (time.Duration, error) {
	var spent unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &spent); err != nil {
		return 0, fmt.Errorf("read processor time: %w", err)
	}
	return time.Duration(spent.Nano()), nil
}

// heap is the heap use of making a file.
type heap struct{ objects, bytes uint64 }

func (h heap) String() string { return fmt.Sprintf("%d, %.1f KiB", h.objects, float64(h.bytes)/1024) }

// heapOf returns the heap use of a call that is not the first.
func heapOf(call func() ([]byte, error)) (heap, error) {
	// A collection would empty pools of reusable memory.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	const calls = 10
	var before, after runtime.MemStats
	for i := range 1 + calls {
		if i == 1 {
			runtime.ReadMemStats(&before)
		}
		if _, err := call(); err != nil {
			return heap{}, err
		}
	}
	runtime.ReadMemStats(&after)
	return heap{
		objects: (after.Mallocs - before.Mallocs + calls/2) / calls,
		bytes:   (after.TotalAlloc - before.TotalAlloc + calls/2) / calls,
	}, nil
}

// twoCoreSpeedup returns the speed-up of two cores over one for the same pictures: of all own
// skins, in every mode.
func twoCoreSpeedup(renderer *render.Renderer, format render.Format) (float64, error) {
	const rounds, enough = 7, 500 * time.Millisecond
	jobs := skinJobs(format)
	once, err := drawAll(renderer, jobs, 1)
	if err != nil {
		return 0, err
	}
	jobs = slices.Repeat(jobs, 1+int(enough/once))

	var took [2][]time.Duration
	for range rounds {
		for i := range took {
			elapsed, err := drawAll(renderer, jobs, 1+i)
			if err != nil {
				return 0, err
			}
			took[i] = append(took[i], elapsed)
		}
	}
	return float64(median(took[0])) / float64(median(took[1])), nil
}

// job is a picture to make.
type job struct {
	sheet skin.Sheet
	view  render.View
}

func skinJobs(format render.Format) (jobs []job) {
	for _, texture := range artwork.Skins() {
		for _, view := range []render.View{
			{Mode: render.Preview, Size: 400},
			{Mode: render.Isometric, Size: 128},
			{Mode: render.Flat, Size: 128},
		} {
			view.Type, view.Format = texture.Type, format
			jobs = append(jobs, job{texture.Sheet, view})
		}
	}
	return jobs
}

// drawAll returns how long so many cores take for all the jobs, each core for one at a time.
func drawAll(renderer *render.Renderer, jobs []job, cores int) (time.Duration, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
	var next atomic.Int64
	errs := make([]error, cores)
	var all sync.WaitGroup
	began := time.Now()
	for core := range cores {
		all.Go(func() {
			for i := next.Add(1); i <= int64(len(jobs)) && errs[core] == nil; i = next.Add(1) {
				_, _, errs[core] = renderer.Render(jobs[i-1].sheet, skin.Sheet{}, jobs[i-1].view)
			}
		})
	}
	all.Wait()
	return time.Since(began), errors.Join(errs...)
}

func median(times []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(times))[len(times)/2]
}
