package api_test

import (
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/edge/api"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

func TestNewRejects(t *testing.T) {
	t.Parallel()
	f := func(setting string, config api.Config) {
		t.Helper()
		if _, err := api.New(httpserver.Options{}, nil, config); err == nil || !strings.HasPrefix(err.Error(), setting) {
			t.Errorf("New(%+v) = %v; want an error about %s", config, err, setting)
		}
	}
	f("API_UPSTREAM", api.Config{APIUpstream: "127.0.0.1:8080"})
	f("API_UPSTREAM", api.Config{APIUpstream: "http://core/base"})
	f("API_UPSTREAM", api.Config{APIUpstream: "http://"})
	f("API_CA", api.Config{APIUpstream: "https://core", APICA: "/nowhere/ca.pem"})
	f("S_MAXAGE", api.Config{SMaxage: 1})
}
