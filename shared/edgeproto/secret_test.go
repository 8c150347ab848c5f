package edgeproto_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/edgeproto"
)

func TestSecrets(t *testing.T) {
	t.Parallel()
	good := "0123456789abcdef"
	if got, err := edgeproto.Secrets([]string{" " + good, good + "\n"}); err != nil || !slices.Equal(got, []string{good, good}) {
		t.Errorf("Secrets of valid ones = %q, %v; want it trimmed", got, err)
	}
	for _, wrong := range []string{"", " ", good[1:], "with a space in it", "with\na-line-feed-in-it", "ünprintable-by-ascii"} {
		_, err := edgeproto.Secrets([]string{good, wrong})
		if err == nil || !strings.Contains(err.Error(), "number 2") || (wrong != "" && wrong != " " && strings.Contains(err.Error(), wrong)) {
			t.Errorf("Secrets with %q: %v; want an error with its number, not itself", wrong, err)
		}
	}
}
