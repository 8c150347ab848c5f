package decode

import (
	"testing"

	"github.com/valyala/fasthttp"
)

// BenchmarkFields parses a JSON body as most clients send it, and reads its fields.
func BenchmarkFields(b *testing.B) {
	for _, bench := range []struct {
		name, kind, body string
		read             func(*Form)
	}{
		{"JSON texts", "application/json", `{"email":"zoe@example.com","password":"correct horse"}`, func(f *Form) {
			f.Str("email")
			f.Str("password")
		}},
		{"JSON integers", "application/json", `{"skin":62,"cape":7}`, func(f *Form) {
			f.OptionalInteger("skin")
			f.OptionalInteger("cape")
		}},
		{"JSON escapes", "application/json", `{"name":"Zo\u00eb \ud83d\ude00"}`, func(f *Form) { f.Str("name") }},
		{"form", "application/x-www-form-urlencoded", "email=zoe%40example.com&password=correct+horse", func(f *Form) {
			f.Str("email")
			f.Str("password")
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			var rc fasthttp.RequestCtx
			rc.Request.Header.SetMethod(fasthttp.MethodPut)
			rc.Request.Header.SetContentType(bench.kind)
			rc.Request.SetBodyString(bench.body)
			b.ReportAllocs()
			for b.Loop() {
				f := ParseForm(&rc)
				if bench.read(f); f.Err() != nil {
					b.Fatal(f.Err())
				}
			}
		})
	}
}
