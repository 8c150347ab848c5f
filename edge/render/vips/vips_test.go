package vips_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	govips "github.com/davidbyttow/govips/v2/vips"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/edge/render/vips"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// One Reducer for all tests, because libvips starts only once in a process, and a renderer with it.
var (
	reducer  *vips.Reducer
	reducing *render.Renderer
)

// vipsLog is the log of libvips.
var vipsLog bytes.Buffer

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run runs the tests. It fails the package if they leak memory or files of libvips or make it log.
func run(m *testing.M) int {
	var err error
	if reducer, err = vips.StartReducer(slog.New(slog.NewTextHandler(&vipsLog, nil))); err != nil {
		fmt.Fprintln(os.Stderr, "start libvips:", err)
		return 1
	}
	defer reducer.Close()
	reducing = render.New(reducer)
	code := m.Run()

	// Threads of libvips may still end when its last call has returned.
	var leaked govips.MemoryStats
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 1000 {
		govips.ReadVipsMemStats(&leaked)
		leaked.MemHigh = 0
		if leaked == (govips.MemoryStats{}) {
			break
		}
		<-tick.C
	}
	if leaked != (govips.MemoryStats{}) {
		fmt.Fprintf(os.Stderr, "libvips still holds %+v\n", leaked)
		code = 1
	}
	if vipsLog.Len() > 0 {
		fmt.Fprintf(os.Stderr, "libvips logged:\n%s", vipsLog.String())
		code = 1
	}
	return code
}

// Reducers of one libvips have one revision.
func TestRevision(t *testing.T) {
	t.Parallel()
	other := testenv.Must(vips.StartReducer(nil))(t)
	defer other.Close()
	if got := reducer.Revision(); !regexp.MustCompile(`^[0-9a-f]{12}$`).MatchString(got) || got != other.Revision() {
		t.Errorf("Revision: %q and %q; want the same 12 digits", got, other.Revision())
	}
	if bytes, peak := vips.Memory(); bytes < 0 || peak <= 0 { // of the samples behind the revision
		t.Errorf("libvips uses %d bytes and at most %d", bytes, peak)
	}
}

func TestReduceRejects(t *testing.T) {
	t.Parallel()
	// Govips adds a stack trace to what libvips says.
	if _, err := reducer.Reduce(render.Picture{}, 1, 1, true); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("no pixels: %v; want an error of one line", err)
	}
}
