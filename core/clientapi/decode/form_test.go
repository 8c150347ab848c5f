package decode

import (
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// null in a body does not replace the query's value, but the field counts as present.
func TestNullIsAbsent(t *testing.T) {
	t.Parallel()

	var rc fasthttp.RequestCtx
	rc.Request.Header.SetMethod(fasthttp.MethodDelete)
	rc.Request.SetRequestURI("/?password=x&skin=1")
	rc.Request.Header.SetContentType("application/json")
	rc.Request.SetBodyString(`{"password":null,"cape":null,"name":null,"skin":2}`)
	f := ParseForm(&rc)
	testenv.Do(t, f.Err())
	testenv.Equal(t, f.Str("password"), "x", "the query's password")
	testenv.Equal(t, f.Integer("skin", 0), 2, "the body's skin")
	testenv.Check(t, f.Has("cape") && f.IsAbsent("cape"), "the null of cape is not seen")
	testenv.Check(t, !f.Has("hat"), "there is a hat")
	testenv.Equal(t, f.OptionalStr("name", "otherwise"), "otherwise", "the name")
}

// An upload's body is rejected with a documented kind of fault, or its fields are not larger than
// the body.
func FuzzReadUpload(f *testing.F) {
	const kind = "multipart/form-data; boundary=b"
	for _, body := range []string{
		"", "--b", "--b--", "--b\r\n\r\n\r\n--b--\r\n", "x\r\n--b\nA: b\n\nc\n--b--",
		"--b\r\nContent-Disposition: form-data; name=name\r\n\r\nN\r\n--b\r\nContent-Disposition: form-data; name=file; filename=a.png\r\n\r\n\x89PNG\r\n--b--\r\n",
		"--b\r\nContent-Disposition: form-data; name=\"file[]\"\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=89PNG=\r\n--b--\r\n",
		"--b\r\nContent-Disposition: form-data; name*=UTF-8''file; name*0=a\r\n folded\r\n\r\n\r\n--b\t\r\n\r\n--b--",
	} {
		f.Add(kind, []byte(body))
	}
	f.Add("multipart/form-data", []byte("--"))
	f.Add(`Multipart/Form-Data; boundary="a \" b"; boundary*=c`, []byte("--a"))
	f.Add("text/plain", []byte("x"))

	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		var rc fasthttp.RequestCtx
		rc.Request.Header.SetMethod(fasthttp.MethodPost)
		rc.Request.Header.SetContentType(kind)
		rc.Request.SetBody(body)
		f := ParseUpload(&rc)
		if err := f.bodyError; err != nil {
			if kind := fault.KindOf(err); kind != fault.Malformed && kind != fault.UnsupportedMedia {
				t.Fatalf("kind %d: %v", kind, err)
			}
			return
		}
		size, values := len(f.File), 0
		for name, value := range f.byName {
			for _, text := range value.values {
				size += len(text)
				values++
			}
			f.OptionalStr(name, "")
			f.OptionalBool(name, true)
		}
		testenv.Check(t, size <= len(body) && values <= maxFields,
			"of %d bytes %d become %d fields", len(body), size, values)
	})
}
