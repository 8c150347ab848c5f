package town

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/shared/mapping"
)

func TestAddresses(t *testing.T) {
	t.Parallel()

	players, mappings, err := seed(t.Context(), t.TempDir(), 80)
	if err != nil {
		t.Fatal(err)
	}
	count := 79*Patterns() + 1
	list := addresses(count, players)
	distinct := map[string]bool{}
	for _, address := range list {
		distinct[address] = true
		if strings.ContainsAny(address, "{}") {
			t.Fatalf("%s leads nowhere", address)
		}
	}
	if len(distinct) != count {
		t.Errorf("%d of %d addresses differ", len(distinct), count)
	}
	for _, want := range []string{
		"/avatar/player/Player_80", "/avatar/player/Player_1?png&size=64", "/avatar/user/79.png?size=64&3d", "/avatar/1",
		"/preview/hash/" + players[5].skin.Hash.String(),
	} {
		if !distinct[want] {
			t.Errorf("%s is not among them", want)
		}
	}

	files := map[string]bool{}
	for i := range players {
		r := &players[i]
		files[r.skin.Hash.String()] = true
		for _, key := range []mapping.Key{
			mapping.NameKey(r.name), mapping.UUIDKey(r.uuid), mapping.UIDKey(r.id()), mapping.TIDKey(r.id()), mapping.HashKey(r.skin.Hash),
		} {
			if cmp.Equal(mappings[key], mapping.Mapping{}) {
				t.Errorf("%s leads nowhere", key)
			}
		}
	}
	if len(files) != len(players) {
		t.Errorf("%d residents have %d different textures", len(players), len(files))
	}
}

// Each resident has addresses of views of their own, and one of a file.
func TestViews(t *testing.T) {
	t.Parallel()

	players, _, err := seed(t.Context(), t.TempDir(), 3)
	if err != nil {
		t.Fatal(err)
	}
	town := &Site{players: players}
	list, used := town.Views(2*len(viewPatterns) + 1)
	if len(list) != 2*len(viewPatterns)+1 || used != 3 {
		t.Errorf("%d views of %d residents", len(list), used)
	}
	second := players[1].skin
	for _, want := range []string{fmt.Sprintf("/avatar/hash/%v?size=64", second.Hash), fmt.Sprintf("/preview/%d?height=64", second.TID)} {
		if !slices.Contains(list, want) {
			t.Errorf("%s is not among %q", want, list)
		}
	}
	if files, want := town.TextureFiles(used), "/textures/"+second.Hash.String(); len(files) != 3 || files[1] != want {
		t.Errorf("files: %q; want %s to be the second of 3", files, want)
	}
	if avatar := town.AvatarByName(); avatar != "/avatar/player/Player_1?size=64" {
		t.Errorf("the head is %s", avatar)
	}
	for _, address := range list {
		if strings.ContainsAny(address, "{}") {
			t.Errorf("%s leads nowhere", address)
		}
	}
}
