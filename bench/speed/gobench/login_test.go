package gobench_test

import (
	"slices"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/blobstore"
)

// BenchmarkLogins measures the duration of a rejected log-in with an e-mail address that has an
// account, and with one that has none, alternately: the ratio must not reveal whether there is an
// account. The limits of log-ins are raised beyond what is tried here but not switched off, so that
// failures are counted as usual.
func BenchmarkLogins(b *testing.B) {
	const tries = 200
	core := stack.NewCore(b, blobstore.Config{URL: "file://" + b.TempDir()})
	for _, limit := range []string{"", "_PER_ADDRESS", "_PER_ACCOUNT"} {
		core.Set("CORE_LIMIT_LOGIN_FAILURES"+limit, "1000000")
	}
	core.Set("CORE_LIMIT_REQUESTS", "0")
	core.Start(b)
	client := &apiClient{api: "http://" + core.Address(b, "public")}
	client.call(b, "POST", "/api/auth/register", "application/x-www-form-urlencoded",
		[]byte("email=known@example.com&password=correct+horse&nickname=Known"))

	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.SetRequestURI(client.api + "/api/auth/login")
	request.Header.SetMethod(fasthttp.MethodPost)
	request.Header.SetContentType("application/x-www-form-urlencoded")
	took := map[string][]time.Duration{}
	b.ResetTimer()
	for i := range tries {
		pair := []string{"known@example.com", "unknown@example.com"}
		if i%2 == 1 {
			slices.Reverse(pair)
		}
		for _, email := range pair {
			request.SetBodyString("email=" + email + "&password=wrong+horse")
			sent := time.Now()
			if err := fasthttp.Do(request, response); err != nil {
				b.Fatal(err)
			}
			took[email] = append(took[email], time.Since(sent))
			if response.StatusCode() != fasthttp.StatusUnauthorized {
				b.Fatalf("log-in as %s: %d %s", email, response.StatusCode(), response.Body())
			}
		}
	}
	medianOf := func(email string) time.Duration { return slices.Sorted(slices.Values(took[email]))[tries/2] }
	known, unknown := medianOf("known@example.com"), medianOf("unknown@example.com")
	b.Logf("medians of %d: e-mail with an account %v, without %v", tries, known, unknown)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(known.Microseconds()), "known-µs")
	b.ReportMetric(float64(unknown.Microseconds()), "unknown-µs")
	b.ReportMetric(float64(known)/float64(unknown), "ratio")
}
