package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/edge/origin/origintest"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/httpserver/httpservertest"
	"github.com/veneer-skins/veneer/shared/metrics/metricstest"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// asProgram is an environment variable that makes the test binary run the program: libvips
// can be started only once in a process.
const asProgram = "VENEER_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// edgeWith returns a command that runs the program with arguments and only these settings.
func edgeWith(ctx context.Context, args string, settings ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, os.Args[0], strings.Fields(args)...)
	command.Env = append([]string{asProgram + "=1"}, settings...)
	return command
}

// minimalSettings returns the required settings and further ones.
func minimalSettings(more ...string) []string {
	return append([]string{
		"EDGE_CORE_URL=http://127.0.0.1:1", "EDGE_CORE_SECRETS=a-secret-of-the-edges", "EDGE_OBJECTS_URL=file:///nowhere",
		"EDGE_LISTEN=127.0.0.1:0", "EDGE_OPS_LISTEN=127.0.0.1:0",
	}, more...)
}

func TestRefusesToStart(t *testing.T) {
	t.Parallel()
	without := func(name string) []string {
		var rest []string
		for _, setting := range minimalSettings() {
			if !strings.HasPrefix(setting, name+"=") {
				rest = append(rest, setting)
			}
		}
		return rest
	}
	for _, test := range []struct {
		args     string
		settings []string
		want     string // prefix of the line on stderr
	}{
		{"serve now", nil, `edge: edge serve takes no argument, but was given "now"`},
		{"help dance", nil, `edge: there is no command "dance"`},
		{"serv", nil, `edge: there is no command "serv"; did you mean "serve"?`},
		{"dance", nil, `edge: there is no command "dance"`},
		{"serve", without("EDGE_CORE_URL"), "edge: EDGE_CORE_URL must be set"},
		{"serve", without("EDGE_CORE_SECRETS"), "edge: EDGE_CORE_SECRETS must be set"},
		{"serve", without("EDGE_OBJECTS_URL"), "edge: EDGE_OBJECTS_URL must be set"},
		{"serve", minimalSettings("EDGE_COLOUR=red"), "edge: EDGE_COLOUR is no setting"},
		{"health", minimalSettings("EDGE_OPS_LISTEN=127.0.0.1:1"), "edge: ask 127.0.0.1:1"},
	} {
		t.Run(test.args+" "+test.want, func(t *testing.T) {
			t.Parallel()
			var stderr bytes.Buffer
			command := edgeWith(t.Context(), test.args, test.settings...)
			command.Stderr = &stderr
			err := command.Run()
			exit, ok := errors.AsType[*exec.ExitError](err)
			testenv.Check(t, ok && exit.ExitCode() == 1, "exit with %v; want exit code 1", err)
			if got := stderr.String(); !strings.HasPrefix(got, test.want) || strings.Count(got, "\n") != 1 {
				t.Errorf("stderr %q; want one line that begins with %q", got, test.want)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	output := testenv.Must(edgeWith(t.Context(), "help").Output())(t)
	for _, want := range []string{
		"serve ", "warm ", "health ", "EDGE_LISTEN  ", "127.0.0.1:8081", "EDGE_OPS_LISTEN", "127.0.0.1:9081", "EDGE_OPS_PPROF",
		"EDGE_CORE_URL ", "EDGE_CORE_SECRETS", "(required)", "EDGE_CORE_CA", "EDGE_CORE_UNKNOWN_KEYS_PER_SECOND", "1000", "EDGE_OBJECTS_URL", "EDGE_OBJECTS_SECRET_KEY", "EDGE_API_UPSTREAM", "EDGE_API_CA", "EDGE_OBJECTS_CA",
		"EDGE_TRUSTED_PROXIES", "EDGE_CACHE_BYTES", "268435456", "EDGE_TEXTURE_CACHE_BYTES", "EDGE_MAPPING_BYTES", "EDGE_NEGATIVE_BYTES", "EDGE_RENDER_WORKERS", "EDGE_RENDER_QUEUE_PER_WORKER",
		"EDGE_RENDER_QUEUE_TIMEOUT", "EDGE_MAX_STALE", "24h", "EDGE_CACHE_TAGS", "EDGE_S_MAXAGE", "EDGE_UNKNOWN_PLAYER_STATUS", "EDGE_DRAIN_WAIT", "EDGE_DRAIN_TIMEOUT", "EDGE_ADDRESS_CONNECTIONS", "EDGE_ADDRESS_REQUESTS", "EDGE_ADDRESS_BURST",
		"EDGE_LOG_LEVEL", "EDGE_LOG_FORMAT", "EDGE_LOG_SAMPLE_RATE", "EDGE_TRACES_URL", "EDGE_TRACES_SAMPLE",
	} {
		testenv.Check(t, bytes.Contains(output, []byte(want)), "the help lacks %q", want)
	}
	if text, err := edgeWith(t.Context(), "version").Output(); err != nil || !strings.HasPrefix(string(text), "edge devel, revision ") {
		t.Errorf("the version is %q, %v", text, err)
	}
	for _, c := range program().Commands {
		text, err := edgeWith(t.Context(), "help "+c.Name).Output()
		if err != nil || !strings.HasPrefix(string(text), "edge "+c.Name) || !strings.Contains(string(text), "\nSettings:\n  EDGE_") {
			t.Errorf("the help of %s is %s, %v", c.Name, text, err)
		}
	}
	for line := range strings.Lines(string(output)) {
		testenv.Check(t, !strings.HasPrefix(line, "  EDGE_") || len(strings.Fields(line)) >= 4,
			"the help has no description of a setting: %s", line)
	}
}

// preparedStore returns an initialised texture directory and its store.
func preparedStore(t *testing.T) (directory string, store *blobstore.Store) {
	t.Helper()
	directory = t.TempDir()
	store = testenv.Must(blobstore.New(blobstore.Config{URL: "file://" + directory, Timeout: 5 * time.Second}))(t)
	testenv.Do(t, store.Init(t.Context()))
	return directory, store
}

// TestServe starts the program, checks its listeners, metrics and log, and stops it.
func TestServe(t *testing.T) {
	t.Parallel()
	core := origintest.Start(t)
	directory, store := preparedStore(t)
	file := origintest.File(t, artwork.Robot(), skin.Classic)
	testenv.Do(t, store.Put(t.Context(), skin.HashOf(file), file))
	worn := &edgeproto.Texture{TID: 1, Hash: skin.HashOf(file), Type: skin.Classic}
	core.Set(map[edgeproto.Key]edgeproto.Mapping{"name:steve": {Player: &edgeproto.Player{PID: 1, Name: "Steve", Skin: worn}}})
	secret := filepath.Join(t.TempDir(), "secret")
	testenv.Do(t, os.WriteFile(secret, []byte(origintest.Secret+"\n"), 0o600))

	core.SetUnavailable(true)
	e := start(t,
		"EDGE_CORE_URL="+core.URL, "EDGE_CORE_SECRETS_FILE="+secret, "EDGE_OBJECTS_URL=file://"+directory,
		"EDGE_LISTEN=127.0.0.1:0", "EDGE_OPS_LISTEN=127.0.0.1:0", "EDGE_RENDER_WORKERS=3")
	public, operators := e.public, e.operators

	health := func() error {
		return edgeWith(t.Context(), "health", minimalSettings("EDGE_OPS_LISTEN="+operators)...).Run()
	}
	err := health()
	testenv.Check(t, err != nil, "it is healthy though it has never reached core")
	testenv.Equal(t, httpservertest.Get(t, "http://"+operators+"/livez").Status, http.StatusOK, "/livez")
	core.SetUnavailable(false)
	testenv.Eventually(t, "it becomes healthy", func() bool { return health() == nil })
	avatar := httpservertest.Get(t, "http://"+public+"/avatar/player/steve?png")
	picture := avatar.Body
	if avatar.Status != http.StatusOK || !strings.HasPrefix(picture, "\x89PNG") {
		t.Fatalf("a picture: %d, %d bytes", avatar.Status, len(picture))
	}
	metrics := httpservertest.Get(t, "http://"+operators+"/metrics").Body
	metricstest.Check(t, metrics)
	for _, want := range []string{
		"veneer_edge_stream_live 1", "veneer_edge_mappings 1", "veneer_edge_picture_cache_added_total 1", "veneer_edge_missing_objects_total 0",
		`veneer_edge_lookups_total{result="miss"} 1`, "veneer_edge_renders_running 0",
		`veneer_requests_total{format="png",listener="public",outcome="miss",route="/avatar/player/{name}",status="2xx"} 1`,
		`veneer_request_seconds_count{format="png",listener="public",outcome="miss",route="/avatar/player/{name}"} 1`, `veneer_requests_in_flight{listener="public"} 0`,
	} {
		testenv.Check(t, strings.Contains(metrics, want+"\n"), "the metrics lack %q", want)
	}
	info := regexp.MustCompile(`(?m)^veneer_edge_renderer_info\{revision="[0-9a-f]+"\} 1$`)
	testenv.Check(t, info.MatchString(metrics), "the metrics lack the renderer")
	files := metricstest.Value(t, metrics, "process_open_fds")
	testenv.Check(t, files > 0, "process_open_fds is %v", files)
	if peak := metricstest.Value(t, metrics, "veneer_edge_libvips_peak_bytes"); peak <= 0 { // of samples at least
		t.Errorf("libvips used %v bytes", peak)
	}
	inStages := 0.0
	for _, stage := range []string{"fetch", "decode", "queue", "draw", "encode"} {
		of := fmt.Sprintf(`{stage=%q,view="flat"}`, stage)
		testenv.Equal(t, metricstest.Value(t, metrics, "veneer_edge_render_seconds_count"+of), 1,
			"how often the stage %s is counted", stage)
		inStages += metricstest.Value(t, metrics, "veneer_edge_render_seconds_sum"+of)
	}
	in := metricstest.Value(t, metrics, `veneer_request_seconds_sum{format="png",listener="public",outcome="miss",route="/avatar/player/{name}"}`)
	testenv.Check(t, inStages > 0 && inStages <= in, "the stages took %v s of a request of %v s", inStages, in)
	checkGOMAXPROCS(t, "http://"+public, "http://"+operators, 3)

	e.stop()
	testenv.Equal(t, e.last, "stopped", "the last log message")
}

// checkGOMAXPROCS checks that an edge raises GOMAXPROCS by the number of its workers while it
// renders, and restores it some time after that.
func checkGOMAXPROCS(t *testing.T, public, operators string, workers int) {
	t.Helper()
	await := func(want int, draw func()) {
		t.Helper()
		testenv.Eventually(t, fmt.Sprintf("GOMAXPROCS is %d", want), func() bool {
			draw()
			metrics := httpservertest.Get(t, operators+"/metrics").Body
			return metricstest.Value(t, metrics, "go_sched_gomaxprocs_threads") == float64(want)
		})
	}
	usual, size := runtime.GOMAXPROCS(0), 0
	await(usual+workers, func() {
		size += 8 // another picture
		httpservertest.Get(t, fmt.Sprintf("%s/avatar/player/steve?size=%d&3d", public, size))
	})
	await(usual, func() {})
}

func TestMemoryIsLimited(t *testing.T) {
	t.Parallel()
	directory, _ := preparedStore(t)
	for _, test := range []struct{ setting, want string }{
		{"EDGE_RENDER_WORKERS=1", `"limit_bytes":210239488`},
		{"EDGE_RENDER_WORKERS=3", `"limit_bytes":331874304`}, // 2·(50 + 2·4) MiB more
		{"GOMEMLIMIT=600MiB", `"limit_bytes":629145600`},
	} {
		log := logUntil(t, `"msg":"memory"`, minimalSettings("EDGE_CACHE_BYTES=1048576", "EDGE_TEXTURE_CACHE_BYTES=1048576", "EDGE_MAPPING_BYTES=33554432", "EDGE_NEGATIVE_BYTES=8388608", "EDGE_OBJECTS_URL=file://"+directory, test.setting)...)
		testenv.Contains(t, log[len(log)-1], test.want, "with %s the log", test.setting)
	}
}

// Only a number that the runtime takes fixes GOMAXPROCS.
func TestHasGOMAXPROCS(t *testing.T) {
	t.Parallel()
	for variable, want := range map[string]bool{
		"GOMAXPROCS=3": true, "GOMAXPROCS=0": false, "GOMAXPROCS=": false, "GOMAXPROCS=all": false, "EDGE_GOMAXPROCS=3": false,
	} {
		testenv.Equal(t, hasGOMAXPROCS([]string{"PATH=/bin", variable}), want, "%s fixes GOMAXPROCS", variable)
	}
}
