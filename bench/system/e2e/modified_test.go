package e2e

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
)

// Last-Modified and If-Modified-Since: a client gets a file again after every change of it, and
// only then.
func TestLastModified(t *testing.T) {
	t.Parallel()
	s := stack.Start(t, blobstoretest.Directory(t).Config)
	ann := signUp(t, s.CoreURL)
	first, second := ann.upload(t, "first", drawSheet(10)).Data, ann.upload(t, "second", drawSheet(200)).Data
	pid := ann.call(t, http.MethodPost, "/api/players", map[string]any{"name": "Ann_1"}).Data.PID
	player := fmt.Sprintf("/api/players/%d", pid)
	ann.call(t, http.MethodPut, player+"/textures", map[string]any{"skin": first.TID})

	get := func(path, since string) (status int, modified, body string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.EdgeURL+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if since != "" {
			request.Header.Set("If-Modified-Since", since)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		content, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, response.Header.Get("Last-Modified"), string(content)
	}
	// dated waits until a file has a Last-Modified, in the second after its change.
	dated := func(path string) (modified, body string) {
		t.Helper()
		eventually(t, path+" has a date", func() string {
			status, date, content := get(path, "")
			modified, body = date, content
			if status != http.StatusOK || date == "" {
				return fmt.Sprintf("%d, last modified %q", status, date)
			}
			return ""
		})
		for since, want := range map[string]int{modified: 304, time.Now().UTC().Format(http.TimeFormat): 304, "Mon, 01 Jan 2024 00:00:00 GMT": 200} {
			if status, _, _ := get(path, since); status != want {
				t.Errorf("%s of %s, since %s: %d; want %d", path, modified, since, status, want)
			}
		}
		return modified, body
	}

	dated("/textures/" + first.Hash)
	skin, profile := "/skin/Ann_1.png", "/csl/Ann_1.json"
	modified, file := dated(skin)
	_, beforeProfile := dated(profile)
	dated("/csl/textures/" + second.Hash)
	for _, change := range []struct {
		name string
		do   func()
	}{
		{"another skin", func() {
			ann.call(t, http.MethodPut, player+"/textures", map[string]any{"skin": second.TID})
		}},
		{"another type", func() {
			ann.call(t, http.MethodPut, fmt.Sprintf("/api/textures/%d", second.TID), map[string]any{"type": "alex"})
		}},
		{"another case of the name", func() { ann.call(t, http.MethodPut, player+"/name", map[string]any{"name": "ANN_1"}) }},
		{"the first skin", func() {
			ann.call(t, http.MethodPut, player+"/textures", map[string]any{"skin": first.TID})
		}},
	} {
		change.do()
		eventually(t, "the profile shows "+change.name, func() string {
			status, _, profile := get(profile, modified)
			if status != http.StatusOK || profile == beforeProfile {
				return fmt.Sprintf("%d %s", status, profile)
			}
			return ""
		})
		later, after := dated(skin)
		if status, _, _ := get(skin, modified); status != http.StatusOK || later == modified {
			t.Errorf("%s: %d since %s, last modified %s; want 200 and a later date", change.name, status, modified, later)
		}
		modified, file = later, after
		_, beforeProfile = dated(profile)
	}
	if _, _, want := get("/textures/"+first.Hash, ""); file != want {
		t.Error("the last skin is not the player's")
	}
}
