//go:build !race

package api_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// instructionsPerHit is what a hit of a player's head takes on the fast path, with the client of TestServeHits and without the
// kernel. A change may raise it by 2 %; one that raises it by more, or lowers it, sets it anew and says why.
const instructionsPerHit = 4440

// hitsVariable has the number of hits that TestServeHits serves.
const hitsVariable = "TEST_SERVE_HITS"

// A hit takes as many instructions as it did. Unlike its time they are nearly the same on a busy machine. It is a benchmark
// since these run one by one.
func BenchmarkInstructionsPerHit(b *testing.B) {
	if _, err := exec.LookPath("valgrind"); err != nil {
		testenv.Skip(b, "valgrind is missing: apt-get install valgrind")
	}
	count := func(hits int) (int, error) {
		command := exec.CommandContext(b.Context(), "valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", os.Args[0], "-test.run", "^TestServeHits$")
		// valgrind 3.19 offers RDTSCP even where the processor has none, and then cannot run it: Go goes without, and libvips
		// without its module for JPEG XL.
		command.Env = append(os.Environ(), hitsVariable+"="+strconv.Itoa(hits), "GOMAXPROCS=1", "GOGC=off", "GODEBUG=cpu.rdtscp=off", "VIPSHOME="+b.TempDir())
		printed, err := command.CombinedOutput()
		match := regexp.MustCompile(`I +refs: +([\d,]+)`).FindSubmatch(printed)
		if err != nil || match == nil {
			return 0, fmt.Errorf("cachegrind counts nothing: %w\n%s", cmp.Or(err, io.EOF), printed)
		}
		return strconv.Atoi(strings.ReplaceAll(string(match[1]), ",", ""))
	}
	const few, many, highest, lowest = 10_000, 60_000, instructionsPerHit * 102 / 100, instructionsPerHit * 95 / 100
	// While it takes long, other goroutines do more.
	least := math.MaxInt
	for tries := 0; tries < 4 && least > highest; tries++ {
		start, err := count(few)
		end, endErr := count(many)
		testenv.Do(b, errors.Join(err, endErr))
		least = min(least, (end-start)/(many-few))
	}
	b.ReportMetric(float64(least), "instructions/op")
	testenv.Check(b, least <= highest && least >= lowest,
		"a hit takes %d instructions; instructionsPerHit is %d", least, instructionsPerHit)
}

// TestServeHits is run by BenchmarkInstructionsPerHit, in a process of its own.
func TestServeHits(t *testing.T) { //nolint:paralleltest // it is alone in its process
	hits, _ := strconv.Atoi(os.Getenv(hitsVariable))
	if hits == 0 {
		return
	}
	w := openSeeded(t)
	w.unfollow()
	const target, batch = "/avatar/player/Steve?size=64&3d", 32
	request := []byte("GET " + target + " HTTP/1.1\r\nHost: images.example.org\r\nUser-Agent: test\r\nAccept: image/webp,*/*\r\n\r\n")
	client := &socketClient{Conn: testenv.Must(net.Dial("tcp", strings.TrimPrefix(w.url, "http://")))(t)}
	testenv.Eventually(t, "the fast path serves hits", func() bool {
		before := w.handled.Load()
		client.ask(t, request, 0)
		return w.handled.Load() == before
	})
	length, before := len(client.answer), w.handled.Load()
	requests := bytes.Repeat(request, batch)
	for range hits / batch {
		client.ask(t, requests, batch*length)
	}
	testenv.Equal(t, w.handled.Load(), before, "requests that the fast path leaves to the server")
}
