package bench_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"mime/multipart"
	"slices"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/system"
	"github.com/veneer-skins/veneer/shared/objects"
	"github.com/veneer-skins/veneer/shared/skin/paint"
)

// BenchmarkFreshness measures how long after core has acknowledged a change of
// skin the edge still shows the old one: from the answer to the first request
// that gets the new picture's entity tag, one request after another.
func BenchmarkFreshness(b *testing.B) {
	s := system.Start(b, objects.Config{URL: "file://" + b.TempDir()})
	ann := &account{api: s.API}
	ann.token = ann.call(b, "POST", "/api/auth/register", "application/x-www-form-urlencoded",
		[]byte("email=ann@example.com&password=correct+horse&nickname=Ann&player_name=Ann")).Token
	skins := [2]string{}
	for i, sheet := range [][]byte{upload(b, paint.Marker(64, 64).Pix), upload(b, paint.Noise(1, 64, 64).Pix)} {
		skins[i] = fmt.Sprintf("skin=%d", ann.call(b, "POST", "/api/textures", formType, sheet).TID)
	}
	wear := func(i int) {
		ann.call(b, "PUT", "/api/players/1/textures", "application/x-www-form-urlencoded", []byte(skins[i]))
	}
	var shown string
	tag := func() string {
		request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		defer fasthttp.ReleaseRequest(request)
		defer fasthttp.ReleaseResponse(response)
		request.SetRequestURI(s.Images + "/avatar/player/Ann")
		if err := fasthttp.Do(request, response); err != nil {
			b.Fatal(err)
		}
		return string(response.Header.Peek(fasthttp.HeaderETag))
	}
	// Both pictures are drawn before: it is the news that is timed.
	wear(0)
	for shown = tag(); shown == ""; shown = tag() {
	}

	delays := make([]time.Duration, 0, b.N)
	for i := range b.N {
		wear((i + 1) % 2)
		acknowledged := time.Now()
		for {
			if now := tag(); now != shown {
				shown = now
				break
			}
		}
		delays = append(delays, time.Since(acknowledged))
	}
	slices.Sort(delays)
	b.ReportMetric(float64(delays[len(delays)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(delays[len(delays)*99/100].Microseconds()), "p99-µs")
}

// account is somebody who is signed in.
type account struct{ api, token string }

// call sends a request, which must succeed, and returns what its answer's data
// hold.
func (a *account) call(b *testing.B, method, path, contentType string, body []byte) (data struct {
	Token string `json:"token"`
	TID   int    `json:"tid"`
},
) {
	b.Helper()
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.SetRequestURI(a.api + path)
	request.Header.SetMethod(method)
	request.Header.SetContentType(contentType)
	request.Header.Set(fasthttp.HeaderAuthorization, "Bearer "+a.token)
	request.SetBody(body)
	if err := fasthttp.Do(request, response); err != nil {
		b.Fatal(err)
	}
	answer := struct{ Data any }{&data}
	if err := json.Unmarshal(response.Body(), &answer); err != nil || response.StatusCode() != fasthttp.StatusOK {
		b.Fatalf("%s %s: %d %s, %v", method, path, response.StatusCode(), response.Body(), err)
	}
	return data
}

// formType is the content type of what upload returns.
const formType = "multipart/form-data; boundary=bench"

// upload returns the body of an upload of a 64×64 sheet.
func upload(b *testing.B, pix []byte) []byte {
	b.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	err := form.SetBoundary("bench")
	for _, field := range [][2]string{{"name", "bench"}, {"type", "steve"}} {
		if err == nil {
			err = form.WriteField(field[0], field[1])
		}
	}
	if err == nil {
		file, create := form.CreateFormFile("file", "skin.png")
		if err = create; err == nil {
			err = png.Encode(file, &image.NRGBA{Pix: pix, Stride: 4 * 64, Rect: image.Rect(0, 0, 64, 64)})
		}
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		b.Fatal(err)
	}
	return body.Bytes()
}
