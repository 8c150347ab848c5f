package api

import (
	"strings"
)

// downloadName is the name under which browsers save a response.
type downloadName struct {
	isGiven bool
	value   string // the value in the path
}

// downloadOf returns the name for a request with the parameter download, or at a URL for downloads.
func downloadOf(t target, query string) downloadName {
	compat := t.compat.route
	isDownload := compat != nil && compat.IsAttachment
	hasParameter := compat != nil || t.route.view.HasDownload
	if !isDownload && (!hasParameter || !parameterOf(query, "download").given) {
		return downloadName{}
	}
	return downloadName{isGiven: true, value: t.value}
}

// appendDisposition appends the value of Content-Disposition (RFC 6266). A name that is no token of
// ASCII is encoded as RFC 8187 says.
func (d downloadName) appendDisposition(dst []byte, format format) []byte {
	dst = append(dst, "attachment; filename"...)
	isToken := !strings.ContainsFunc(d.value, func(c rune) bool { return c > '~' || !isAttributeByte(byte(c)) })
	if isToken {
		dst = append(append(dst, '='), d.value...)
	} else {
		dst = append(dst, "*=UTF-8''"...)
		const hex = "0123456789ABCDEF"
		for i := range len(d.value) {
			if c := d.value[i]; isAttributeByte(c) {
				dst = append(dst, c)
			} else {
				dst = append(dst, '%', hex[c>>4], hex[c&0xf])
			}
		}
	}
	return append(append(dst, '.'), formatNames[format]...)
}

// isAttributeByte reports whether a byte is one of attr-char (RFC 8187, section 3.2.1).
func isAttributeByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$&+-.^_`|~", c) >= 0
}
