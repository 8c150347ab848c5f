package baseline

import (
	_ "embed" // for the configurations
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Layout is how responses are stored as files.
type Layout string

// The layouts.
const (
	ByAddress Layout = "by address" // a file for every address, as a site would have it
	ByBody    Layout = "by body"    // a file for every distinct body
)

// addressFile returns the path of a response's file by address. It is as long as the address.
func addressFile(a *Response) string { return strings.ReplaceAll(a.Target, "?", ",") }

// bodyFile returns the path of a response's file by body, followed by a query that nginx ignores: so
// the request is as long as that for the address.
func bodyFile(a *Response) string {
	file := fmt.Sprintf("/%05d?", a.Body)
	return file + a.Target[min(len(file), len(a.Target)):]
}

// writeFiles writes all responses into a directory in a layout. Equal bodies are hard links to one
// file.
func (l Layout) writeFiles(tb testing.TB, directory string, r *Record) (root string) {
	tb.Helper()
	body := func(number int) string { return filepath.Join(directory, string(ByBody), fmt.Sprintf("%05d", number)) }
	testenv.Do(tb, os.MkdirAll(filepath.Dir(body(0)), 0o700))
	for i := range r.Bodies {
		testenv.Do(tb, os.WriteFile(body(i), r.Bodies[i], 0o600))
	}
	root = filepath.Join(directory, string(l))
	for i := range r.Full {
		if l == ByAddress {
			name := filepath.Join(root, addressFile(&r.Full[i]))
			testenv.Do(tb, os.MkdirAll(filepath.Dir(name), 0o700))
			testenv.Do(tb, os.Link(body(r.Full[i].Body), name))
		}
	}
	return root
}

//go:embed nginx.conf
var nginxConf string

// StartNginx starts nginx with responses as files, in one of the layouts, as one process that does as little as
// possible. It keeps up to open files open, see RaiseFileLimit, adds no header that can be omitted, and sends the
// headers of one response of median length with all files.
func StartNginx(tb testing.TB, layout Layout, open int, r *Record) *Server {
	tb.Helper()
	s, work := newServer(tb, "nginx, "+string(layout)), tb.TempDir()
	s.OwnTags, s.target, s.Conditional = true, addressFile, stack.FreeAddress(tb)
	if layout == ByBody {
		s.target = bodyFile
	}
	var added, tag, mime string
	for _, h := range typicalResponse(r.Full).Headers {
		line := fmt.Sprintf("add_header %s %s;\n", h.Name, strconv.Quote(h.Value))
		switch h.Name {
		case fasthttp.HeaderContentType:
			mime = h.Value
		case etag:
			tag = line
		default:
			added += line
		}
	}
	return s.start(tb, nil, "nginx", "-c", stack.WriteFile(tb, tb.TempDir(), "nginx.conf", strings.NewReplacer(
		"{full}", s.Address, "{unmodified}", s.Conditional, "{work}", work, "{root}", layout.writeFiles(tb, work, r),
		"{open}", strconv.Itoa(open), "{type}", mime, "{headers}", added, "{etag}", tag,
	).Replace(nginxConf)))
}

//go:embed nginx-cache.conf
var nginxCacheConf string

// StartNginxCache starts nginx as a cache in front of the server at an address, with at most these
// bytes of responses in files.
func StartNginxCache(tb testing.TB, upstream string, bytes int64) *Server {
	tb.Helper()
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;" // the worker's own user has no access to the directory
	}
	s := newServer(tb, "nginx proxy_cache")
	s.OwnTags = true
	return s.start(tb, nil, "nginx", "-c", stack.WriteFile(tb, tb.TempDir(), "nginx.conf", strings.NewReplacer(
		"{user}", user, "{work}", tb.TempDir(), "{address}", s.Address, "{upstream}", upstream,
		"{bytes}", strconv.FormatInt(bytes, 10), "{open}", strconv.Itoa(RaiseFileLimit(tb)),
	).Replace(nginxCacheConf)))
}
