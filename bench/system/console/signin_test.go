package console

import (
	"testing"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// The page for signing in takes the name of a player, begins at its first field, and can show the password. What keeps
// passwords finds whose new password it is.
func TestSignInByName(t *testing.T) {
	t.Parallel()
	_, w := openSite(t, "CORE_DEMO=1")
	w.arrive(t, "/library", "Library")
	w.follow(t, "Sign in", "/signin?next=%2Flibrary", "Sign in")
	w.focusIs(t, "[name=email]")
	testenv.Equal(t, eval[string](t, w, `document.activeElement.autocapitalize + document.activeElement.spellcheck + document.activeElement.autocomplete`),
		"nonefalseusername", "how a name is typed")
	w.expect("/console/session")
	w.submit(t, "Demo", "wrong horse")
	w.sees(t, "The player name or e-mail address, or the password, is wrong.")
	w.press(t, "Show Password")
	testenv.Equal(t, eval[string](t, w, `document.querySelector("[name=password]").type + document.querySelector("[name=password]").value`), "textwrong horse", "a password that is shown")
	w.press(t, "Hide Password")
	testenv.Equal(t, eval[string](t, w, `document.querySelector("[name=password]").type`), "password", "the type of a password that is hidden")
	w.enter(t, "dEMO", "demo-password", "/library", "Library")
	w.visit(t, "/signin?next=%2F..%2Fp%2FDemo") // which is no page of the console
	w.isAt(t, "/", "Hello, Demo")

	w.arrive(t, "/account?change=password", "Account")
	w.await(t, `Boolean(document.querySelector("dialog [name=new_password]"))`)
	const fields = `[...new FormData(document.querySelector("dialog form")).keys()].join() + " " + [...document.querySelectorAll("dialog input")].map((i) => i.autocomplete + "=" + i.value).join()`
	testenv.Equal(t, eval[string](t, w, fields), "current_password,new_password username=demo@example.com,current-password=,new-password=", "the fields for a new password")
	w.focusIs(t, "[name=current_password]")
	w.inspect(t, "account-password")
}
