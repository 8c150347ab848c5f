package httpserver

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"sync"

	"github.com/valyala/fasthttp"
)

// CacheForever is the Cache-Control of files that are addressed by their digest.
const CacheForever = "public, max-age=31536000, immutable"

// Asset is a file that is served with gzip, with Brotli or as it is. It is compressed once: at the
// first request for a coding, or by Compress.
type Asset struct {
	contentType, cacheControl string
	identity                  coding
	gzip, brotli              func() coding
}

// NewCompressedAsset returns a file that is served as it is, since compressing it saves nothing: a picture.
func NewCompressedAsset(content []byte, contentType, cacheControl string) *Asset {
	return &Asset{contentType: contentType, cacheControl: cacheControl, identity: coding{content, `"` + Digest(content) + `"`}}
}

// coding is a file in one content coding. Each coding has its own entity tag, since the bytes
// differ (RFC 9110, section 8.8.3.3).
type coding struct {
	body []byte
	etag string // with quotes
}

// NewAsset returns a file. With an empty cacheControl, Serve leaves the header as it is set.
func NewAsset(content []byte, contentType, cacheControl string) *Asset {
	tag := Digest(content)
	return &Asset{
		contentType, cacheControl,
		coding{content, `"` + tag + `"`},
		sync.OnceValue(func() coding {
			return coding{fasthttp.AppendGzipBytesLevel(nil, content, fasthttp.CompressBestCompression), `"` + tag + `-gzip"`}
		}),
		sync.OnceValue(func() coding {
			return coding{fasthttp.AppendBrotliBytesLevel(nil, content, brotliLevel), `"` + tag + `-br"`}
		}),
	}
}

// brotliLevel is below the best level, 11, which takes a second of a processor for 477 KB.
const brotliLevel = 9

// SourceHash returns the source in a Content-Security-Policy that allows an inline style or script.
func SourceHash(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Digest returns the first 64 bits of the SHA-256 as 16 hexadecimal digits.
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8])
}

// HasContentOf reports whether two files have the same content.
func (a *Asset) HasContentOf(other *Asset) bool { return a.identity.etag == other.identity.etag }

// Compress compresses the file, so that no request waits for it.
func (a *Asset) Compress() {
	a.brotli()
	a.gzip()
}

// Serve answers GET and HEAD with the file, or with 304.
func (a *Asset) Serve(rc *fasthttp.RequestCtx) {
	request, header := &rc.Request.Header, &rc.Response.Header
	chosen, name := a.identity, ""
	switch {
	case a.brotli == nil:
	case request.HasAcceptEncoding("br"):
		chosen, name = a.brotli(), "br"
	case request.HasAcceptEncoding("gzip"):
		chosen, name = a.gzip(), "gzip"
	}
	if a.brotli != nil {
		header.Add(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
	}
	header.Set(fasthttp.HeaderETag, chosen.etag)
	if a.cacheControl != "" {
		header.Set(fasthttp.HeaderCacheControl, a.cacheControl)
	}
	if MatchETag(request.Peek(fasthttp.HeaderIfNoneMatch), []byte(chosen.etag), true) {
		rc.SetStatusCode(fasthttp.StatusNotModified)
		return
	}
	header.SetContentType(a.contentType)
	if name != "" {
		header.SetContentEncoding(name)
	}
	rc.Response.SetBodyRaw(chosen.body) // the bytes are shared and never change
}
