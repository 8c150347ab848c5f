package api

import (
	"testing"

	"github.com/valyala/fasthttp"
)

// null in a body leaves a field to the query, but its presence is still seen.
func TestNullSaysNothing(t *testing.T) {
	t.Parallel()

	var rc fasthttp.RequestCtx
	rc.Request.Header.SetMethod(fasthttp.MethodDelete)
	rc.Request.SetRequestURI("/?password=x&skin=1")
	rc.Request.Header.SetContentType("application/json")
	rc.Request.SetBodyString(`{"password":null,"cape":null,"name":null,"skin":2}`)
	f, err := read(&rc)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.text("password"); got != "x" {
		t.Errorf("the password is %q; want the query's", got)
	}
	if got := f.integer("skin", 0); got != 2 {
		t.Errorf("the skin is %d; want the body's", got)
	}
	if !f.has("cape") || !f.null("cape") || f.has("hat") {
		t.Errorf("cape is present %t and null %t, hat present %t", f.has("cape"), f.null("cape"), f.has("hat"))
	}
	if got := f.optionalText("name", "otherwise"); got != "otherwise" {
		t.Errorf("the name is %q", got)
	}
}
