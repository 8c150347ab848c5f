package deploytest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// X-Forwarded-For is removed from requests of clients, and kept in those of trusted proxies. The
// address of the connection is appended in both cases.
func TestHaproxyTrustsProxies(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ trusted, want string }{
		{"", "127.0.0.1"},
		{"10.0.0.0/8", "127.0.0.1"},
		{"10.0.0.0/8 127.0.0.1/32", "192.0.2.1,127.0.0.1"},
	} {
		t.Run("trusted="+test.trusted, func(t *testing.T) {
			t.Parallel()
			forwarded := make(chan string, 1)
			api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/readyz" {
					forwarded <- strings.Join(r.Header.Values("X-Forwarded-For"), ",")
				}
			}))
			t.Cleanup(api.Close)
			b := balancer{program: "haproxy", file: "deploy/compose/haproxy.cfg", write: haproxy}
			if test.trusted != "" {
				b.environ = []string{"VENEER_TRUSTED_PROXIES=" + test.trusted}
			}
			upstream := api.Listener.Addr().String()
			url := b.start(t, []server{{"core", "8080", "9080", upstream, upstream}, {"edge-1", "8081", "9081", upstream, upstream}, {"edge-2", "8081", "9081", upstream, upstream}})
			if status := send(t, http.MethodGet, url+"/api/user", http.Header{"X-Forwarded-For": {"192.0.2.1"}}); status != http.StatusOK {
				t.Fatalf("a request: %d", status)
			}
			if got := <-forwarded; got != test.want {
				t.Errorf("X-Forwarded-For: %q; want %q", got, test.want)
			}
		})
	}
}

// Concurrent requests for one player are not all sent to one edge: it gets one and a half times its
// share of all open requests, and the other edge the rest.
func TestHaproxyBoundsLoad(t *testing.T) {
	t.Parallel()
	const requests = 16
	arrived, leave := make(chan string, requests), make(chan struct{})
	edge := func(name string) string {
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/readyz" {
				arrived <- name
				<-leave
			}
		}))
		t.Cleanup(server.Close)
		return server.Listener.Addr().String()
	}
	first, second := edge("first"), edge("second")
	b := balancer{program: "haproxy", file: "deploy/compose/haproxy.cfg", write: haproxy}
	url := b.start(t, []server{{"core", "8080", "9080", first, first}, {"edge-1", "8081", "9081", first, first}, {"edge-2", "8081", "9081", second, second}})

	under := map[string]int{}
	var all sync.WaitGroup
	for range requests {
		all.Go(func() {
			if status := send(t, http.MethodGet, url+"/avatar/player/steve", nil); status != http.StatusOK {
				t.Errorf("a picture: %d", status)
			}
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
			upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					arrived <- struct{}{}
					<-leave
				}
			}))
			t.Cleanup(upstream.Close)
			b, address := balancer{program: "haproxy", file: "deploy/compose/haproxy.cfg", write: haproxy}, upstream.Listener.Addr().String()
			b.environ = []string{"VENEER_TRUSTED_PROXIES=" + test.trusted}
			url := b.start(t, []server{{"core", "8080", "9080", address, address}, {"edge-1", "8081", "9081", address, address}, {"edge-2", "8081", "9081", address, address}})
			overHTTP2 := new(http.Protocols)
			overHTTP2.SetUnencryptedHTTP2(true)
			client := &http.Client{Transport: &http.Transport{Protocols: overHTTP2}}
			t.Cleanup(client.CloseIdleConnections)
			request := func(method, from string) (status int, retryAfter string) {
				request, err := http.NewRequestWithContext(t.Context(), method, url+"/api/user", nil)
				if err != nil {
					t.Error(err)
					return 0, ""
				}
				request.Header.Set("X-Forwarded-For", from)
				response, err := client.Do(request)
				if err != nil {
					t.Error(err)
					return 0, ""
				}
				_ = response.Body.Close()
				return response.StatusCode, response.Header.Get("Retry-After")
			}

			var all sync.WaitGroup
			for i := range most {
				all.Go(func() {
					if status, _ := request(http.MethodPost, fmt.Sprintf(test.client, i)); status != http.StatusOK {
						t.Errorf("request %d: %d", i, status)
					}
				})
			}
			for range most {
				<-arrived
			}
			status, retryAfter := request(http.MethodGet, fmt.Sprintf(test.client, 7))
			if refused := status == http.StatusTooManyRequests && retryAfter == "1"; refused != test.bounded {
				t.Errorf("one request more: %d, Retry-After %q; want it refused: %t", status, retryAfter, test.bounded)
			}
			if strings.Contains(test.trusted, "127.0.0.1") {
				if status, _ := request(http.MethodGet, test.another); status != http.StatusOK {
					t.Errorf("a request of another client: %d", status)
				}
				if status := send(t, http.MethodGet, url+"/api/user", nil); status != http.StatusOK {
					t.Errorf("a request of the proxy itself: %d", status)
				}
			}
			close(leave)
			all.Wait()
			if status, _ := request(http.MethodGet, fmt.Sprintf(test.client, 7)); status != http.StatusOK {
				t.Errorf("a request after the others: %d", status)
			}
		})
	}
}
