package api_test

import (
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/edge/api"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestNewRejects(t *testing.T) {
	t.Parallel()
	f := func(setting string, config api.Config) {
		t.Helper()
		_, err := api.New(httpserver.Options{}, nil, config)
		testenv.Check(t, err != nil && strings.HasPrefix(err.Error(), setting), "New(%+v) = %v; want an error about %s", config, err, setting)
	}
	f("API_UPSTREAM", api.Config{APIUpstream: "127.0.0.1:8080"})
	f("API_UPSTREAM", api.Config{APIUpstream: "http://core/base"})
	f("API_UPSTREAM", api.Config{APIUpstream: "http://"})
	f("API_CA", api.Config{APIUpstream: "https://core", APICA: "/nowhere/ca.pem"})
	f("S_MAXAGE", api.Config{SMaxage: 1})
}
