package gobench_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
)

// BenchmarkPurge measures how long after its response to a change of skin core posts the purge of
// the player, with two edges that must acknowledge the change first.
func BenchmarkPurge(b *testing.B) {
	posted := make(chan time.Time, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			b.Error(err)
		}
		if bytes.Contains(body, []byte(`"player-1"`)) {
			posted <- time.Now()
		}
	}))
	defer hook.Close()
	files := blobstore.Config{URL: "file://" + b.TempDir()}
	core := stack.NewCore(b, files)
	core.Set("CORE_PURGE_URL", hook.URL)
	core.Set("CORE_PURGE_SECRET", strings.Repeat("s", 32))
	core.Start(b)
	for range 2 {
		edge := stack.NewEdge(b, files, core)
		edge.Start(b)
		edge.AwaitReady(b)
	}
	ann := &apiClient{api: "http://" + core.Address(b, "public")}
	ann.token = ann.call(b, "POST", "/api/auth/register", "application/x-www-form-urlencoded",
		[]byte("email=ann@example.com&password=correct+horse&nickname=Ann&player_name=Ann")).Token
	<-posted
	skins := [2]string{}
	for i, sheet := range []skin.Sheet{skintest.Marker(64, 64), skintest.Noise(1, 64, 64)} {
		skins[i] = fmt.Sprintf("skin=%d", ann.call(b, "POST", "/api/textures", stack.UploadType, stack.SheetForm("bench", skin.Classic, sheet)).TID)
	}

	delays := make([]time.Duration, 0, b.N)
	for i := range b.N {
		ann.call(b, "PUT", "/api/players/1/textures", "application/x-www-form-urlencoded", []byte(skins[i%2]))
		answered := time.Now()
		delays = append(delays, (<-posted).Sub(answered))
	}
	slices.Sort(delays)
	b.ReportMetric(float64(delays[len(delays)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(delays[len(delays)*99/100].Microseconds())/1000, "p99-ms")
}
