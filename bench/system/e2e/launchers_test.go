package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image/color"
	"mime/multipart"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// launcher is a launcher of a user, or a game server: a client of the API of launchers.
type launcher struct {
	site.Client
	email, name string // of the user and its player
	id          string // of the player
}

// session is a token in a response.
type session struct {
	AccessToken     string
	SelectedProfile struct{ ID string }
}

// send sends a request, and returns the response. The error is one of the connection.
func (l launcher) send(t *testing.T, method, path, bearer, contentType string, body []byte) (status int, content []byte, err error) {
	t.Helper()
	l.Token = bearer
	return l.Try(t.Context(), method, path, contentType, body)
}

// post sends a JSON body, and decodes the response to it if it has status 200. The status must be
// the wanted one.
func (l launcher) post(t *testing.T, path string, body map[string]any, want int, into any) error {
	t.Helper()
	encoded := testenv.Must(json.Marshal(body))(t)
	status, content, err := l.send(t, http.MethodPost, path, "", "application/json", encoded)
	if err != nil {
		return err
	}
	if status == http.StatusOK && into != nil {
		err = json.Unmarshal(content, into)
	}
	testenv.Check(t, status == want, "%s: %d %s; want %d", path, status, content, want)
	return err
}

func (l launcher) authenticate(t *testing.T) (s session, err error) {
	t.Helper()
	err = l.post(t, "/authserver/authenticate", map[string]any{"username": l.email, "password": password}, http.StatusOK, &s)
	return s, err
}

// validate checks that a token leads to a status.
func (l launcher) validate(t *testing.T, token string, want int) {
	t.Helper()
	testenv.Do(t, l.post(t, "/authserver/validate", map[string]any{"accessToken": token}, want, nil))
}

// skinForm returns a skin that no other call returns, as launchers send it, and its hash.
func skinForm(t *testing.T, seed, round, i int) (contentType string, form []byte, hash skin.Hash) {
	t.Helper()
	drawn := drawSheet(uint8(seed))
	drawn.SetNRGBA(0, 0, color.NRGBA{R: uint8(i), G: uint8(round), B: uint8(seed), A: 255})
	file := testenv.Must(skin.Sheet{Width: 64, Height: 64, Pix: drawn.Pix}.PNG())(t)
	var content bytes.Buffer // writes to it never fail
	w := multipart.NewWriter(&content)
	_ = w.WriteField("model", "")
	part, _ := w.CreateFormFile("file", "skin.png")
	_, _ = part.Write(file)
	_ = w.Close()
	return w.FormDataContentType(), content.Bytes(), skin.HashOf(file)
}

// launcherWrites are what a core has acknowledged to a launcher.
type launcherWrites struct {
	tokens map[string]bool // that were not sent for a refresh since
	joins  map[string]time.Time
	files  []skin.Hash
	worn   map[skin.Hash]bool // the last acknowledged upload, and one that was sent after it
}

// write signs in, refreshes, joins and uploads until core is gone. It sends on acks each time that
// something was acknowledged.
func (w *launcherWrites) write(t *testing.T, l launcher, seed, round int, acks chan<- struct{}) {
	t.Helper()
	for i := 0; ; i++ {
		first, err := l.authenticate(t)
		if err != nil {
			return
		}
		w.tokens[first.AccessToken] = true
		acks <- struct{}{}

		delete(w.tokens, first.AccessToken)
		var next session
		if err := l.post(t, "/authserver/refresh", map[string]any{"accessToken": first.AccessToken}, http.StatusOK, &next); err != nil {
			return
		}
		w.tokens[next.AccessToken] = true
		acks <- struct{}{}

		server, sent := fmt.Sprintf("-%d-%d-%d", seed, round, i), time.Now()
		if err := l.post(t, "/sessionserver/session/minecraft/join", map[string]any{"accessToken": next.AccessToken, "selectedProfile": l.id, "serverId": server}, http.StatusNoContent, nil); err != nil {
			return
		}
		w.joins[server] = sent
		acks <- struct{}{}

		contentType, form, hash := skinForm(t, seed, round, i)
		w.worn[hash] = true
		status, content, err := l.send(t, http.MethodPut, "/api/user/profile/"+l.id+"/skin", next.AccessToken, contentType, form)
		if err != nil {
			return
		}
		if status != http.StatusNoContent {
			t.Errorf("upload: %d %s", status, content)
			return
		}
		w.files, w.worn = append(w.files, hash), map[skin.Hash]bool{hash: true}
		acks <- struct{}{}
	}
}

// check checks that another core knows what was acknowledged.
func (w *launcherWrites) check(t *testing.T, l launcher, store *blobstore.Store) {
	t.Helper()
	for server, sent := range w.joins {
		status, content, err := l.send(t, http.MethodGet, "/sessionserver/session/minecraft/hasJoined?username="+l.name+"&serverId="+server, "", "", nil)
		testenv.Do(t, err)
		// A join is known for 30 seconds.
		if status != http.StatusOK && time.Since(sent) < 25*time.Second {
			t.Errorf("%s has joined %s: %d %s", l.name, server, status, content)
		}
	}
	for token := range w.tokens {
		l.validate(t, token, http.StatusNoContent)
	}
	for _, hash := range w.files {
		if _, err := store.Get(t.Context(), hash); err != nil { // Get verifies the hash
			t.Errorf("texture file %s: %v", hash, err)
		}
	}
	if worn := l.wornSkin(t); !w.worn[worn] {
		t.Errorf("%s wears %s; %v was acknowledged or sent last", l.name, worn, w.worn)
	}
}

// wornSkin returns the hash of the skin in the player's profile.
func (l launcher) wornSkin(t *testing.T) skin.Hash {
	t.Helper()
	status, content, err := l.send(t, http.MethodGet, "/sessionserver/session/minecraft/profile/"+l.id, "", "", nil)
	if err != nil || status != http.StatusOK {
		t.Fatalf("profile: %d %s, %v", status, content, err)
	}
	var profile struct {
		Properties []struct{ Name, Value string }
	}
	if err := json.Unmarshal(content, &profile); err != nil || len(profile.Properties) == 0 {
		t.Fatalf("profile: %s, %v", content, err)
	}
	value := testenv.Must(base64.StdEncoding.DecodeString(profile.Properties[0].Value))(t)
	var payload struct {
		Textures struct{ Skin struct{ URL string } }
	}
	testenv.Do(t, json.Unmarshal(value, &payload))
	url := payload.Textures.Skin.URL
	return testenv.Must(skin.ParseHash(url[strings.LastIndexByte(url, '/')+1:]))(t)
}

// What a core acknowledged to launchers is known to the other core of the site when the first one is
// killed: tokens, joins and uploads.
func TestLaunchersLoseNothingWhenACoreIsKilled(t *testing.T) {
	t.Parallel()
	files := blobstoretest.Directory(t).Config
	killed := site.NewCoreAt(t, files, postgrestest.URL(t))
	site.ServeLaunchers(t, killed, "https://skins.example.org")
	killed.Set("CORE_YGGDRASIL_LOGIN_INTERVAL=0s", "CORE_YGGDRASIL_TOKENS=0")
	other := killed.Clone(t)
	killed.StartReady(t)
	other.StartReady(t)
	rootOf := func(core *stack.Process) string { return core.BaseURL(t, "public") + "/api/yggdrasil" }

	launchers := make([]launcher, 3)
	for i := range launchers {
		l := launcher{Client: site.Client{Base: rootOf(other)}, email: fmt.Sprintf("user%d@example.com", i), name: fmt.Sprintf("User_%d", i)}
		signUpAs(t, other.BaseURL(t, "public"), l.email).AddPlayer(t, l.name)
		first, err := l.authenticate(t)
		if err != nil || first.SelectedProfile.ID == "" {
			t.Fatalf("%+v, %v", first, err)
		}
		l.id = first.SelectedProfile.ID
		launchers[i] = l
	}

	store := blobstoretest.Open(t, files)
	writes := make([]launcherWrites, len(launchers))
	for i := range writes {
		writes[i] = launcherWrites{tokens: map[string]bool{}, joins: map[string]time.Time{}, worn: map[skin.Hash]bool{}}
	}
	const rounds = 2
	for round := range rounds {
		acks := make(chan struct{})
		var running sync.WaitGroup
		for i, l := range launchers {
			l.HTTP, l.Base = &http.Client{Transport: &http.Transport{}}, rootOf(killed)
			running.Go(func() { writes[i].write(t, l, 10*(i+1), round, acks) })
		}
		go func() {
			running.Wait()
			close(acks)
		}()
		// A different number each time, so that the kill meets every kind of write.
		for range 24 + round {
			if _, ok := <-acks; !ok {
				t.Fatal("the launchers have stopped")
			}
		}
		killed.Kill(t)
		for range acks {
		}
		for i, l := range launchers {
			writes[i].check(t, l, store)
		}
		if round < rounds-1 {
			killed.StartReady(t)
		}
	}
	joins, uploads := 0, 0
	for _, w := range writes {
		joins, uploads = joins+len(w.joins), uploads+len(w.files)
	}
	if joins < 3*rounds || uploads < 3*rounds {
		t.Errorf("only %d joins and %d uploads were acknowledged", joins, uploads)
	}
}
