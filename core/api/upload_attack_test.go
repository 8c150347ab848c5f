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
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core/coretest"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// A malicious file is rejected with the reason, or only its pixels are stored. Large files, which take
// minutes under the race detector, are left to the tests of skin.ParseUpload and TestMemoryOfUploads.
func TestMaliciousFiles(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)

	c := listen(t)
	corpus := slices.DeleteFunc(skintest.Corpus(), func(file skintest.File) bool { return len(file.Data) > 64<<10 })
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
			a.IsError(t, 422, 4, "file")
			testenv.Contains(t, message(t, a), file.WantError, "%s: the answer", file.Name)
			continue
		}
		if a.Status != 200 {
			t.Errorf("%s: %d %s", file.Name, a.Status, a.Body)
			continue
		}
		sheet := c.site.storedSheet(t, a)
		same := sheet.Width == file.Sheet.Width && sheet.Height == file.Sheet.Height && bytes.Equal(sheet.Pix, file.Sheet.Pix)
		testenv.Check(t, same, "%s: the pixels are not the ones uploaded", file.Name)
		testenv.Check(t, file.Payload == "" || !bytes.Contains(c.site.storedFile(t, a), []byte(file.Payload)),
			"%s: the stored file holds %q", file.Name, file.Payload)
		stored[a.Field(t, "data", "hash")] = true
	}
	t.Logf("of %d files %d are refused; the longest, %v, takes %s", len(corpus), refused, longest.Round(time.Millisecond), slowest)

	// Rejected files are not stored.
	c.site.HasCount(t, len(corpus)-refused, "SELECT count(*) FROM textures")
	for object, err := range c.site.Files.List(t.Context()) {
		testenv.Equal(t, err == nil && stored[object.Hash.String()], true, "%v, %v in the store is an upload", object, err)
	}
}

// message returns the error message about the file.
func message(t *testing.T, r response) string {
	t.Helper()
	if r.Status != 422 {
		return r.Field(t, "message")
	}
	return r.Field(t, "errors", "file")
}

// storedFile returns the stored file of an upload.
func (s testSite) storedFile(t *testing.T, a response) []byte {
	t.Helper()
	hash := testenv.Must(skin.ParseHash(a.Field(t, "data", "hash")))(t)
	return testenv.Must(s.Files.Get(t.Context(), hash))(t)
}

// storedSheet returns the stored pixels of an upload. Two decoders must agree on them; one of them
// rejects files with additional data.
func (s testSite) storedSheet(t *testing.T, a response) skin.Sheet {
	t.Helper()
	file := s.storedFile(t, a)
	sheet := testenv.Must(skintest.Read(file))(t)
	decoded := testenv.Must(png.Decode(bytes.NewReader(file)))(t)
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
		a := c.signUp(t).Send(t, "POST", "/api/textures", raw(test.kind, test.content))
		if a.Status != test.status {
			t.Errorf("%s: %d %s; want %d", test.name, a.Status, a.Body, test.status)
			continue
		}
		if test.status != 200 {
			testenv.Contains(t, message(t, a), test.want, "%s: the answer", test.name)
			continue
		}
		sheet := c.site.storedSheet(t, a)
		testenv.Equal(t, bytes.Equal(sheet.Pix, want.Pix), true, "%s: the pixels are the ones uploaded", test.name)
		c.site.Exec(t, "DELETE FROM closet_items")
		c.site.Exec(t, "DELETE FROM textures") // so that the same pixels can be uploaded again
	}
}

// Only an upload may take longer to arrive, and only with a token.
func TestUploadReadTimeout(t *testing.T) {
	t.Parallel()
	c := listen(t, "READ_TIMEOUT=300ms").signUp(t)
	form := encodeMultipart(t, "name=N&type=steve", skinFile(t, 1))
	open := func(target, headers string, length, sent int) net.Conn {
		t.Helper()
		conn := testenv.Must(net.Dial("tcp", c.HTTP.Addr))(t)
		t.Cleanup(func() { _ = conn.Close() })
		testenv.Must(fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: veneer.test\r\nContent-Type: %s\r\n%s"+
			"Content-Length: %d\r\n\r\n%s", target, form.ContentType, headers, length, form.Content[:sent]))(t)
		return conn
	}
	status := func(conn net.Conn) int {
		t.Helper()
		var resp fasthttp.Response
		testenv.Do(t, resp.Read(bufio.NewReader(conn)))
		return resp.StatusCode()
	}

	length, token := len(form.Content), "Authorization: Bearer "+c.Token+"\r\n"
	upload := open("/api/textures?x=1", token, length, 10)
	for range 2 { // the timeout of other requests has then passed for the upload, too
		testenv.Equal(t, status(open("/api/players", token, length, 10)), 408, "the status of half of another request")
	}
	testenv.Must(upload.Write(form.Content[10:]))(t)
	testenv.Equal(t, status(upload), http.StatusOK, "the status of an upload that took its time")
	// The server does not wait for these bodies.
	for headers, want := range map[string]int{"": 401, "Authorization: Bearer " + c.Token + "x\r\n": 401} {
		testenv.Equal(t, status(open("/api/textures", headers, length, 1)), want, "the status of an upload with %q", headers)
	}
	for target, want := range map[string]int{"/api/nothing": 404, "/api/auth/refresh": 401, "/api/user": 405} {
		testenv.Equal(t, status(open(target, "", length, 1)), want, "the status of a body sent to %s", target)
	}
}

// Malicious HTTP requests are rejected, or parsed as the RFCs require.
func TestMaliciousUploadRequests(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)

	c := listen(t, "UPLOAD_TIMEOUT=2s", "READ_TIMEOUT=2s").signUp(t)
	want, accepted := firstSkin(), 0
	whole := encodeMultipart(t, "name=N&type=steve", skinFile(t, 1))
	content := string(whole.Content)
	compressed := string(gzipped(t, whole.Content))
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
		{"a body that is compressed", "Content-Encoding: gzip\r\n" + length(len(compressed)) + compressed, 415, "must not be compressed"},
		{"a body that would become large", "Content-Encoding: gzip\r\n" + length(len(bomb)) + bomb, 415, "must not be compressed"},
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
		conn := testenv.Must(net.Dial("tcp", c.HTTP.Addr))(t)
		request := "POST /api/textures HTTP/1.1\r\nHost: veneer.test\r\nConnection: close\r\nAuthorization: Bearer " + c.Token +
			"\r\nContent-Type: " + whole.ContentType + "\r\n" + test.rest
		testenv.Must(conn.Write([]byte(request)))(t)
		var resp fasthttp.Response
		if err := resp.Read(bufio.NewReader(conn)); err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		_ = conn.Close()
		a := coretest.NewResponse("POST", "/api/textures", whole, &resp)
		checkHeaders(t, a)
		if a.Status != test.status {
			t.Errorf("%s: %d %s; want %d", test.name, a.Status, a.Body, test.status)
			continue
		}
		if a.Status == 200 {
			accepted++
			sheet := c.site.storedSheet(t, a)
			testenv.Equal(t, bytes.Equal(sheet.Pix, want.Pix), true, "%s: the pixels are the ones uploaded", test.name)
		} else {
			testenv.Contains(t, message(t, a), test.want, "%s: the answer", test.name)
		}
	}
	c.site.HasCount(t, accepted, "SELECT count(*) FROM textures")
}

func gzipped(t *testing.T, content []byte) []byte {
	t.Helper()
	var file bytes.Buffer
	w := gzip.NewWriter(&file)
	testenv.Must(w.Write(content))(t)
	testenv.Do(t, w.Close())
	return file.Bytes()
}
