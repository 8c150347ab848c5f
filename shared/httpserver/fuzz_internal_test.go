package httpserver

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

// The scan does not depend on how the head is split into reads.
func FuzzHeadScan(f *testing.F) {
	for _, head := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\nHost: a\n\n", "\r\n\n\r\nGET / HTTP/1.1\r\nA: b\r\n\r\nbody\n\n", "GET / HTTP/1.1\r\n\n", "\r\r\n", "a\r\n\r", "a\r\nb\r\r\n\r\nc",
	} {
		f.Add([]byte(head), uint8(3))
	}
	f.Fuzz(func(t *testing.T, head []byte, size uint8) {
		var whole, parts headScan
		whole.start()
		parts.start()
		want, wantErr := whole.scan(head)
		got, step := 0, max(1, int(size))
		var err error
		for rest := head; len(rest) > 0 && err == nil && parts.active; {
			part := rest[:min(step, len(rest))]
			var n int
			n, err = parts.scan(part)
			got, rest = got+n, rest[len(part):]
		}
		if !parts.active {
			got = len(head)
		}
		if got != want || err != wantErr || parts.active != whole.active { //nolint:errorlint // errBareLF or nil
			t.Errorf("%q in parts of %d: %d, %v, %t; want %d, %v, %t", head, step, got, err, parts.active, want, wantErr, whole.active)
		}
	})
}

// An id is the client's or a generated one, and is safe in a header and a log line.
func FuzzRequestID(f *testing.F) {
	for _, sent := range []string{"", "abc-123_X.y", "a b", "a\r\nb: c", strings.Repeat("a", 65), "é"} {
		f.Add([]byte(sent))
	}
	ours, word := regexp.MustCompile("^[0-9a-f]{16}$"), regexp.MustCompile(`^[-_.0-9A-Za-z]{1,64}$`)
	f.Fuzz(func(t *testing.T, sent []byte) {
		got := appendRequestID(nil, sent)
		if word.Match(sent) != bytes.Equal(got, sent) && !ours.Match(sent) || !word.Match(sent) && !ours.Match(got) || bytes.HasSuffix(got, []byte("\n")) {
			t.Errorf("the id of %q is %q", sent, got)
		}
	})
}

// The weak comparison matches whenever the strong one does, and only tags in the list match.
func FuzzMatchETag(f *testing.F) {
	for _, list := range []string{"*", `"a"`, `W/"a"`, `"b", W/"a" ,"c"`, `"a,"`, `W/`, `"`, `"a`, `b"a"`} {
		f.Add([]byte(list))
	}
	tag := []byte(`"a"`)
	f.Fuzz(func(t *testing.T, list []byte) {
		weak, strong := MatchETag(list, tag, true), MatchETag(list, tag, false)
		if strong && !weak || weak && !bytes.Contains(list, tag) && string(bytes.TrimSpace(list)) != "*" {
			t.Errorf("%q has the tag %s: %t, %t", list, tag, weak, strong)
		}
		if before, _, found := bytes.Cut(list, []byte(`"`)); !found && string(bytes.TrimSpace(before)) != "*" && !MatchETag(append(bytes.Clone(list), `, "x", W/"a"`...), tag, true) {
			t.Errorf("after %q no tag is found", list)
		}
	})
}
