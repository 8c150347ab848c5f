package console

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// The operator's name, colour, logo, pages and announcement are in the console, and new users accept the terms.
func TestOperator(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"rules.md":        "- Be *kind*.\n- See <https://example.org>.\n\n| a | b |\n|---|---|\n| `c` | d |\n",
		"terms.md":        "# Terms of Skinland\n\n## Skins\n\nUpload only what is yours.",
		"terms.zh.md":     "# 使用条款\n\n只能上传您自己的皮肤。",
		"announcement.md": "On **Sunday** Skinland is closed. [More](https://example.org/sunday)",
	} {
		testenv.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	_, w := openSite(t, "CORE_SITE_NAME=Skinland", "CORE_SITE_ACCENT=#7a00cc", "CORE_SITE_LOGO="+file(t, "logo.png", artwork.Robot()),
		"CORE_SITE_PAGES="+dir, "CORE_SITE_CONTACT=help@example.org")
	w.arrive(t, "/register", "Create account")
	w.sees(t, "Skinland", "On Sunday Skinland is closed.", "Terms of Skinland", "Contact")
	w.await(t, `document.title === "Create account · Skinland" && document.querySelector(".brand img").naturalWidth > 0`)
	testenv.Equal(t, eval[string](t, w, `getComputedStyle(document.querySelector("button.main")).backgroundColor`), "rgb(122, 0, 204)", "the button's colour")
	w.inspect(t, "operator-register")
	w.follow(t, "Sign in to an existing account", "/signin", "Sign in", "Forgot the password? Ask the operators: help@example.org")
	w.inspect(t, "operator-signin")
	w.follow(t, "Create account", "/register", "Create account")

	w.expect("/api/auth/register")
	w.fill(t, "email", "ann@example.com", "nickname", "Ann", "password", password)
	w.press(t, "Create account")
	w.await(t, `document.activeElement.name === "terms_version" && document.activeElement.getAttribute("aria-invalid") === "true"`)
	w.sees(t, "Please read the terms of this site, and accept them.")
	w.inspect(t, "operator-consent")
	eval[bool](t, w, `(document.querySelector('[name="terms_version"]').click(), true)`)
	w.follow(t, "Create account", "/", "Hello, Ann")

	for _, page := range []string{"terms", "rules", "terms?lang=zh"} {
		eval[bool](t, w, `(location.href = "/site/`+page+`", true)`)
		w.await(t, `location.pathname + location.search === "/site/`+page+`" && document.title.endsWith(" · Skinland") && document.readyState === "complete"`)
		w.inspect(t, "operator-"+page[:5])
	}
	w.sees(t, "只能上传您自己的皮肤。")
}
