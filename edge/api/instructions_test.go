//go:build !race

package api_test

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// instructionsPerHit is what a hit of the fast path takes, with the client of TestServeHits and without the kernel. A change
// may raise it by 2 %; one that raises it by more, or lowers it, sets it anew and says why.
const instructionsPerHit = 5450

// hitsVariable has the number of hits that TestServeHits serves.
const hitsVariable = "TEST_SERVE_HITS"

// A hit takes as many instructions as it did. Unlike its time they are the same on a busy machine.
func TestInstructionsPerHit(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)
	if _, err := exec.LookPath("valgrind"); err != nil {
		testenv.Skip(t, "valgrind is missing: apt-get install valgrind")
	}
	count := func(hits int) int {
		command := exec.CommandContext(t.Context(), "valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", os.Args[0], "-test.run", "^TestServeHits$")
		command.Env = append(os.Environ(), hitsVariable+"="+strconv.Itoa(hits), "GOMAXPROCS=1", "GOGC=off")
		printed, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, printed)
		}
		match := regexp.MustCompile(`I +refs: +([\d,]+)`).FindSubmatch(printed)
		if match == nil {
			t.Fatalf("cachegrind counts nothing:\n%s", printed)
		}
		return testenv.Must(strconv.Atoi(strings.ReplaceAll(string(match[1]), ",", "")))(t)
	}
	const few, many = 10_000, 60_000
	perHit := (count(many) - count(few)) / (many - few)
	t.Logf("a hit takes %d instructions", perHit)
	if perHit*100 > instructionsPerHit*102 || perHit*100 < instructionsPerHit*95 {
		t.Errorf("a hit takes %d instructions; instructionsPerHit is %d", perHit, instructionsPerHit)
	}
}

// TestServeHits is run by TestInstructionsPerHit, in a process of its own.
func TestServeHits(t *testing.T) { //nolint:paralleltest // it is alone in its process
	hits, _ := strconv.Atoi(os.Getenv(hitsVariable))
	if hits == 0 {
		return
	}
	w := openSeeded(t)
	w.set(t, map[edgeproto.Key]edgeproto.Mapping{})
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
