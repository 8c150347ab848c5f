package api_test

import (
	"testing"

	"github.com/veneer-skins/veneer/edge/api"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestNewRejects(t *testing.T) {
	t.Parallel()
	f := func(setting string, config api.Config) {
		t.Helper()
		testenv.ErrorHas(t, testenv.ErrOf(api.New(httpserver.Options{}, nil, config)), setting, "New(%+v)", config)
	}
	f("API_UPSTREAM", api.Config{APIUpstream: "127.0.0.1:8080"})
	f("API_UPSTREAM", api.Config{APIUpstream: "http://core/base"})
	f("API_UPSTREAM", api.Config{APIUpstream: "http://"})
	f("API_CA", api.Config{APIUpstream: "https://core", APICA: "/nowhere/ca.pem"})
	f("S_MAXAGE", api.Config{SMaxage: 1})
}
