package config_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/logging"
	"github.com/veneer-skins/veneer/shared/testenv"
)

type testConfig struct {
	Listen   string         `env:"LISTEN" envDefault:"127.0.0.1:1" help:"where"`
	Secret   string         `env:"SECRET,required,notEmpty" example:"hush" help:"what"`
	Timeout  time.Duration  `env:"TIMEOUT" envDefault:"5s" help:"how long"`
	User     string         `env:"USER" example:"ann" needs:"PASSWORD" help:"user"`
	Password string         `env:"PASSWORD" example:"hunter2" needs:"USER" help:"how to prove it"`
	Networks []netip.Prefix `env:"NETWORKS" example:"10.0.0.0/8" help:"from where"`
	Small    int32          `env:"SMALL" envDefault:"1" max:"9" help:"how few"`
	Share    float64        `env:"SHARE" envDefault:"0.5" min:"0" max:"1" help:"how much"`
	Wait     time.Duration  `env:"WAIT" envDefault:"1s" above:"0s" help:"how long before"`
	Keep     time.Duration  `env:"KEEP" envDefault:"0s" min:"0s" help:"how long after"`
	Format   string         `env:"FORMAT" envDefault:"json" oneof:"json,text,none" help:"in which form"`
	Status   int            `env:"STATUS" envDefault:"404" oneof:"404,204" help:"with what"`
	On       bool           `env:"ON" envDefault:"false" help:"whether"`
	Key      string         `env:"KEY" random:"true" example:"$(make key)" help:"what to sign with"`
	Keys     invalidKeys    `env:"KEYS" example:"a,b" help:"which"`
	Log      logging.Config `envPrefix:"LOG_"`
	Other    struct {
		Timeout time.Duration `env:"TIMEOUT" envDefault:"6s" min:"1ms" help:"how long"`
	} `envPrefix:"OTHER_"`
}

// invalidKeys never parses.
type invalidKeys string

func (invalidKeys) UnmarshalText([]byte) error { return errors.New("must be other keys") }

func TestRead(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	testenv.Do(t, os.WriteFile(file, []byte("from a file\n"), 0o600))

	got, err := config.Read[testConfig]("X_", []string{"X_SECRET_FILE=" + file, "X_TIMEOUT=2s", "X_LOG_LEVEL=warn", "OTHER=1"})
	testenv.Do(t, err)
	want := testConfig{
		Listen: "127.0.0.1:1", Secret: "from a file", Timeout: 2 * time.Second,
		Small: 1, Share: 0.5, Wait: time.Second, Format: "json", Status: 404, Log: logging.Config{Level: slog.LevelWarn, Format: "json", SampleRate: 0.01},
	}
	want.Other.Timeout = 6 * time.Second
	diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{}))
	testenv.Check(t, diff == "", "settings (-want +got):\n%s", diff)
}

func TestReadNamesInvalidSetting(t *testing.T) {
	t.Parallel()
	f := func(want string, environ ...string) {
		t.Helper()
		_, err := config.Read[testConfig]("X_", environ)
		if err == nil {
			t.Fatalf("%q is accepted", environ)
		}
		testenv.Check(t, strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "\n"),
			"%q: %v; want one line with %q", environ, err, want)
	}

	f("X_SECRET must be set")
	f("X_SECRET must not be empty", "X_SECRET=")
	f(`X_TIMEOUT is "soon", but must be a time with its unit, as in 30s, 5m or 24h`, "X_SECRET=s", "X_TIMEOUT=soon")
	f(`X_OTHER_TIMEOUT is "5", but must be a time`, "X_SECRET=s", "X_TIMEOUT=5s", "X_OTHER_TIMEOUT=5")
	f(`X_LOG_LEVEL is "loud", but must be debug, info, warn or error`, "X_SECRET=s", "X_LOG_LEVEL=loud")
	f(`X_LOG_SAMPLE_RATE is "all", but must be a number`, "X_SECRET=s", "X_LOG_SAMPLE_RATE=all")
	f(`X_NETWORKS is "10.0.0.1", but must be networks as in 10.0.0.0/8`, "X_SECRET=s", "X_NETWORKS=10.0.0.1")
	f(`X_SMALL is "1e3", but must be a whole number`, "X_SECRET=s", "X_SMALL=1e3")
	f(`X_SMALL is "3000000000", but must be a whole number up to 2147483647`, "X_SECRET=s", "X_SMALL=3000000000")
	f(`X_ON is "maybe", but must be true or false`, "X_SECRET=s", "X_ON=maybe")
	f("X_KEY is a shell command and not its output", "X_SECRET=s", "X_KEY=key1:$(make key)")
	f("X_KEYS must be other keys", "X_SECRET=s", "X_KEYS=a")
	f("X_SECRET_FILE names a file that cannot be read", "X_SECRET_FILE=/nowhere/secret")
	f("X_SECRET and X_SECRET_FILE are both set", "X_SECRET=s", "X_SECRET_FILE=/nowhere/secret")
	f("X_PASSWORD must be set too, since X_USER is", "X_SECRET=s", "X_USER=ann")
	f("X_USER must be set too, since X_PASSWORD is", "X_SECRET=s", "X_PASSWORD=hunter2", "X_USER=")
	f("X_SMALL is 10, but must be at most 9", "X_SECRET=s", "X_SMALL=10")
	f("X_SHARE is -0.01, but must be 0 to 1", "X_SECRET=s", "X_SHARE=-0.01")
	f("X_SHARE is 1.01, but must be 0 to 1", "X_SECRET=s", "X_SHARE=1.01")
	f("X_SHARE is NaN, but must be 0 to 1", "X_SECRET=s", "X_SHARE=NaN")
	f("X_WAIT is 0s, but must be more than 0s", "X_SECRET=s", "X_WAIT=0s")
	f("X_KEEP is -1ns, but must be 0s or more", "X_SECRET=s", "X_KEEP=-1ns")
	f("X_OTHER_TIMEOUT is 999µs, but must be at least 1ms", "X_SECRET=s", "X_OTHER_TIMEOUT=999us")
	f(`X_FORMAT is "xml", but must be json, text or none`, "X_SECRET=s", "X_FORMAT=xml")
	f("X_STATUS is 200, but must be 404 or 204", "X_SECRET=s", "X_STATUS=200")
}

func TestReadAcceptsBounds(t *testing.T) {
	t.Parallel()
	for _, change := range []string{
		"X_SMALL=9", "X_SHARE=0", "X_SHARE=1", "X_WAIT=1ns", "X_KEEP=0s", "X_OTHER_TIMEOUT=1ms", "X_FORMAT=none", "X_STATUS=204",
	} {
		testenv.Is(t, testenv.ErrOf(config.Read[testConfig]("X_", []string{"X_SECRET=s", change})), nil, "%s", change)
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	f := func(err error, want string) {
		t.Helper()
		got := config.Explain[testConfig]("X_", err)
		testenv.Check(t, got.Error() == want && errors.Is(got, err), "%q; want %q", got, want)
	}
	f(config.In("X_", config.Errorf("TIMEOUT", "is %s", "-1s")), "X_TIMEOUT is -1s; for example X_TIMEOUT=5s")
	f(fmt.Errorf("start: %w", config.Errorf("X_SECRET", "is short")), "start: X_SECRET is short; for example X_SECRET=hush")
	f(config.Errorf("X_SECRET_FILE", "names no file"), "X_SECRET_FILE names no file; for example X_SECRET_FILE=/etc/veneer/secret")
	f(&config.Error{Setting: "X_SMALL", Cause: errors.New("is large"), Example: "2"}, "X_SMALL is large; for example X_SMALL=2")
	f(config.Final(config.Errorf("X_NONE", "is no setting")), "X_NONE is no setting")
	f(errors.New("X_SECRET is in a text"), "X_SECRET is in a text")
	testenv.Is(t, config.Explain[testConfig]("X_", config.In("X_", nil)), nil, "what explains no error")

	// A setting may itself be the path of a file.
	type withFile struct {
		Path string `env:"PEM_FILE" example:"/etc/x/key.pem"`
	}
	got := config.Explain[withFile]("X_", config.Errorf("X_PEM_FILE", "cannot be read"))
	testenv.Equal(t, got.Error(), "X_PEM_FILE cannot be read; for example X_PEM_FILE=/etc/x/key.pem", "the error")
}

func TestQuoteRedacted(t *testing.T) {
	t.Parallel()
	f := func(value, want string) {
		t.Helper()
		testenv.Equal(t, config.QuoteRedacted(value), want, "%s", value)
	}
	f("core", `"core"`)
	f("http://core:9090", `"http://core:9090"`)
	f("http://ann:hunter2@core", `"http://…@core"`)
	f("ann:hunter2@core", `"…@core"`)
	f("http://ann:hunter@2@core", `"http://…@core"`)
}

func TestParseURL(t *testing.T) {
	t.Parallel()
	for _, right := range []string{"http://core:9090", "https://core.example.org", "http://[::1]:1/path?query", "http://127.0.0.1:65535"} {
		parsed, ok := config.ParseURL(right)
		testenv.Check(t, ok && parsed.String() == right, "%s: %v, %t", right, parsed, ok)
	}
	for _, wrong := range []string{"", "core", "core:9090", "//core", "ftp://core", "http://", "http://:9090", "http://core:0", "http://core:65536", "http://core:port", "http://co re"} {
		parsed, ok := config.ParseURL(wrong)
		testenv.Check(t, !ok, "%s is parsed as %v", wrong, parsed)
	}
}

func TestHelpListsEverySetting(t *testing.T) {
	t.Parallel()
	var help strings.Builder
	testenv.Do(t, config.Help[testConfig](&help, "X_"))
	for _, want := range []string{"X_LISTEN", "127.0.0.1:1", "X_SECRET", "(required)", "X_TIMEOUT", "how long", "X_LOG_LEVEL", "X_LOG_FORMAT"} {
		testenv.Check(t, strings.Contains(help.String(), want), "help lacks %q:\n%s", want, help.String())
	}
}
