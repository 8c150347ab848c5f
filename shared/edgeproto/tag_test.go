package edgeproto_test

import (
	"testing"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestTag(t *testing.T) {
	t.Parallel()
	f := func(key edgeproto.Key, want string) {
		t.Helper()
		testenv.Equal(t, key.Tag(), want, "the tag of %q", key)
	}

	f(edgeproto.PIDKey(5), "player-5")
	f(edgeproto.UIDKey(7), "user-7")
	f(edgeproto.TIDKey(12), "texture-12")
	f(edgeproto.NameKey("Steve_99"), "name-steve_99")
	f(edgeproto.NameKey("Zoë, the 1st: x"), "name-zo%C3%AB%2C%20the%201st:%20x")
	f(edgeproto.UUIDKey("7d444840-9dc0-11d1-b245-5ffdce74fad2"), "")
	f(edgeproto.HashKey(skin.HashOf([]byte("abc"))), "")
	f("nonsense", "")
}
