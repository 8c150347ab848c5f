package cli

import (
	"testing"

	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	words := []string{"LISTEN", "OPS_LISTEN", "LOG_LEVEL", "LOG_FORMAT", "TLS_CERT", "TLS_KEY"}
	f := func(misspelt string, want ...string) {
		t.Helper()
		cmptest.Same(t, nearest(misspelt, words), want, "%s", misspelt)
	}
	f("LISTN", "LISTEN")
	f("LISTENS", "LISTEN")
	f("OP_LISTEN", "OPS_LISTEN")
	f("LOGLEVEL", "LOG_LEVEL")
	f("LOGGING_LEVEL", "LOG_LEVEL")
	f("TLS_KEYS", "TLS_KEY")
	f("COLOUR")
	f("")
}
