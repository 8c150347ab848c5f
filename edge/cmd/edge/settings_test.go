//go:build !race

package main

import (
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/edge/origin/origintest"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/config/configtest"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/tlsreload/tlsreloadtest"
)

// withBucket are settings that other settings require.
var withBucket = []string{
	"EDGE_OBJECTS_URL=s3://veneer", "EDGE_OBJECTS_ENDPOINT=http://127.0.0.1:1", "EDGE_OBJECTS_ACCESS_KEY=veneer", "EDGE_OBJECTS_SECRET_KEY=hunter2",
}

// wrongSettings has a wrong value for every setting.
var wrongSettings = map[string]configtest.InvalidValue{
	"EDGE_LISTEN":                       {Value: "nowhere:99999"},
	"EDGE_TLS_CERT":                     {Value: "/nowhere/cert.pem", Environ: []string{"EDGE_TLS_KEY=/nowhere/key.pem"}},
	"EDGE_TLS_KEY":                      {Value: "", Environ: []string{"EDGE_TLS_CERT=/nowhere/cert.pem"}},
	"EDGE_OPS_LISTEN":                   {Value: "9081"},
	"EDGE_OPS_PPROF":                    {Value: "all"},
	"EDGE_CORE_URL":                     {Value: "core:9090"},
	"EDGE_CORE_SECRETS":                 {Value: "a secret with spaces", IsSecret: true},
	"EDGE_CORE_CA":                      {Value: "/nowhere/ca.pem"},
	"EDGE_CORE_QUEUE":                   {Value: "0"},
	"EDGE_CORE_UNKNOWN_KEYS_PER_SECOND": {Value: "-1"},
	"EDGE_CORE_TIMEOUT":                 {Value: "soon"},
	"EDGE_OBJECTS_URL":                  {Value: "ftp://textures"},
	"EDGE_OBJECTS_ENDPOINT":             {Value: "http://s3.example.org/veneer", Environ: withBucket},
	"EDGE_OBJECTS_ACCESS_KEY":           {Value: "", Environ: withBucket},
	"EDGE_OBJECTS_SECRET_KEY":           {Value: "", Environ: withBucket},
	"EDGE_OBJECTS_CA":                   {Value: "/nowhere/ca.pem", Environ: withBucket},
	"EDGE_OBJECTS_TIMEOUT":              {Value: "-5s"},
	"EDGE_CACHE_TAGS":                   {Value: "all"},
	"EDGE_S_MAXAGE":                     {Value: "1.5s"},
	"EDGE_UNKNOWN_PLAYER_STATUS":        {Value: "200"},
	"EDGE_EXAMPLE_PLAYER":               {Value: "a/b"},
	"EDGE_API_UPSTREAM":                 {Value: "core:8080"},
	"EDGE_YGGDRASIL_URL":                {Value: "skins.example.org"},
	"EDGE_API_CA":                       {Value: "/nowhere/ca.pem", Environ: []string{"EDGE_API_UPSTREAM=https://core.example.org"}},
	"EDGE_FAST_PATH":                    {Value: "on"},
	"EDGE_CACHE_BYTES":                  {Value: "256MiB"},
	"EDGE_CACHE_DIR":                    {Value: "/nowhere"},
	"EDGE_CACHE_DIR_BYTES":              {Value: "128MiB"},
	"EDGE_TEXTURE_CACHE_BYTES":          {Value: "1000"},
	"EDGE_RENDER_WORKERS":               {Value: "1025"},
	"EDGE_RENDER_QUEUE_PER_WORKER":      {Value: "-1"},
	"EDGE_RENDER_QUEUE_TIMEOUT":         {Value: "0s"},
	"EDGE_COMPAT_ROUTES":                {Value: "some"},
	"EDGE_MAPPING_BYTES":                {Value: "1"},
	"EDGE_NEGATIVE_BYTES":               {Value: "2"},
	"EDGE_MAX_STALE":                    {Value: "-1s"},
	"EDGE_READ_TIMEOUT":                 {Value: "0s"},
	"EDGE_UPLOAD_TIMEOUT":               {Value: "60"},
	"EDGE_WRITE_TIMEOUT":                {Value: "-1s"},
	"EDGE_IDLE_TIMEOUT":                 {Value: "1 minute"},
	"EDGE_WORK_TIMEOUT":                 {Value: "0s"},
	"EDGE_HEADER_BYTES":                 {Value: "16KiB"},
	"EDGE_MAX_CONNECTIONS":              {Value: "0"},
	"EDGE_BODIES_BYTES":                 {Value: "1114111"},
	"EDGE_ADDRESS_CONNECTIONS":          {Value: "-1"},
	"EDGE_ADDRESS_REQUESTS":             {Value: "1000001"},
	"EDGE_ADDRESS_BURST":                {Value: "0", Environ: []string{"EDGE_ADDRESS_REQUESTS=100"}},
	"EDGE_TRUSTED_PROXIES":              {Value: "10.0.0.0/8,proxy"},
	"EDGE_DRAIN_WAIT":                   {Value: "-1s"},
	"EDGE_DRAIN_TIMEOUT":                {Value: "20"},
	"EDGE_LOG_LEVEL":                    {Value: "loud"},
	"EDGE_LOG_FORMAT":                   {Value: "xml"},
	"EDGE_LOG_SAMPLE_RATE":              {Value: "NaN"},
	"EDGE_TRACES_URL":                   {Value: "collector:4318"},
	"EDGE_TRACES_SAMPLE":                {Value: "2"},
}

// noWrongSettings are settings that accept every value.
var noWrongSettings = map[string]string{
	"EDGE_OBJECTS_REGION": "only the store can check it",
}

// A wrong setting is reported before the edge does anything.
func TestWrongSettings(t *testing.T) {
	t.Parallel()
	configtest.Run[settings](t, prefix, wrongSettings, noWrongSettings, func(t *testing.T, changes []string) string {
		t.Helper()
		out, stderrLine := runFailing(t, minimalSettings(changes...)...)
		testenv.Equal(t, out, "", "it starts, and logs")
		return stderrLine
	})
}

// A shell command is rejected as the value of a secret.
func TestShellCommandIsNoSecret(t *testing.T) {
	t.Parallel()
	const want = "EDGE_CORE_SECRETS is a shell command and not its output; for example "
	if _, stderrLine := runFailing(t, minimalSettings("EDGE_CORE_SECRETS=$(cat edge-secret-of-core)")...); !strings.HasPrefix(stderrLine, want) {
		t.Errorf("stderr %q; want a line that begins with %q", stderrLine, want)
	}
}

// runFailing runs an edge that must fail with one line on stderr. It returns stdout and that
// line.
func runFailing(t *testing.T, environ ...string) (out, stderrLine string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := edgeWith(t.Context(), "serve", environ...)
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	testenv.Check(t, err != nil && command.ProcessState.ExitCode() == 1, "exit with %v; want exit code 1", err)
	testenv.Check(t, strings.Count(stderr.String(), "\n") == 1 && strings.HasPrefix(stderr.String(), "edge: "),
		"stderr %q; want one line", stderr.String())
	return stdout.String(), strings.TrimPrefix(stderr.String(), "edge: ")
}

// All example values together are valid settings.
func TestExamplesAreRight(t *testing.T) {
	t.Parallel()
	testenv.Is(t, testenv.ErrOf(config.Read[settings](prefix, configtest.Examples[settings](t, prefix))), nil,
		"the examples")
}

// An error that only another setting can correct stops an edge before it listens.
func TestWrongSettingStopsStart(t *testing.T) {
	t.Parallel()
	core := origintest.Start(t)
	directory, _ := preparedStore(t)
	place := blobstoretest.Bucket(t)
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	public := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"code":3,"message":"no such thing"}`)
	}))
	t.Cleanup(public.Close)
	right := []string{"EDGE_CORE_URL=" + core.URL, "EDGE_CORE_SECRETS=" + origintest.Secret, "EDGE_OBJECTS_URL=file://" + directory}
	bucket := []string{"EDGE_OBJECTS_URL=" + place.Config.URL, "EDGE_OBJECTS_ENDPOINT=" + place.Config.Endpoint}
	aside := "EDGE_API_UPSTREAM=" + strings.Replace(core.URL, "http", "https", 1)
	for _, test := range []struct {
		begin, more string
		changes     []string
	}{
		{`EDGE_OBJECTS_URL is "file:///nowhere", where no texture store was prepared; run core migrate`, "not mounted", []string{"EDGE_OBJECTS_URL=file:///nowhere"}},
		{`EDGE_OBJECTS_URL is "file:///dev/null", a directory that this user cannot use: `, "; for example ", []string{"EDGE_OBJECTS_URL=file:///dev/null"}},
		{"EDGE_OBJECTS_ACCESS_KEY is none that the store", "; for example ", append([]string{"EDGE_OBJECTS_ACCESS_KEY=nobody", "EDGE_OBJECTS_SECRET_KEY=hunter2hunter2"}, bucket...)},
		{"EDGE_OBJECTS_SECRET_KEY is not the one of the access key", "; for example ", append([]string{"EDGE_OBJECTS_ACCESS_KEY=" + place.Config.AccessKey, "EDGE_OBJECTS_SECRET_KEY=hunter2hunter2"}, bucket...)},
		{"EDGE_CORE_SECRETS begins with a secret that core at ", "CORE_EDGE_SECRETS", []string{"EDGE_CORE_SECRETS=another-secret-hunter2"}},
		{`EDGE_CORE_URL is "` + other.URL + `", which is another server (it answers 404 Not Found), but must be core's listener for edges`, "CORE_EDGES_LISTEN", []string{"EDGE_CORE_URL=" + other.URL}},
		{`EDGE_CORE_URL is "` + strings.Replace(core.URL, "http", "https", 1) + `", but the listener there has no certificate`, "http://", []string{"EDGE_CORE_URL=" + strings.Replace(core.URL, "http", "https", 1)}},
		{`EDGE_API_UPSTREAM is "` + strings.Replace(core.URL, "http", "https", 1) + `", but the listener there has no certificate`, "http://", []string{aside}},
		{`EDGE_CORE_URL is "` + public.URL + `", which is core's public listener, but must be core's listener for edges: the address that CORE_EDGES_LISTEN names there, whose port is 9090 unless it is set; for example `, "", []string{"EDGE_CORE_URL=" + public.URL}},
	} {
		t.Run(test.begin, func(t *testing.T) {
			t.Parallel()
			out, stderrLine := runFailing(t, minimalSettings(append(right, test.changes...)...)...)
			if !strings.HasPrefix(stderrLine, test.begin) || !strings.Contains(stderrLine, test.more) || strings.Contains(stderrLine, "hunter2") {
				t.Errorf("stderr %s; want a line that begins with %q and contains %q", stderrLine, test.begin, test.more)
			}
			testenv.Check(t, !strings.Contains(out, `"msg":"listening"`), "it listens: %s", out)
		})
	}
}

// Dependencies that may become available later are logged, and the edge listens.
func TestStartsWithoutDependencies(t *testing.T) {
	t.Parallel()
	core := origintest.Start(t)
	place := blobstoretest.Bucket(t)
	right := []string{
		"EDGE_CORE_URL=" + core.URL, "EDGE_CORE_SECRETS=" + origintest.Secret, "EDGE_OBJECTS_URL=" + place.Config.URL, "EDGE_OBJECTS_ENDPOINT=" + place.Config.Endpoint,
		"EDGE_OBJECTS_ACCESS_KEY=" + place.Config.AccessKey, "EDGE_OBJECTS_SECRET_KEY=" + place.Config.SecretKey,
	}
	certified := listenTLS(t)
	for name, test := range map[string]struct{ want, example, change string }{
		"objects":       {"there is no such bucket; run core migrate", "; for example EDGE_OBJECTS_URL=", ""},
		"core":          {`EDGE_CORE_URL is \"http://127.0.0.1:1\", where core does not answer; start core, or correct the URL: `, "; for example EDGE_CORE_URL=http", "EDGE_CORE_URL=http://127.0.0.1:1"},
		"api":           {`EDGE_API_UPSTREAM is \"http://127.0.0.1:1\", where core does not answer; start core, or correct the URL: `, "; for example EDGE_API_UPSTREAM=http", "EDGE_API_UPSTREAM=http://127.0.0.1:1"},
		"core over TLS": {"; start core, or correct the URL; if that listener has a certificate, the URL begins with https://: ", "; for example EDGE_CORE_URL=http", "EDGE_CORE_URL=http://" + certified},
		"api over TLS":  {"; start core, or correct the URL; if that listener has a certificate, the URL begins with https://: ", "; for example EDGE_API_UPSTREAM=http", "EDGE_API_UPSTREAM=http://" + certified},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dependency, _, _ := strings.Cut(name, " ")
			log := logUntil(t, `"msg":"listening"`, minimalSettings(append(right, test.change)...)...)
			logged, listens := "", strings.Contains(log[len(log)-1], `"msg":"listening"`)
			for _, line := range log {
				if strings.Contains(line, `"msg":"dependency is not available","dependency":"`+dependency+`"`) {
					logged = line
				}
			}
			testenv.Check(t, listens && strings.Contains(logged, test.want) && strings.Contains(logged, test.example),
				"it listens: %t, and logs %s; want %q and %q", listens, logged, test.want, test.example)
		})
	}
}

// listenTLS returns the address of a TLS listener. Like core, it closes connections that do
// not start TLS.
func listenTLS(t *testing.T) string {
	t.Helper()
	chain, key := tlsreloadtest.NewAuthority(t).Issue(t)
	pair := testenv.Must(tls.LoadX509KeyPair(chain, key))(t)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	testenv.Do(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = fasthttp.Serve(listener, func(*fasthttp.RequestCtx) {}) // ends with the listener
	}()
	t.Cleanup(func() { _ = listener.Close(); <-served })
	return listener.Addr().String()
}
