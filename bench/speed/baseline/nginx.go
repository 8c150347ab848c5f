package baseline

import (
	"context"
	_ "embed" // for nginx.conf
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/loopback"
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

// WriteFiles writes all responses into a directory for StartNginx, in both layouts. Equal bodies are
// hard links to one file in both.
func WriteFiles(directory string, r *Record) error {
	body := func(number int) string { return filepath.Join(directory, string(ByBody), fmt.Sprintf("%05d", number)) }
	if err := os.Mkdir(filepath.Join(directory, string(ByBody)), 0o700); err != nil {
		return err
	}
	for i := range r.Bodies {
		if err := os.WriteFile(body(i), r.Bodies[i], 0o600); err != nil {
			return err
		}
	}
	for i := range r.Full {
		name := filepath.Join(directory, string(ByAddress), addressFile(&r.Full[i]))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		if err := os.Link(body(r.Full[i].Body), name); err != nil {
			return err
		}
	}
	return nil
}

// StartNginx starts nginx with the files that WriteFiles has written into a directory, in one of
// the layouts. It keeps up to open files open, see RaiseFileLimit, and sends the headers of one
// typical response with all of them.
func StartNginx(ctx context.Context, env Env, directory string, layout Layout, open int, r *Record) (*Server, error) {
	version, err := nginxProgram.Version(ctx)
	if err != nil {
		return nil, err
	}
	full, unmodified, err := loopback.FreeAddresses()
	if err != nil {
		return nil, err
	}
	work, err := env.mkdir("nginx")
	if err != nil {
		return nil, err
	}
	config := filepath.Join(work, "nginx.conf")
	root := filepath.Join(directory, string(layout))
	if err := os.WriteFile(config, []byte(nginxConfig(full, unmodified, work, root, open, typicalResponse(r.Full).Headers)), 0o600); err != nil {
		return nil, err
	}
	name := "nginx, " + string(layout)
	p, err := Run(env, name, nil, nil, "nginx", "-c", config)
	if err != nil {
		return nil, err
	}
	target := addressFile
	if layout == ByBody {
		target = bodyFile
	}
	s := &Server{Name: name, Version: version, Process: p, Address: full, Conditional: unmodified, OwnTags: true, target: target}
	return s.awaitListening(ctx)
}

//go:embed nginx.conf
var nginxConf string

// nginxConfig returns a configuration of one process that does as little as possible: it keeps
// files open, and adds no header that can be omitted. The headers are the same for all files, and
// of average length.
func nginxConfig(full, unmodified, work, root string, open int, headers []Header) string {
	var added, tag, mime string
	for _, h := range headers {
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
	return strings.NewReplacer(
		"{full}", full, "{unmodified}", unmodified, "{work}", work, "{root}", root, "{open}", strconv.Itoa(open),
		"{type}", mime, "{headers}", added, "{etag}", tag,
	).Replace(nginxConf)
}
