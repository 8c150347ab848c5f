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

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
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
		signature := testenv.Must(base64.StdEncoding.DecodeString(*property.Signature))(t)
		digest := sha1.Sum([]byte(property.Value))
		err := rsa.VerifyPKCS1v15(&private.PublicKey, crypto.SHA1, digest[:], signature)
		testenv.Is(t, err, nil, "%s: the signature of %s", p.Name, property.Name)
	}
}

// isUnsigned checks that no property has a signature.
func (p signedProfile) isUnsigned(t *testing.T) {
	t.Helper()
	for _, property := range p.Properties {
		testenv.Equal(t, property.Signature, nil, "%s: the signature of %s", p.Name, property.Name)
	}
}

// textures is the payload of a profile.
type textures struct {
	Timestamp              int64
	ProfileID, ProfileName string
	Textures               worn
}

// worn are the textures that a player wears.
type worn map[string]struct {
	URL      string
	Metadata map[string]string
}

// payload decodes the textures, and checks the rest of the properties.
func (p signedProfile) payload(t *testing.T) textures {
	t.Helper()
	if len(p.Properties) != 2 || p.Properties[0].Name != "textures" || p.Properties[1].Name != "uploadableTextures" || p.Properties[1].Value != "skin,cape" {
		t.Fatalf("%s has the properties %+v", p.Name, p.Properties)
	}
	text := testenv.Must(base64.StdEncoding.DecodeString(p.Properties[0].Value))(t)
	var payload textures
	testenv.Do(t, json.Unmarshal(text, &payload))
	testenv.Check(t, payload.ProfileID == p.ID && payload.ProfileName == p.Name && payload.Textures != nil,
		"%s has the textures %s", p.Name, text)
	return payload
}

// profile returns the profile of a player, signed.
func (c client) profile(t *testing.T, p core.Player) signedProfile {
	t.Helper()
	return decode[signedProfile](t, c.Get(t, "/sessionserver/session/minecraft/profile/"+hexID(p.UUID)+"?unsigned=false"))
}

// A profile names what the player wears, with signatures if they are asked for.
func TestProfile(t *testing.T) {
	t.Parallel()
	c := start(t)
	u := c.signUp(t, "Both", "Slim_only", "Cape_only", "Neither")
	both, bothCape := c.dress(t, u.players[0], skinFile(t, 1), capeFile(t), "steve")
	slim, _ := c.dress(t, u.players[1], skinFile(t, 2), nil, "alex")
	c.site.Exec(t, "UPDATE players SET tid_cape = (SELECT tid_cape FROM players WHERE name = 'Both') WHERE name = 'Cape_only'")
	url := func(hash skin.Hash) string { return texturesURL + "/textures/" + hash.String() }

	f := func(p core.Player, want map[string]string, model string) {
		t.Helper()
		const byUUID, byPlayer = "/sessionserver/session/minecraft/profile/", "/profile/"
		for _, path := range []string{byUUID + hexID(p.UUID), byUUID + p.UUID.String(), byUUID + strings.ToUpper(hexID(p.UUID)), byPlayer + p.UUID.String(), byPlayer + strings.ToUpper(p.Name)} {
			for query, isSigned := range map[string]bool{"": false, "?unsigned=true": false, "?unsigned=": false, "?unsigned=FALSE": false, "?unsigned=false": true} {
				got := decode[signedProfile](t, c.Get(t, path+query))
				testenv.Equal(t, got.named, toNamed(p), "%s%s: the player", path, query)
				if isSigned {
					got.verify(t)
				} else {
					got.isUnsigned(t)
				}
				payload := got.payload(t)
				urls := map[string]string{}
				for kind, texture := range payload.Textures {
					urls[kind] = texture.URL
					testenv.Check(t, kind == "SKIN" && texture.Metadata["model"] == model || kind != "SKIN" && texture.Metadata == nil,
						"%s: %s has the metadata %v", p.Name, kind, texture.Metadata)
				}
				cmptest.Same(t, urls, want, "%s: the textures", p.Name)
				testenv.Equal(t, payload.Timestamp, c.site.Clock().UnixMilli(), "%s: the timestamp", p.Name)
				if alone := c.Get(t, "/textures/"+p.Name); len(want) == 0 {
					alone.IsEmpty(t)
				} else {
					cmptest.Same(t, decode[worn](t, alone), payload.Textures, "%s: the textures alone", p.Name)
				}
			}
		}
	}
	f(u.players[0], map[string]string{"SKIN": url(both), "CAPE": url(bothCape)}, "")
	f(u.players[1], map[string]string{"SKIN": url(slim)}, "slim")
	f(u.players[2], map[string]string{"CAPE": url(bothCape)}, "")
	f(u.players[3], map[string]string{}, "")

	for _, unknown := range []string{"992960dfc7a54afca041760004499434", hexID(uuid.Nil), "x", "%00", hexID(u.players[0].UUID) + "0", "urn:uuid:" + u.players[0].UUID.String(), "{" + hexID(u.players[0].UUID) + "}", "%ff"} {
		c.Get(t, "/sessionserver/session/minecraft/profile/"+unknown).IsEmpty(t)
		for _, path := range []string{"/profile/", "/textures/"} {
			isError(t, c.Get(t, path+unknown), 404, "Not Found", "There is no such player.")
		}
	}
}

// A profile changes with the player at once, and is signed once for each state.
func TestProfileFollowsPlayer(t *testing.T) {
	t.Parallel()
	c := start(t)
	again := serve(t, c.site)
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
	c.site.Advance(time.Minute)
	later, _ := signature(c)
	testenv.Equal(t, later, value, "an unchanged profile, a minute later,")
	skinURL := func(c client) string { return c.worn(t, player).Textures["SKIN"].URL }
	testenv.Equal(t, skinURL(c), texturesURL+"/textures/"+first.String(), "the skin")

	second, _ := c.dress(t, player, skinFile(t, 2), nil, "steve")
	for _, c := range []client{c, again} {
		testenv.Equal(t, skinURL(c), texturesURL+"/textures/"+second.String(), "after another skin it")
	}
	_, now := signature(c)
	testenv.Check(t, now != signed, "another skin has the same signature")
	testenv.Must(c.Domain.Players.Rename(t.Context(), caller.Owner(), player.ID, "Ann_2"))(t)
	player.Name = "Ann_2"
	testenv.Equal(t, c.profile(t, player).Name, "Ann_2", "after another name it")
	c.worn(t, player)
	testenv.Must(c.Domain.Players.ClearTextures(t.Context(), caller.Owner(), player.ID, true, true))(t)
	c.wears(t, player)
	testenv.Do(t, c.Domain.Players.Delete(t.Context(), caller.Owner(), player.ID))
	c.Get(t, "/sessionserver/session/minecraft/profile/"+hexID(player.UUID)).IsEmpty(t)
}

// Many requests for one profile at once get one signature.
func TestProfilesAtOnce(t *testing.T) {
	t.Parallel()
	c, u := startForOne(t)
	values := make([]string, 30)
	var requests sync.WaitGroup
	for i := range values {
		requests.Go(func() {
			c.site.Advance(time.Millisecond) // each would be signed with another timestamp
			got, err := c.Exchange("GET", "/sessionserver/session/minecraft/profile/"+hexID(u.players[0].UUID)+"?unsigned=false", body{})
			testenv.Check(t, err == nil && got.Status == 200, "%d, %v", got.Status, err)
			values[i] = string(got.Body)
		})
	}
	requests.Wait()
	for _, value := range values {
		testenv.Equal(t, value, values[0], "another answer")
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
			got := c.Post(t, path, names)
			byName := func(a, b named) int { return strings.Compare(a.Name, b.Name) }
			players := slices.SortedFunc(slices.Values(decode[[]named](t, got)), byName)
			cmptest.Same(t, players, slices.SortedFunc(slices.Values(want), byName), "%s of %v", path, names)
			testenv.Equal(t, got.Body[0], '[', "%s of %v: the first character", path, names)
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
		isError(t, c.Post(t, path, append(many, "second")), 400, "Bad Request", "")
		for _, wrong := range []string{`{"names":[]}`, `["a",1]`, `"First"`, `[`, `[["First"]]`, "", "null"} {
			isError(t, c.Post(t, path, wrong), 400, "Bad Request", "")
		}
	}
}

// One player is looked up by name or UUID; 204 says that there is none.
func TestLookUpPlayer(t *testing.T) {
	t.Parallel()
	c, u := startForOne(t)
	want := toNamed(u.players[0])
	f := func(path string, exists bool) {
		t.Helper()
		got := c.Get(t, path)
		if !exists {
			got.IsEmpty(t)
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
