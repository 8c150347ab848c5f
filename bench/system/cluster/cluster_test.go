package cluster

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// roundTripFunc responds in this process, so that the test controls the time between requests.
type roundTripFunc func() (status int)

func (f roundTripFunc) RoundTrip(request *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: f(), Body: http.NoBody, Request: request}, nil
}

// A node that reports a lack of redundancy in between is waited for from the beginning.
func TestAwaitRedundantNeedsConsecutiveSuccesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		requests := 0
		c := &Cluster{stores: []string{"minio-1", "minio-2"}, client: &http.Client{Transport: roundTripFunc(func() int {
			if requests++; time.Since(began) == 7*time.Second {
				return http.StatusServiceUnavailable
			}
			return http.StatusOK
		})}}
		c.AwaitRedundant(t, 10*time.Second)
		if took := time.Since(began); took != 17*time.Second {
			t.Errorf("elapsed: %s; want 10 s after the last 503, which was after 7 s", took)
		}
		if requests < 2*10*10 {
			t.Errorf("%d requests; want ten a second to each node", requests)
		}
	})
}
