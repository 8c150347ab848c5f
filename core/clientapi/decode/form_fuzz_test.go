package decode

import (
	"testing"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// A body and a query are rejected with a documented kind of fault, or every field can be read in
// every way and its errors are Invalid faults.
func FuzzRead(f *testing.F) {
	const form, object = "application/x-www-form-urlencoded", "application/json; charset=UTF-8"
	for _, body := range []string{
		`{"skin":62,"cape":null}`, `{"skin":62.0,"name":"a\ud83d"}`, `{"type":["skin","cape"],"skin":"62"}`, `{"skin":1e400}`, "\xef\xbb\xbf{}", `{"a":{"a":{"a":[[[]]]}}}`, `null`, `[`, `{"name":"` + "\xff" + `"}`,
	} {
		f.Add(object, []byte(body), "skin=1")
	}
	for _, body := range []string{"type[0]=skin&type[1]=cape", "type[]=skin&type=cape", "skin=62&cape=", "name=%ff&name=%", "a=b&&=&c", "type[1]=a&type[0]=b&type[x]=c"} {
		f.Add(form, []byte(body), body)
	}
	f.Add("multipart/form-data; boundary=b", []byte("--b\r\nContent-Disposition: form-data; name=name\r\n\r\nN\r\n--b--\r\n"), "")
	f.Add("text/plain; charset", []byte("x"), "%")

	f.Fuzz(func(t *testing.T, kind string, body []byte, query string) {
		var rc fasthttp.RequestCtx
		rc.Request.Header.SetMethod(fasthttp.MethodDelete)
		rc.Request.SetRequestURI("/")
		rc.Request.URI().SetQueryString(query)
		rc.Request.Header.SetContentType(kind)
		rc.Request.SetBody(body)
		f := ParseForm(&rc)
		if err := f.bodyError; err != nil {
			if kind := fault.KindOf(err); kind != fault.Malformed && kind != fault.UnsupportedMedia && kind != fault.Invalid {
				t.Fatalf("kind %d: %v", kind, err)
			}
			return
		}
		for _, name := range []string{"name", "type", "skin", "cape", "a"} {
			_, isWrong := f.errors[name]
			f.Has(name)
			f.OptionalInteger(name)
			f.OptionalBool(name, true)
			f.Strs(name)
			text := f.OptionalStr(name, "")
			testenv.Check(t, isWrong || utf8.ValidString(text), "the text %q is no UTF-8, and not refused", text)
		}
		if err := f.Err(); err != nil && fault.KindOf(err) != fault.Invalid {
			t.Errorf("kind %d: %v", fault.KindOf(err), err)
		}
	})
}
