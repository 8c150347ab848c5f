package cluster

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// answering answers requests in this process, so that the time between them is a test's.
type answering func() (status int)

func (a answering) RoundTrip(request *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a(), Body: http.NoBody, Request: request}, nil
}

// A node that says in between that it cannot be done without is waited for from the
// beginning.
func TestAwaitSpareWaitsForAnswersInARow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		asked := 0
		c := &Cluster{stores: []string{"minio-1", "minio-2"}, ask: &http.Client{Transport: answering(func() int {
			if asked++; time.Since(began) == 7*time.Second {
				return http.StatusServiceUnavailable
			}
			return http.StatusOK
		})}}
		c.AwaitSpare(t, 10*time.Second)
		if took := time.Since(began); took != 17*time.Second {
			t.Errorf("it took %s; want 10 s after the last 503, which was after 7 s", took)
		}
		if asked < 2*10*10 {
			t.Errorf("%d questions were asked; want ten a second of each node", asked)
		}
	})
}
