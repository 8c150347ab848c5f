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

	residents, leads, err := settle(t.Context(), t.TempDir(), 80)
	if err != nil {
		t.Fatal(err)
	}
	count := 79*Patterns() + 1
	list := addresses(count, residents)
	known := map[string]bool{}
	for _, address := range list {
		known[address] = true
		if strings.ContainsAny(address, "{}") {
			t.Fatalf("%s leads nowhere", address)
		}
	}
	if len(known) != count {
		t.Errorf("%d of %d addresses differ", len(known), count)
	}
	for _, want := range []string{
		"/avatar/player/Player_80", "/avatar/player/Player_1?png&size=64", "/avatar/user/79.png?size=64&3d", "/avatar/1",
		"/preview/hash/" + residents[5].worn.Hash.String(),
	} {
		if !known[want] {
			t.Errorf("%s is not among them", want)
		}
	}

	files := map[string]bool{}
	for i := range residents {
		r := &residents[i]
		files[r.worn.Hash.String()] = true
		for _, key := range []mapping.Key{
			mapping.NameKey(r.name), mapping.UUIDKey(r.uuid), mapping.UIDKey(r.id()), mapping.TIDKey(r.id()), mapping.HashKey(r.worn.Hash),
		} {
			if cmp.Equal(leads[key], mapping.Mapping{}) {
				t.Errorf("%s leads nowhere", key)
			}
		}
	}
	if len(files) != len(residents) {
		t.Errorf("%d residents have %d different textures", len(residents), len(files))
	}
}

// Each resident has addresses of views of their own, and one of a file.
func TestViews(t *testing.T) {
	t.Parallel()

	residents, _, err := settle(t.Context(), t.TempDir(), 3)
	if err != nil {
		t.Fatal(err)
	}
	town := &Town{residents: residents}
	list, seen := town.Views(2*len(views) + 1)
	if len(list) != 2*len(views)+1 || seen != 3 {
		t.Errorf("%d views of %d residents", len(list), seen)
	}
	second := residents[1].worn
	for _, want := range []string{fmt.Sprintf("/avatar/hash/%v?size=64", second.Hash), fmt.Sprintf("/preview/%d?height=64", second.TID)} {
		if !slices.Contains(list, want) {
			t.Errorf("%s is not among %q", want, list)
		}
	}
	if files, want := town.Files(seen), "/textures/"+second.Hash.String(); len(files) != 3 || files[1] != want {
		t.Errorf("files: %q; want %s to be the second of 3", files, want)
	}
	if head := town.Head(); head != "/avatar/player/Player_1?size=64" {
		t.Errorf("the head is %s", head)
	}
	for _, address := range list {
		if strings.ContainsAny(address, "{}") {
			t.Errorf("%s leads nowhere", address)
		}
	}
}
