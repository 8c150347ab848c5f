package yggdrasil_test

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/skin"
)

// signedProfile is a player with properties in a response.
type signedProfile struct {
	named
	Properties []property
}

type property struct {
	Name, Value string
	Signature   *string
}

// verify checks the signatures of all properties.
func (p signedProfile) verify(t *testing.T) {
	t.Helper()
	private, _ := testKey()
	for _, property := range p.Properties {
		if property.Signature == nil {
			t.Errorf("%s: %s has no signature", p.Name, property.Name)
			continue
		}
		signature, err := base64.StdEncoding.DecodeString(*property.Signature)
		if err != nil {
			t.Fatal(err)
		}
		digest := sha1.Sum([]byte(property.Value))
		if err := rsa.VerifyPKCS1v15(&private.PublicKey, crypto.SHA1, digest[:], signature); err != nil {
			t.Errorf("%s: the signature of %s: %v", p.Name, property.Name, err)
		}
	}
}

// isUnsigned checks that no property has a signature.
func (p signedProfile) isUnsigned(t *testing.T) {
	t.Helper()
	for _, property := range p.Properties {
		if property.Signature != nil {
			t.Errorf("%s: %s has a signature", p.Name, property.Name)
		}
	}
}

// textures is the payload of a profile.
type textures struct {
	Timestamp              int64
	ProfileID, ProfileName string
	Textures               map[string]struct {
		URL      string
		Metadata map[string]string
	}
}

// payload decodes the textures, and checks the rest of the properties.
func (p signedProfile) payload(t *testing.T) textures {
	t.Helper()
	if len(p.Properties) != 2 || p.Properties[0].Name != "textures" || p.Properties[1].Name != "uploadableTextures" || p.Properties[1].Value != "skin,cape" {
		t.Fatalf("%s has the properties %+v", p.Name, p.Properties)
	}
	text, err := base64.StdEncoding.DecodeString(p.Properties[0].Value)
	if err != nil {
		t.Fatal(err)
	}
	var payload textures
	if err := json.Unmarshal(text, &payload); err != nil {
		t.Fatal(err)
	}
	if payload.ProfileID != p.ID || payload.ProfileName != p.Name || payload.Textures == nil {
		t.Errorf("%s has the textures %s", p.Name, text)
	}
	return payload
}

// profile returns the profile of a player, signed.
func (c client) profile(t *testing.T, p core.Player) signedProfile {
	t.Helper()
	return decode[signedProfile](t, c.get(t, "/sessionserver/session/minecraft/profile/"+hexID(p.UUID)+"?unsigned=false"))
}

// A profile names what the player wears, with signatures if they are asked for.
func TestProfile(t *testing.T) {
	t.Parallel()

	c := start(t)
	u := c.signUp(t, "Both", "Slim_only", "Cape_only", "Neither")
	both, bothCape := c.dress(t, u.players[0], skinFile(t, 1), capeFile(t), "steve")
	slim, _ := c.dress(t, u.players[1], skinFile(t, 2), nil, "alex")
	c.site.exec(t, "UPDATE players SET tid_cape = (SELECT tid_cape FROM players WHERE name = 'Both') WHERE name = 'Cape_only'")
	url := func(hash skin.Hash) string { return texturesURL + "/textures/" + hash.String() }

	f := func(p core.Player, want map[string]string, model string) {
		t.Helper()
		for _, id := range []string{hexID(p.UUID), p.UUID.String(), strings.ToUpper(hexID(p.UUID))} {
			for query, isSigned := range map[string]bool{"": false, "?unsigned=true": false, "?unsigned=": false, "?unsigned=FALSE": false, "?unsigned=false": true} {
				got := decode[signedProfile](t, c.get(t, "/sessionserver/session/minecraft/profile/"+id+query))
				if got.named != toNamed(p) {
					t.Errorf("%s%s: %+v", id, query, got)
				}
				if isSigned {
					got.verify(t)
				} else {
					got.isUnsigned(t)
				}
				payload := got.payload(t)
				urls := map[string]string{}
				for kind, texture := range payload.Textures {
					urls[kind] = texture.URL
					if kind == "SKIN" && texture.Metadata["model"] != model || kind != "SKIN" && texture.Metadata != nil {
						t.Errorf("%s: %s has the metadata %v", p.Name, kind, texture.Metadata)
					}
				}
				if diff := cmp.Diff(want, urls); diff != "" {
					t.Errorf("%s: the textures (-want +got):\n%s", p.Name, diff)
				}
				if want := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC).UnixMilli(); payload.Timestamp != want {
					t.Errorf("%s: the timestamp is %d; want %d", p.Name, payload.Timestamp, want)
				}
			}
		}
	}
	f(u.players[0], map[string]string{"SKIN": url(both), "CAPE": url(bothCape)}, "")
	f(u.players[1], map[string]string{"SKIN": url(slim)}, "slim")
	f(u.players[2], map[string]string{"CAPE": url(bothCape)}, "")
	f(u.players[3], map[string]string{}, "")

	for _, unknown := range []string{"992960dfc7a54afca041760004499434", hexID(uuid.Nil), "x", "%00", hexID(u.players[0].UUID) + "0", "urn:uuid:" + u.players[0].UUID.String(), "{" + hexID(u.players[0].UUID) + "}", "%ff"} {
		c.get(t, "/sessionserver/session/minecraft/profile/"+unknown).isEmpty(t)
	}
}

// A profile changes with the player at once, and is signed once for each state.
func TestProfileFollowsPlayer(t *testing.T) {
	t.Parallel()

	c := start(t)
	again := c.site.serve(t)
	u := c.signUp(t, "Ann_1")
	player, caller := u.players[0], core.Caller{User: u.User}
	first, _ := c.dress(t, player, skinFile(t, 1), nil, "steve")
	signature := func(c client) (value, signature string) {
		t.Helper()
		got := c.profile(t, player)
		got.verify(t)
		return got.Properties[0].Value, *got.Properties[0].Signature
	}
	value, signed := signature(c)
	c.site.now.Add(60_000)
	if later, _ := signature(c); later != value {
		t.Error("an unchanged profile is signed anew")
	}
	if got := c.profile(t, player).payload(t); !strings.HasSuffix(got.Textures["SKIN"].URL, first.String()) {
		t.Errorf("the skin is %v", got.Textures)
	}

	second, _ := c.dress(t, player, skinFile(t, 2), nil, "steve")
	for _, c := range []client{c, again} {
		if got := c.profile(t, player).payload(t); !strings.HasSuffix(got.Textures["SKIN"].URL, second.String()) {
			t.Errorf("after another skin it is %v", got.Textures)
		}
	}
	if _, now := signature(c); now == signed {
		t.Error("another skin has the same signature")
	}
	if _, err := c.services.Players.Rename(t.Context(), caller, player.ID, "Ann_2"); err != nil {
		t.Fatal(err)
	}
	player.Name = "Ann_2"
	if got := c.profile(t, player); got.Name != "Ann_2" {
		t.Errorf("after another name it is %s", got.Name)
	} else {
		got.payload(t)
	}
	if _, err := c.services.Players.ClearTextures(t.Context(), caller, player.ID, true, true); err != nil {
		t.Fatal(err)
	}
	if got := c.profile(t, player).payload(t); len(got.Textures) != 0 {
		t.Errorf("without textures they are %v", got.Textures)
	}
	if err := c.services.Players.Delete(t.Context(), caller, player.ID); err != nil {
		t.Fatal(err)
	}
	c.get(t, "/sessionserver/session/minecraft/profile/"+hexID(player.UUID)).isEmpty(t)
}

// Many requests for one profile at once get one signature.
func TestProfilesAtOnce(t *testing.T) {
	t.Parallel()

	c := start(t)
	u := c.signUp(t, "Ann_1")
	values := make([]string, 30)
	var requests sync.WaitGroup
	for i := range values {
		requests.Go(func() {
			c.site.now.Add(1) // each would be signed with another timestamp
			got, err := c.exchange("GET", "/sessionserver/session/minecraft/profile/"+hexID(u.players[0].UUID)+"?unsigned=false", body{})
			if err != nil || got.status != 200 {
				t.Errorf("%d, %v", got.status, err)
			}
			values[i] = string(got.body)
		})
	}
	requests.Wait()
	for _, value := range values {
		if value != values[0] {
			t.Fatalf("two answers differ:\n%s\n%s", values[0], value)
		}
	}
}

// Names are looked up without case, unknown ones left out, and each player is there once, with the
// name that it has.
func TestPlayersNamed(t *testing.T) {
	t.Parallel()

	c := start(t)
	u := c.signUp(t, "First", "Second")
	first, second := toNamed(u.players[0]), toNamed(u.players[1])
	for _, path := range []string{"/api/profiles/minecraft", "/minecraftservices/minecraft/profile/lookup/bulk/byname", "/api/minecraft/profile/lookup/bulk/byname"} {
		f := func(names any, want ...named) {
			t.Helper()
			got := c.post(t, path, names)
			byName := func(a, b named) int { return strings.Compare(a.Name, b.Name) }
			if diff := cmp.Diff(slices.SortedFunc(slices.Values(want), byName), slices.SortedFunc(slices.Values(decode[[]named](t, got)), byName)); diff != "" || got.body[0] != '[' {
				t.Errorf("%s of %v (-want +got):\n%s", path, names, diff)
			}
		}
		f([]string{})
		f([]string{"characterNotExists"})
		f([]string{"First"}, first)
		f([]string{"characterNotExists", "FIRST"}, first)
		f([]string{"First", "First", "fIRST"}, first)
		f([]string{"second", "First"}, first, second)
		f([]string{"", " First", "\x00", strings.Repeat("x", 5000)})
		many := []string{"first"}
		for i := range 99 {
			many = append(many, fmt.Sprintf("Nobody%d", i))
		}
		f(many, first)
		c.post(t, path, append(many, "second")).isError(t, 400, "Bad Request", "")
		for _, wrong := range []string{`{"names":[]}`, `["a",1]`, `"First"`, `[`, `[["First"]]`, "", "null"} {
			c.post(t, path, wrong).isError(t, 400, "Bad Request", "")
		}
	}
}

// One player is looked up by name or UUID; 204 says that there is none.
func TestLookUpPlayer(t *testing.T) {
	t.Parallel()

	c := start(t)
	u := c.signUp(t, "Ann_1")
	want := toNamed(u.players[0])
	f := func(path string, exists bool) {
		t.Helper()
		got := c.get(t, path)
		if !exists {
			got.isEmpty(t)
		} else if player := decode[named](t, got); player != want {
			t.Errorf("%s: %+v", path, player)
		}
	}
	for _, path := range []string{"/api/users/profiles/minecraft/", "/minecraftservices/minecraft/profile/lookup/name/", "/api/minecraft/profile/lookup/name/"} {
		f(path+"Ann_1", true)
		f(path+"aNN_1", true)
		f(path+"%41nn_1", true)
		for _, name := range []string{"Nobody", "%00", "%ff", "a%20b", strings.Repeat("x", 3000), "a%2Fb", hexID(u.players[0].UUID)} {
			f(path+name, false)
		}
	}
	for _, path := range []string{"/minecraftservices/minecraft/profile/lookup/", "/api/minecraft/profile/lookup/"} {
		f(path+hexID(u.players[0].UUID), true)
		f(path+u.players[0].UUID.String(), true)
		f(path+"992960dfc7a54afca041760004499434", false)
		f(path+"x", false)
	}
}
