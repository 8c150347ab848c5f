package httpserver_test

import (
	"testing"

	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestMatchETag(t *testing.T) {
	t.Parallel()
	f := func(list string, strong, weak bool) {
		t.Helper()
		for _, c := range []struct{ weak, want bool }{{false, strong}, {true, weak}} {
			testenv.Equal(t, httpserver.MatchETag([]byte(list), []byte(`"a,b"`), c.weak), c.want,
				"MatchETag(%q, weak %t)", list, c.weak)
		}
	}

	f(`"a,b"`, true, true)
	f(` "x" , "a,b"`, true, true)
	f(`W/"x",W/"a,b"`, false, true)
	f(` * `, true, true)
	f(``, false, false)
	f(`"a"`, false, false)
	f(`a,b`, false, false)
	f(`"a,b`, false, false)
	f(`"x"*`, false, false)
	f(`"a,b-gzip"`, false, true)
	f(`"x", W/"a,b;gzip"`, false, true)
	f(`"a,b-br"`, false, true)
	f(`"a,b-x"`, false, false)
	f(`"a,-gzip"`, false, false)
	f(`"a,b-gzip-br"`, false, false)
}
