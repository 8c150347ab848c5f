//go:build !race

package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/skin"
)

const password = "correct horse" // of all accounts

// account is a user that calls the API besides the browser.
type account struct {
	site, email, nickname, token string
	UID                          int64
}

// register makes an account by the API.
func register(t *testing.T, s *stack.System, email, nickname string) *account {
	t.Helper()
	a := &account{site: s.EdgeURL, email: email, nickname: nickname}
	var answer struct{ Data struct{ Token string } }
	a.call(t, http.MethodPost, "/api/auth/register", map[string]any{"email": email, "nickname": nickname, "password": password}, &answer)
	a.token = answer.Data.Token
	a.call(t, http.MethodGet, "/api/user", nil, a)
	return a
}

// call sends a request, which must succeed, and decodes the response into a value, if there is one.
func (a *account) call(t *testing.T, method, path string, body, into any) {
	t.Helper()
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	status, answer := a.send(t, method, path, "application/json", content)
	if status/100 != 2 {
		t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	if into != nil {
		if err := json.Unmarshal(answer, into); err != nil {
			t.Fatalf("%s %s: %s: %v", method, path, answer, err)
		}
	}
}

func (a *account) send(t *testing.T, method, path, contentType string, content []byte) (status int, answer []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, a.site+path, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
	if a.token != "" {
		request.Header.Set("Authorization", "Bearer "+a.token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if answer, err = io.ReadAll(response.Body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, answer
}

// uploaded is a texture as an upload answers it.
type uploaded struct {
	TID  int64
	Hash string
}

// upload uploads a public texture, which gets into the closet.
func (a *account) upload(t *testing.T, name string, as skin.Type, sheet skin.Sheet) uploaded {
	t.Helper()
	status, answer := a.send(t, http.MethodPost, "/api/textures", stack.UploadType, stack.SheetForm(name, as, sheet))
	var decoded struct{ Data uploaded }
	if err := json.Unmarshal(answer, &decoded); err != nil || status != http.StatusOK {
		t.Fatalf("upload %s: %d %s %v", name, status, answer, err)
	}
	return decoded.Data
}

// report reports a texture.
func (a *account) report(t *testing.T, texture uploaded, reason string) {
	t.Helper()
	a.call(t, http.MethodPost, "/api/reports", map[string]any{"tid": texture.TID, "reason": reason}, nil)
}

// signIn signs a user in on the way to a page.
func (w *tab) signIn(t *testing.T, a *account, path, heading string) {
	t.Helper()
	w.visit(t, "/signin?next="+url.QueryEscape(path))
	w.enter(t, a.email, password, path, heading)
}

// choose chooses the option with a text, of the field with a label.
func (w *tab) choose(t *testing.T, label, option string) {
	t.Helper()
	field := fmt.Sprintf(`[...document.querySelectorAll("select")].find((e) => e.labels[0]?.innerText.startsWith(%s))`, quote(label))
	w.await(t, "Boolean("+field+")")
	eval[bool](t, w, fmt.Sprintf(`((select) => {
		select.value = [...select.options].find((o) => o.text === %s || o.value === %s).value;
		select.dispatchEvent(new Event("change", { bubbles: true }));
		return true;
	})(%s)`, quote(option), quote(option), field))
}

// settled waits until the page has what it asked for.
func (w *tab) settled(t *testing.T) {
	t.Helper()
	w.await(t, `Boolean(document.querySelector("h1")) && !document.querySelector("[aria-busy]") && document.querySelectorAll("main > * > *").length > 1 &&
		[...document.images].every((i) => i.naturalWidth > 0 || i.getBoundingClientRect().top > innerHeight)`)
}
