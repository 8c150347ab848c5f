package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// All searches compare folded keys: in any case and any Unicode normalization form.
func TestSearchesCompareKeys(t *testing.T) {
	t.Parallel()
	c := start(t, "LIMIT_REQUESTS=0", `PLAYER_NAME_PATTERN=\pL[\pL\pM]*`, "PLAYER_NAME_ALLOWED=letters").signUp(t)
	c.permit(t, core.SuperAdministrator)
	tid := c.texture(t, "name=N&type=steve", skinFile(t, 1))
	pid := c.player(t, "Steve")
	other := c.signUp(t)
	ask := func(method, path string, sent body) response { // not checked: the document has the default pattern of players' names
		t.Helper()
		return testenv.Must(c.Exchange(method, path, sent))(t)
	}
	for _, name := range []string{"Crème", "가나다", "Straße", "ΣΊΣΥΦΟΣ", "Ångström"} {
		for _, form := range []norm.Form{norm.NFC, norm.NFD} {
			written := form.String(name)
			for path, object := range map[string]string{
				"/api/closet/" + tid:   `{"name":%q}`,
				"/api/textures/" + tid: `{"name":%q}`,
				fmt.Sprint("/api/admin/users/", other.UID, "/nickname"): `{"nickname":%q}`,
				fmt.Sprint("/api/admin/users/", other.UID, "/email"):    `{"email":"%s@example.com"}`,
				"/api/admin" + pid[len("/api"):] + "/name":              `{"name":%q}`,
			} {
				ask("PUT", path, encodeJSON(fmt.Sprintf(object, written))).HasStatus(t, 200)
			}
			for path, field := range map[string]string{
				"/api/closet": "q", fmt.Sprint("/api/admin/users/", c.UID, "/closet"): "q", "/api/textures": "q", "/api/admin/textures": "q",
				"/api/admin/users": "nickname", "/api/admin/users/": "email", "/api/admin/players": "name",
			} {
				upper := strings.ReplaceAll(strings.ToUpper(name), "ß", "ẞ")
				for _, text := range []string{name, norm.NFD.String(name), upper, norm.NFD.String(upper)} {
					ask("GET", path+"?"+url.Values{field: {text}}.Encode(), body{}).HasField(t, "1", "total")
				}
			}
		}
	}
}
