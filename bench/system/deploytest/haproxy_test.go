package deploytest

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/veneer-skins/veneer/shared/httpserver/httpservertest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// X-Forwarded-For is removed from requests of clients, and kept in those of trusted proxies. The
// address of the connection is appended in both cases.
func TestHaproxyTrustsProxies(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ trusted, want string }{
		{"10.0.0.0/8", "127.0.0.1"},
		{"10.0.0.0/8 127.0.0.1/32", "192.0.2.1,127.0.0.1"},
	} {
		t.Run("trusted="+test.trusted, func(t *testing.T) {
			t.Parallel()
			forwarded := make(chan string, 1)
			api := serve(t, func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/readyz" {
					forwarded <- strings.Join(r.Header.Values("X-Forwarded-For"), ",")
				}
			})
			url := composeHaproxy("VENEER_TRUSTED_PROXIES="+test.trusted).startSite(t, api, api, api)
			testenv.Equal(t, send(t, http.MethodGet, url+"/api/user", nil), http.StatusOK, "a request")
			testenv.Equal(t, <-forwarded, test.want, "X-Forwarded-For")
		})
	}
}

// Concurrent requests for one player are not all sent to one edge: it gets one and a half times its
// share of all open requests, and the other edge the rest.
func TestHaproxyBoundsLoad(t *testing.T) {
	t.Parallel()
	const requests = 16
	arrived, leave := make(chan string, requests), make(chan struct{})
	edge := func(name string) []string {
		return serve(t, func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/readyz" {
				arrived <- name
				<-leave
			}
		})
	}
	first, second := edge("first"), edge("second")
	url := composeHaproxy().startSite(t, first, first, second)

	under := map[string]int{}
	var all sync.WaitGroup
	for range requests {
		all.Go(func() {
			testenv.Equal(t, send(t, http.MethodGet, url+"/avatar/player/steve", nil), http.StatusOK, "a picture")
		})
		under[<-arrived]++ // one after the other, so that each is counted before the next is balanced
	}
	close(leave)
	all.Wait()
	if most, least := max(under["first"], under["second"]), min(under["first"], under["second"]); most != requests*3/4 || least != requests/4 {
		t.Errorf("of %d requests for one player the edges have %v; want 12 and 4", requests, under)
	}
}

// A client may have 256 open requests, over any number of connections, whether it or a trusted
// proxy connects. Other clients, and the proxy itself, are not limited meanwhile.
func TestHaproxyBoundsRequestsOfAClient(t *testing.T) {
	t.Parallel()
	const most = 256
	for _, test := range []struct {
		name, trusted   string
		client, another string // values of X-Forwarded-For
		bounded         bool
	}{
		{"the client connects", "10.0.0.0/8", "2001:db8:0:1::%x", "2001:db8:0:2::1", true},
		{"a proxy connects", "10.0.0.0/8 127.0.0.1/32", "2001:db8:0:1::%x", "2001:db8:0:2::1", true},
		{"behind two proxies", "10.0.0.0/8 127.0.0.1/32", "203.0.113.1,10.0.0.%d", "203.0.113.2", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			arrived, leave := make(chan struct{}, 2*most), make(chan struct{})
			upstream := serve(t, func(_ http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					arrived <- struct{}{}
					<-leave
				}
			})
			url := composeHaproxy("VENEER_TRUSTED_PROXIES="+test.trusted).startSite(t, upstream, upstream, upstream)
			overHTTP2 := new(http.Protocols)
			overHTTP2.SetUnencryptedHTTP2(true)
			client := &http.Client{Transport: &http.Transport{Protocols: overHTTP2}}
			t.Cleanup(client.CloseIdleConnections)
			request := func(method, from string) httpservertest.Response {
				return httpservertest.Call(t, client, method, url+"/api/user", http.Header{"X-Forwarded-For": {from}}, "")
			}
			var all sync.WaitGroup
			for i := range most {
				all.Go(func() {
					testenv.Equal(t, request(http.MethodPost, fmt.Sprintf(test.client, i)).Status, http.StatusOK, "request %d", i)
				})
			}
			for range most {
				<-arrived
			}
			more := request(http.MethodGet, fmt.Sprintf(test.client, 7))
			retryAfter := more.Header.Get("Retry-After")
			if refused := more.Status == http.StatusTooManyRequests && retryAfter == "1"; refused != test.bounded {
				t.Errorf("one request more: %d, Retry-After %q; want it refused: %t", more.Status, retryAfter, test.bounded)
			}
			if strings.Contains(test.trusted, "127.0.0.1") {
				testenv.Equal(t, request(http.MethodGet, test.another).Status, http.StatusOK, "a request of another client")
				testenv.Equal(t, send(t, http.MethodGet, url+"/api/user", nil), http.StatusOK, "a request of the proxy itself")
			}
			close(leave)
			all.Wait()
			after := request(http.MethodGet, fmt.Sprintf(test.client, 7))
			testenv.Equal(t, after.Status, http.StatusOK, "a request after the others")
		})
	}
}
