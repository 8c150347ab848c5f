package api_test

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core/coretest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// heap returns the size of the heap's objects in bytes.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// Hundreds of concurrent log-ins do not exhaust memory: as many passwords are hashed at once as
// there are processors, some requests wait, and the others get 503. None of them counts as failed.
// The test measures the memory of the whole process, so it does not run in parallel.
func TestConcurrentLoginsBoundMemory(t *testing.T) {
	testenv.SkipShort(t)
	c := newUser(t, coretest.FullPasswords, "LIMIT_REQUESTS=0", "LIMIT_LOGIN_FAILURES=0", "LIMIT_LOGIN_FAILURES_PER_ADDRESS=0", "LIMIT_LOGIN_FAILURES_PER_ACCOUNT=0", "WORK_TIMEOUT=5m")
	processors := runtime.GOMAXPROCS(0)
	capacity := processors * 33 / 2 // of one network
	clients := max(200, 6*capacity)
	c.HTTP = &fasthttp.HostClient{Addr: coretest.Listen(t, c.Server), MaxConns: clients}

	runtime.GC()
	before := heap()
	ended, peak := make(chan struct{}), make(chan uint64)
	go func() {
		var highest uint64
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				peak <- highest
				return
			case <-tick.C:
				highest = max(highest, heap())
			}
		}
	}()
	responses := make([]response, clients)
	var group sync.WaitGroup
	for i := range responses {
		group.Go(func() { responses[i] = c.logIn(t, knownEmail, rightPassword) })
	}
	group.Wait()
	close(ended)

	statuses := map[int]int{}
	for _, a := range responses {
		switch statuses[a.Status]++; a.Status {
		case 200:
			isToken(t, a)
		case 503:
			a.IsError(t, 503, 9)
			testenv.Equal(t, a.Header.Get("Retry-After"), "1", "Retry-After")
		default:
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}
	testenv.Check(t, statuses[200] >= capacity && statuses[503] != 0,
		"of %d log-ins the statuses are %v; want at least %d times 200, and some 503", clients, statuses, capacity)
	// A hash takes 19 MiB, and garbage stays for a while.
	grown, bound := <-peak-before, uint64(4*processors*19<<20+64<<20)
	testenv.Check(t, grown <= bound, "the heap grew by %d MiB; want at most %d", grown>>20, bound>>20)

	testenv.Equal(t, c.site.failures(t), 0, "log-ins count as failed")
	isToken(t, c.logIn(t, knownEmail, rightPassword))
	c.logIn(t, knownEmail, wrongPassword).IsError(t, 401, 5)
}

// Password guesses of one network leave capacity to log-ins from other networks. The test keeps all
// processors busy, so it runs only with the long ones.
func TestLoginsOfOneNetworkLeaveCapacity(t *testing.T) {
	testenv.SkipShort(t)
	hostile, honest := startTwoNetworks(t, coretest.FullPasswords, "LIMIT_LOGIN_FAILURES=0", "LIMIT_LOGIN_FAILURES_PER_ADDRESS=0", "LIMIT_LOGIN_FAILURES_PER_ACCOUNT=0")
	honest = honest.signUp(t)
	honest.withPassword(t, rightPassword)
	email := fmt.Sprintf("user%d@example.com", honest.site.Users.Load())
	ended := make(chan struct{})
	var guesses sync.WaitGroup
	defer guesses.Wait()
	defer close(ended)
	refused := make(chan struct{}, 1)
	for i := range 8 + 33*runtime.GOMAXPROCS(0)/2 {
		guesses.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
				}
				if a := hostile.logIn(t, fmt.Sprintf("nobody%d@example.com", i), wrongPassword); a.Status == 503 {
					select {
					case refused <- struct{}{}:
					default:
					}
				}
			}
		})
	}
	<-refused // the hostile network has used up its share
	for range 5 {
		began := time.Now()
		a := honest.logIn(t, email, rightPassword)
		a.HasStatus(t, 200)
		t.Logf("a log-in from another network took %s", time.Since(began).Round(time.Millisecond))
	}
}
