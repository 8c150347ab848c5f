package api

import (
	"context"
	"net/http"
	"sync"
	"time"
	"unsafe"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/mapping"
	"github.com/veneer-skins/veneer/shared/serve"
	"github.com/veneer-skins/veneer/shared/tracing"
)

// scratch is the memory in which a request is understood and answered.
type scratch struct {
	found shown
	key   [maxKey]byte
	view  [edge.ViewNameBytes]byte
	date  [len(http.TimeFormat)]byte
	tags  []byte
	body  []byte
}

// maxKey is the length of the longest key, save for names that grow when they are
// folded.
const maxKey = len(mapping.HashPrefix) + maxName

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// serveFast answers a request on the fast path, from bytes that were made before and
// without allocations.
func (s *Server) serveFast(c *serve.FastContext) bool {
	about, isHere := subjectOf(borrowed(c.Path))
	if !isHere {
		return false
	}
	memory, _ := c.Scratch.(*scratch)
	if memory == nil {
		memory = new(scratch)
		c.Scratch = memory
	}
	found, err := memory.read(about, borrowed(c.Query), c.At)
	if err != nil {
		return false
	}
	setDefaults(c)
	known, err := s.serveHit(c, found, memory, c.Conditions)
	if err == nil && !known {
		err = s.refusal(c, found)
	}
	switch {
	case err == nil:
		return known
	case fault.KindOf(err) != fault.NotFound && fault.KindOf(err) != fault.Unavailable:
		return false
	}
	c.Refuse(err)
	c.Claim(s.routes.own[about.route][noFormat][outcomeOf(err)])
	return true
}

// refusal returns the fault with which fetch would refuse a request without a try, as there
// are very many when names are made up, or core is away.
func (s *Server) refusal(c *serve.FastContext, found *shown) error {
	if c.IsRefusalLogged() {
		return nil
	}
	err := s.pictures.Refusal(found.want.Key, serve.ClientNetwork(c.Client()))
	if err != nil {
		c.SetCanonical(keyCacheStatus, failedStatus(err))
	}
	return err
}

// image answers a request for what is drawn or kept by way of textures.
func (s *Server) image(rc *fasthttp.RequestCtx, about subject) error {
	memory, _ := scratches.Get().(*scratch)
	defer scratches.Put(memory)
	found, err := memory.read(about, borrowed(rc.URI().QueryString()), rc.Time())
	if err != nil {
		if fault.KindOf(err) == fault.NotFound {
			rc.Response.Header.SetCanonical(keyCacheControl, cacheNotFound)
		}
		return err
	}
	known, err := s.serveHit(serve.ResponseTo(rc), found, memory, rc.Request.Header.RawHeaders())
	if err != nil || known {
		return err
	}
	return s.fetch(rc, found, memory)
}

// serveHit answers a request if all that it takes is in memory, on the fast path and on the
// server alike, and reports whether that is so. Lines are those of the request's fields.
func (s *Server) serveHit(to serve.Response, found *shown, memory *scratch, lines []byte) (known bool, err error) {
	if known, err = s.recall(found, memory); err != nil {
		return true, s.absent(to, found, err)
	}
	if known {
		if found.unchanged, err = found.isUnchanged(lines); err == nil {
			s.show(to, found, memory)
		}
	}
	return known, err
}

// read understands a request that came at a moment.
func (memory *scratch) read(about subject, query string, at time.Time) (found *shown, err error) {
	found = &memory.found
	*found = shown{about: about, at: at}
	found.want, err = wantOf(about, query, memory.key[:0])
	return found, err
}

// recall finds what is asked for in memory, and reports whether all of it is there.
func (s *Server) recall(found *shown, memory *scratch) (known bool, err error) {
	if found.led, known = s.pictures.Recall(found.want.Key, found.at); !known {
		return false, nil
	}
	if err := s.locate(found, memory); err != nil || found.about.route == profile {
		return true, err
	}
	picture, finished := s.pictures.Finished(found.view, memory.view[:0])
	found.etag, found.body = picture.ETag, picture.Body
	return finished, nil
}

// locate finds out which view, or which profile, is to be shown.
func (s *Server) locate(found *shown, memory *scratch) (err error) {
	found.modified = found.dateOf()
	if found.about.route == profile {
		return found.profile(memory)
	}
	found.view, err = s.pictures.View(found.want, found.led)
	return err
}

// maxTries is how often an answer is looked for because another one has become
// right meanwhile.
const maxTries = 3

// fetch answers what image could not: it asks core, fetches and has drawn.
func (s *Server) fetch(rc *fasthttp.RequestCtx, found *shown, memory *scratch) error {
	ctx, cancel := s.door.Bound(rc)
	defer cancel()
	ctx = tracing.WithRequest(ctx, serve.RequestID(rc))
	ctx = edge.WithNetwork(ctx, serve.ClientNetwork(s.door.Proxies.Client(rc)))
	failed := func(err error) error {
		rc.Response.Header.SetCanonical(keyCacheStatus, failedStatus(err))
		return err
	}
	var absence error
	for try := 1; ; try++ {
		var err error
		if found.led, found.source, err = s.pictures.Lookup(ctx, found.want.Key); err != nil {
			return failed(err)
		}
		if absence = s.locate(found, memory); absence == nil {
			if err := s.prepare(ctx, rc, found); err != nil {
				return failed(err)
			}
		}
		// Caches outside may have been told of a change meanwhile, and must not be
		// filled with what was before it.
		found.doubtful = found.source == edge.Stale || !s.pictures.StillLeads(found.want.Key, found.led)
		if !found.doubtful || found.source == edge.Stale || try == maxTries {
			break
		}
	}
	to := serve.ResponseTo(rc)
	if absence != nil {
		return s.absent(to, found, absence)
	}
	s.show(to, found, memory)
	return nil
}

// prepare finds out what there is to be shown of a view.
func (s *Server) prepare(ctx context.Context, rc *fasthttp.RequestCtx, found *shown) (err error) {
	isProfile := found.about.route == profile
	if !isProfile {
		found.etag = s.pictures.ETag(found.view)
	}
	// Nothing needs to be fetched or drawn to know that a visitor has it.
	if found.unchanged, err = found.isUnchanged(rc.Request.Header.RawHeaders()); err != nil || found.unchanged || isProfile {
		return err
	}
	picture, how, err := s.pictures.Picture(ctx, found.view)
	// Also when its file is missing: nobody should remember that.
	found.body, found.how = picture.Body, how
	return err
}

// shown is what a request turned out to lead to.
type shown struct {
	at     time.Time // when the request came
	about  subject
	want   edge.Want
	led    mapping.Mapping
	source edge.Source
	// doubtful says that core may know better by now, and so that nobody should
	// keep the answer.
	doubtful bool
	view     edge.View
	how      edge.Outcome
	etag     edge.ETag
	modified int64 // as dateOf returns it
	// unchanged says that the visitor has it. There is no body then.
	unchanged bool
	body      []byte // a profile's is in scratch
}

// outcome returns how the request ended, as metrics tell it.
func (found *shown) outcome() outcome {
	switch {
	case found.unchanged:
		return notModified
	case found.how == edge.Hit && found.source == edge.Asked:
		return rendered
	default:
		return outcomes[found.how]
	}
}

// show responds with a picture, a file or a profile, or that the visitor has it already.
func (s *Server) show(to serve.Response, found *shown, memory *scratch) {
	in := found.format()
	switch {
	case found.unchanged:
		to.SetStatusCode(fasthttp.StatusNotModified)
	case in == formatJSON:
		to.SetBody(found.body)
	default:
		// The bytes are everybody's, and never change.
		to.SetBodyRaw(found.body)
	}
	if !found.unchanged {
		to.SetCanonical(keyContentType, contentTypes[in])
	}
	to.SetCanonical(keyETag, found.etag[:])
	if found.modified > 0 {
		to.SetCanonical(keyLastModified, fasthttp.AppendHTTPDate(memory.date[:0], time.Unix(found.modified, 0)))
	}
	to.SetCanonical(keyCacheControl, s.cacheControl(found))
	to.SetCanonical(keyCacheStatus, cacheStatus(found.source, found.how))
	memory.tags = appendTags(memory.tags[:0], found.want, found.led)
	switch {
	case found.about.route == profile:
		if cape := found.led.Player.Cape; cape != nil {
			memory.tags = appendTagID(memory.tags, "texture-", cape.TID)
		}
	case !found.view.File:
		memory.tags = appendTag(memory.tags, "render-", s.pictures.Revision())
	}
	s.tags.set(to, memory.tags)
	to.Claim(s.routes.own[found.about.route][in][found.outcome()])
}

// absent returns a fault of locate, and sets what is said where there is nothing to be seen.
func (s *Server) absent(to serve.Response, found *shown, err error) error {
	if fault.KindOf(err) != fault.NotFound {
		return err
	}
	control := cacheNotFound
	if found.doubtful {
		control = cacheDoubtful
	}
	to.SetCanonical(keyCacheControl, control)
	to.SetCanonical(keyCacheStatus, cacheStatus(found.source, edge.Hit))
	s.tags.set(to, absenceTags(found.want, found.led))
	return err
}

// borrowed returns bytes as a text without copying them. Neither it nor parts of
// it may be kept for longer than the bytes stay as they are.
func borrowed(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }
