//go:build !race

package api_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"image"
	"image/png"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// A malicious file is rejected with the reason, or only its pixels are stored.
func TestMaliciousFiles(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)

	c := listen(t)
	corpus := skintest.Corpus()
	var longest time.Duration
	slowest, refused, stored := "", 0, map[string]bool{}
	for _, file := range corpus {
		uploader := c.signUp(t) // a new user has uploaded none of these pixels
		began := time.Now()
		a := uploader.upload(t, "name=N&public=false&type="+file.Type, file.Data)
		if took := time.Since(began); took > longest {
			longest, slowest = took, file.Name
		}
		if file.WantError != "" {
			refused++
			a.isError(t, 422, 4, "file")
			if sentence := a.message(t); !strings.Contains(sentence, file.WantError) {
				t.Errorf("%s: the answer says %q; want a sentence with %q", file.Name, sentence, file.WantError)
			}
			continue
		}
		if a.status != 200 {
			t.Errorf("%s: %d %s", file.Name, a.status, a.body)
			continue
		}
		sheet := c.site.storedSheet(t, a)
		if sheet.Width != file.Sheet.Width || sheet.Height != file.Sheet.Height || !bytes.Equal(sheet.Pix, file.Sheet.Pix) {
			t.Errorf("%s: the pixels are not the ones uploaded", file.Name)
		}
		if file.Payload != "" && bytes.Contains(c.site.storedFile(t, a), []byte(file.Payload)) {
			t.Errorf("%s: the stored file holds %q", file.Name, file.Payload)
		}
		stored[a.field(t, "data", "hash")] = true
	}
	t.Logf("of %d files %d are refused; the longest, %v, takes %s", len(corpus), refused, longest.Round(time.Millisecond), slowest)

	// Rejected files are not stored.
	if n := c.site.count(t, "SELECT count(*) FROM textures"); n != len(corpus)-refused {
		t.Errorf("there are %d textures; want %d", n, len(corpus)-refused)
	}
	for object, err := range c.site.files.List(t.Context()) {
		if err != nil || !stored[object.Hash.String()] {
			t.Errorf("the store holds %v, %v", object, err)
		}
	}
}

// message returns the error message about the file.
func (a response) message(t *testing.T) string {
	t.Helper()
	if a.status != 422 {
		return a.field(t, "message")
	}
	return a.field(t, "errors", "file")
}

// storedFile returns the stored file of an upload.
func (s *testSite) storedFile(t *testing.T, a response) []byte {
	t.Helper()
	hash, err := skin.ParseHash(a.field(t, "data", "hash"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := s.files.Get(t.Context(), hash)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// storedSheet returns the stored pixels of an upload. Two decoders must agree on them; one of them
// rejects files with additional data.
func (s *testSite) storedSheet(t *testing.T, a response) skin.Sheet {
	t.Helper()
	file := s.storedFile(t, a)
	sheet, err := skintest.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	picture, ok := decoded.(*image.NRGBA)
	if !ok || picture.Rect != image.Rect(0, 0, sheet.Width, sheet.Height) || !bytes.Equal(picture.Pix, sheet.Pix) {
		t.Fatalf("the two decoders see different pixels in %.16x", file)
	}
	return sheet
}

// firstSkin returns the pixels of the first variant of skinFile.
func firstSkin() skin.Sheet {
	sheet := artwork.Explorer()
	sheet.Pix[0] = 1
	return sheet
}

// form returns a multipart body of raw parts.
func form(boundary string, parts ...string) string {
	var text strings.Builder
	for _, part := range parts {
		text.WriteString("--" + boundary + "\r\n" + part + "\r\n")
	}
	return text.String() + "--" + boundary + "--\r\n"
}

// Malicious multipart bodies are rejected, or parsed like all others.
func TestMaliciousUploadForms(t *testing.T) {
	t.Parallel()

	c := listen(t)
	const multipart = "multipart/form-data; boundary=b"
	valid, other := string(skinFile(t, 1)), string(skinFile(t, 2))
	want := firstSkin()
	name := "Content-Disposition: form-data; name=name\r\n\r\nN"
	kind := "Content-Disposition: form-data; name=type\r\n\r\nsteve"
	file := func(headers, content string) string {
		return "Content-Disposition: form-data; name=file; filename=a.png" + headers + "\r\n\r\n" + content
	}
	many := func(n int) []string {
		parts := []string{name, kind}
		for range n {
			parts = append(parts, file("", valid[:8]))
		}
		return parts
	}
	const malformed = "The body is no well-formed multipart/form-data."
	for _, test := range []struct {
		name, kind, content string
		status              int
		want                string // part of the message
	}{
		{"no file", multipart, form("b", name, kind), 422, "Send the PNG file as the field file"},
		{"an empty file", multipart, form("b", name, kind, file("", "")), 422, "it is empty"},
		{"a file that is a text field", multipart, form("b", name, kind, "Content-Disposition: form-data; name=file\r\n\r\n"+valid), 200, ""},
		{"a file of another name", multipart, form("b", name, kind, strings.Replace(file("", valid), "name=file", "name=File", 1)), 422, "Send the PNG file"},
		{"a file without a name", multipart, form("b", name, kind, "Content-Disposition: form-data; filename=a.png\r\n\r\n"+valid), 422, "Send the PNG file"},
		{"a file that is an attachment", multipart, form("b", name, kind, "Content-Disposition: attachment; name=file\r\n\r\n"+valid), 422, "Send the PNG file"},
		{"a file without a disposition", multipart, form("b", name, kind, "Content-Type: image/png\r\n\r\n"+valid), 422, "Send the PNG file"},
		{"two files", multipart, form("b", name, kind, file("", valid), file("", other)), 200, ""},
		{"a harmless file before a harmful one", multipart, form("b", name, kind, file("", valid), file("", "<script>")), 200, ""},
		{"a harmful file before a harmless one", multipart, form("b", name, kind, file("", "<script>"), file("", valid)), 422, "only PNG is read"},
		{"64 parts", multipart, form("b", append(many(0), append([]string{file("", valid)}, many(59)...)...)...), 200, ""},
		{"65 parts", multipart, form("b", many(63)...), 400, "more than 64 fields"},
		{"10,000 files", multipart, form("b", many(10_000)...), 400, "more than 64 fields"},
		{"a page by its type", multipart, form("b", name, kind, file("\r\nContent-Type: text/html", valid)), 200, ""},
		{"a picture by its type", multipart, form("b", name, kind, file("\r\nContent-Type: image/png", "<script>")), 422, "only PNG is read"},
		{"a path for a name", multipart, form("b", name, kind, strings.Replace(file("", valid), "a.png", `"../../../etc/passwd\x00.png"`, 1)), 200, ""},
		{"a file in base64", multipart, form("b", name, kind, file("\r\nContent-Transfer-Encoding: base64", "iVBORw0KGgo=")), 422, "only PNG is read"},
		{"a file that says it is compressed", multipart, form("b", name, kind, file("\r\nContent-Encoding: gzip", valid)), 200, ""},
		{"a part of 20,000 headers", multipart, form("b", name, kind, file(strings.Repeat("\r\nA: b", 20_000), valid)), 400, malformed},
		{"a header of a part without an end", multipart, form("b", name, kind, "Content-Disposition: form-data; name=file"), 400, malformed},
		{"a header of a part of 900 KiB", multipart, form("b", name, kind, file("\r\nA: "+strings.Repeat("b", 900<<10), valid)), 200, ""},
		{"a form in a form", multipart, form("b", name, kind, file("\r\nContent-Type: multipart/mixed; boundary=c", form("c", file("", valid)))), 422, "only PNG is read"},
		{"no last boundary", multipart, strings.TrimSuffix(form("b", name, kind, file("", valid)), "--b--\r\n"), 400, malformed},
		{"half a last boundary", multipart, strings.TrimSuffix(form("b", name, kind, file("", valid)), "-\r\n"), 400, malformed},
		{"something before the first boundary", multipart, "<script>\r\n" + form("b", name, kind, file("", valid)), 200, ""},
		{"something behind the last boundary", multipart, form("b", name, kind, file("", valid)) + "<script>", 200, ""},
		{"the boundary within the file", multipart, form("b", name, kind, file("", valid[:40]+"\r\n--b--\r\n"+valid[40:])), 422, "it is cut off"},
		{"what looks like the boundary within the file", multipart, form("b", name, kind, file("", valid+"\r\n--bb\r\n--b-\r\n-b--")), 200, ""},
		{"lines that end without a return", multipart, strings.ReplaceAll(form("b", name, kind, file("", "text")), "\r\n", "\n"), 422, "only PNG is read"},
		{"another boundary than it says", multipart, form("c", name, kind, file("", valid)), 400, malformed},
		{"no parts", multipart, form("b"), 422, "Send the PNG file"},
		{"a boundary and nothing else", multipart, "--b", 400, malformed},
		{"no boundary", "multipart/form-data", form("b", name, kind, file("", valid)), 400, malformed},
		{"an empty boundary", `multipart/form-data; boundary=""`, form("", name, kind, file("", valid)), 400, malformed},
		{"two boundaries", multipart + "; boundary=c", form("b", name, kind, file("", valid)), 415, "must be multipart/form-data"},
		{"a boundary of 10,000 letters", "multipart/form-data; boundary=" + strings.Repeat("b", 10_000), form(strings.Repeat("b", 10_000), name, kind, file("", valid)), 400, malformed},
		{"a boundary in parts", "multipart/form-data; boundary*0=b; boundary*1=c", form("bc", name, kind, file("", valid)), 200, ""},
		{"a form of another kind", "multipart/mixed; boundary=b", form("b", name, kind, file("", valid)), 415, "must be multipart/form-data"},
		{"two kinds", "multipart/form-data; boundary=b, text/html", form("b", name, kind, file("", valid)), 400, malformed},
		{"no kind", "", form("b", name, kind, file("", valid)), 415, "must be multipart/form-data"},
		{"a bare PNG", "image/png", valid, 415, "must be multipart/form-data"},
		{"a bare PNG that says it is a form", multipart, valid, 400, malformed},
		{"JSON", "application/json", `{"name":"N","type":"steve","file":"iVBORw0KGgo="}`, 415, "must be multipart/form-data"},
	} {
		a := c.signUp(t).send(t, "POST", "/api/textures", body{test.kind, []byte(test.content)})
		if a.status != test.status {
			t.Errorf("%s: %d %s; want %d", test.name, a.status, a.body, test.status)
			continue
		}
		if test.status != 200 {
			if sentence := a.message(t); !strings.Contains(sentence, test.want) {
				t.Errorf("%s: the answer says %q; want a sentence with %q", test.name, sentence, test.want)
			}
			continue
		}
		if sheet := c.site.storedSheet(t, a); !bytes.Equal(sheet.Pix, want.Pix) {
			t.Errorf("%s: the pixels are not the ones uploaded", test.name)
		}
		c.site.exec(t, "DELETE FROM closet_items")
		c.site.exec(t, "DELETE FROM textures") // so that the same pixels can be uploaded again
	}
}

// Only an upload may take longer to arrive, and only with a token.
func TestUploadReadTimeout(t *testing.T) {
	t.Parallel()

	c := listen(t, "READ_TIMEOUT=300ms").signUp(t)
	form := encodeMultipart(t, "name=N&type=steve", skinFile(t, 1))
	open := func(target, headers string, length, sent int) net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", c.http.Addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: veneer.test\r\nContent-Type: %s\r\n%sContent-Length: %d\r\n\r\n%s",
			target, form.contentType, headers, length, form.content[:sent]); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	status := func(conn net.Conn) int {
		t.Helper()
		var resp fasthttp.Response
		if err := resp.Read(bufio.NewReader(conn)); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode()
	}

	length, token := len(form.content), "Authorization: Bearer "+c.token+"\r\n"
	upload := open("/api/textures?x=1", token, length, 10)
	for range 2 { // the timeout of other requests has then passed for the upload, too
		if got := status(open("/api/players", token, length, 10)); got != http.StatusRequestTimeout {
			t.Errorf("half of another request is answered with %d; want 408", got)
		}
	}
	if _, err := upload.Write(form.content[10:]); err != nil {
		t.Fatal(err)
	}
	if got := status(upload); got != http.StatusOK {
		t.Errorf("an upload that took its time is answered with %d; want 200", got)
	}
	// The server does not wait for these bodies.
	for headers, want := range map[string]int{"": 401, "Authorization: Bearer " + c.token + "x\r\n": 401} {
		if got := status(open("/api/textures", headers, length, 1)); got != want {
			t.Errorf("an upload with %q is answered with %d; want %d", headers, got, want)
		}
	}
	for target, want := range map[string]int{"/api/nothing": 404, "/api/auth/refresh": 401, "/api/user": 405} {
		if got := status(open(target, "", length, 1)); got != want {
			t.Errorf("a body sent to %s is answered with %d; want %d", target, got, want)
		}
	}
}

// Malicious HTTP requests are rejected, or parsed as the RFCs require.
func TestMaliciousUploadRequests(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)

	c := listen(t, "UPLOAD_TIMEOUT=300ms", "READ_TIMEOUT=300ms").signUp(t)
	want, accepted := firstSkin(), 0
	whole := encodeMultipart(t, "name=N&type=steve", skinFile(t, 1))
	content := string(whole.content)
	compressed := string(gzipped(t, whole.content))
	bomb := string(gzipped(t, make([]byte, 64<<20)))
	const invalid = "The request is no valid HTTP."
	length := func(n any) string { return fmt.Sprintf("Content-Length: %v\r\n\r\n", n) }
	const chunked = "Transfer-Encoding: chunked\r\n\r\n"
	chunks := fmt.Sprintf("%x\r\n%s\r\n", len(content), content)
	for _, test := range []struct {
		name, rest string // follows the headers that all have
		status     int
		want       string
	}{
		{"a body that is compressed", "Content-Encoding: gzip\r\n" + length(len(compressed)) + compressed, 400, "no well-formed"},
		{"a body that would become large", "Content-Encoding: gzip\r\n" + length(len(bomb)) + bomb, 400, "no well-formed"},
		{"a body compressed on the way", "Transfer-Encoding: gzip, chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(compressed), compressed), 400, invalid},
		{"a body in chunks without an end", chunked + chunks, 408, "did not arrive in time"},
		{"a chunk without an end", chunked + fmt.Sprintf("%x\r\n%s", len(content)+1, content), 408, "did not arrive in time"},
		{"a chunk of no bytes that is told of for ever", chunked + "0", 408, "did not arrive in time"},
		{"a chunk of 2⁶³ bytes", chunked + "8000000000000000\r\n" + content, 400, invalid},
		{"a chunk of 2⁶⁰ - 1 bytes", chunked + "fffffffffffffff\r\n" + content, 408, "did not arrive in time"},
		{"a chunk of -1 bytes", chunked + "-1\r\n" + content, 400, invalid},
		{"a chunk of xyz bytes", chunked + "xyz\r\n" + content, 400, invalid},
		{"a chunk that is longer than it says", chunked + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(content)-1, content), 400, invalid},
		{"a body in chunks", chunked + chunks + "0\r\n\r\n", 200, ""},
		{"a body in chunks and of a length", "Content-Length: 5\r\n" + chunked + chunks + "0\r\n\r\n", 400, "not both"},
		{"a body of two lengths", "Content-Length: 5\r\n" + length(len(content)) + content, 400, invalid},
		{"a body of a negative length", length(-1) + content, 400, invalid},
		{"a body of a length that is no number", length("0x10") + content, 400, invalid},
		{"a body of 2⁶⁴ bytes", length("18446744073709551616") + content, 400, invalid},
		{"a body of 2⁶² bytes", length("4611686018427387904") + content, 413, "at most 1048576 bytes"},
		{"a body that is larger than accepted", length(1<<20+64<<10+1) + content, 413, "at most 1048576 bytes"},
		{"a body that does not arrive", length(len(content)), 408, "did not arrive in time"},
		{"half a body", length(len(content)) + content[:len(content)/2], 408, "did not arrive in time"},
		{"less of a body than there is", length(len(content)-10) + content, 400, "no well-formed"},
		{"no body", length(0), 422, "Send the PNG file as the field file"},
	} {
		conn, err := net.Dial("tcp", c.http.Addr)
		if err != nil {
			t.Fatal(err)
		}
		request := "POST /api/textures HTTP/1.1\r\nHost: veneer.test\r\nConnection: close\r\nAuthorization: Bearer " + c.token +
			"\r\nContent-Type: " + whole.contentType + "\r\n" + test.rest
		if _, err := conn.Write([]byte(request)); err != nil {
			t.Fatal(err)
		}
		var resp fasthttp.Response
		if err := resp.Read(bufio.NewReader(conn)); err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		_ = conn.Close()
		a := response{test.name, resp.StatusCode(), &resp.Header, resp.Body()}
		a.check(t)
		if a.status != test.status {
			t.Errorf("%s: %d %s; want %d", test.name, a.status, a.body, test.status)
			continue
		}
		if a.status == 200 {
			accepted++
			if sheet := c.site.storedSheet(t, a); !bytes.Equal(sheet.Pix, want.Pix) {
				t.Errorf("%s: the pixels are not the ones uploaded", test.name)
			}
		} else if sentence := a.message(t); !strings.Contains(sentence, test.want) {
			t.Errorf("%s: the answer says %q; want a sentence with %q", test.name, sentence, test.want)
		}
	}
	if n := c.site.count(t, "SELECT count(*) FROM textures"); n != accepted {
		t.Errorf("there are %d textures; want %d", n, accepted)
	}
}

func gzipped(t *testing.T, content []byte) []byte {
	t.Helper()
	var file bytes.Buffer
	w := gzip.NewWriter(&file)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}
