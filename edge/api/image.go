package api

import (
	"context"
	"net/http"
	"sync"
	"time"
	"unsafe"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
	"github.com/veneer-skins/veneer/shared/tracing"
)

// requestScratch is the memory in which a request is understood and answered.
type requestScratch struct {
	response response
	key      [maxKey]byte
	view     [edge.ViewKeySize]byte
	date     [len(http.TimeFormat)]byte
	tags     []byte
	body     []byte
}

// maxKey is the length of the longest key, save for names that grow when they are
// folded.
const maxKey = len(edgeproto.HashPrefix) + maxName

var scratchPool = sync.Pool{New: func() any { return new(requestScratch) }}

// serveFast answers a request on the fast path, from bytes that were made before and
// without allocations.
func (s *Server) serveFast(c *httpserver.FastContext) bool {
	target, isHere := parsePath(unsafeString(c.Path))
	if !isHere {
		return false
	}
	scratch, _ := c.Scratch.(*requestScratch)
	if scratch == nil {
		scratch = new(requestScratch)
		c.Scratch = scratch
	}
	res, err := scratch.parse(target, unsafeString(c.Query), c.At)
	if err != nil {
		return false
	}
	setCommonHeaders(c)
	ok, err := s.serveHit(c, res, scratch, c.Conditions)
	if err == nil && !ok {
		err = s.wouldReject(c, res)
	}
	switch {
	case err == nil:
		return ok
	case fault.KindOf(err) != fault.NotFound && fault.KindOf(err) != fault.Unavailable:
		return false
	}
	c.WriteError(err)
	c.SetRoute(s.routes.images[target.route][noFormat][errorOutcome(err)])
	return true
}

// wouldReject returns the fault with which fetch would refuse a request without a try, as there
// are very many when names are made up, or core is away.
func (s *Server) wouldReject(c *httpserver.FastContext, res *response) error {
	if c.IsUnavailableLogged() {
		return nil
	}
	err := s.pictures.WouldReject(res.want.Key, clientip.Network(c.ClientIP()))
	if err != nil {
		c.SetCanonical(keyCacheStatus, errorCacheStatus(err))
	}
	return err
}

// serve answers a request for what is drawn or kept by way of textures.
func (s *Server) serve(rc *fasthttp.RequestCtx, target target) error {
	scratch, _ := scratchPool.Get().(*requestScratch)
	defer scratchPool.Put(scratch)
	res, err := scratch.parse(target, unsafeString(rc.URI().QueryString()), rc.Time())
	if err != nil {
		if fault.KindOf(err) == fault.NotFound {
			rc.Response.Header.SetCanonical(keyCacheControl, ccNotFound)
		}
		return err
	}
	ok, err := s.serveHit(httpserver.ResponseTo(rc), res, scratch, rc.Request.Header.RawHeaders())
	if err != nil || ok {
		return err
	}
	return s.serveMiss(rc, res, scratch)
}

// serveHit answers a request if all that it takes is in memory, on the fast path and on the
// server alike, and reports whether that is so. Lines are those of the request's fields.
func (s *Server) serveHit(to httpserver.Response, res *response, scratch *requestScratch, lines []byte) (ok bool, err error) {
	if ok, err = s.tryGet(res, scratch); err != nil {
		return true, s.writeNotFound(to, res, err)
	}
	if ok {
		if res.notModified, err = res.checkConditions(lines); err == nil {
			s.writeResponse(to, res, scratch)
		}
	}
	return ok, err
}

// parse understands a request that came at a moment.
func (scratch *requestScratch) parse(target target, query string, at time.Time) (res *response, err error) {
	res = &scratch.response
	*res = response{target: target, at: at}
	res.want, err = parseRequest(target, query, scratch.key[:0])
	return res, err
}

// tryGet finds what is asked for in memory, and reports whether all of it is there.
func (s *Server) tryGet(res *response, scratch *requestScratch) (ok bool, err error) {
	if res.mapping, ok = s.pictures.TryLookup(res.want.Key, res.at); !ok {
		return false, nil
	}
	if err := s.resolve(res, scratch); err != nil || res.target.route == profile {
		return true, err
	}
	picture, finished := s.pictures.Cached(res.view, scratch.view[:0])
	res.etag, res.body = picture.ETag, picture.Body
	return finished, nil
}

// resolve finds out which view, or which profile, is to be shown.
func (s *Server) resolve(res *response, scratch *requestScratch) (err error) {
	res.modified = res.lastModified()
	if res.target.route == profile {
		return res.setProfile(scratch)
	}
	res.view, err = s.pictures.View(res.want, res.mapping)
	return err
}

// maxTries is how often an answer is looked for because another one has become
// right meanwhile.
const maxTries = 3

// serveMiss answers what image could not: it asks core, fetches and has drawn.
func (s *Server) serveMiss(rc *fasthttp.RequestCtx, res *response, scratch *requestScratch) error {
	ctx, cancel := s.httpServer.RequestContext(rc)
	defer cancel()
	ctx = tracing.WithRequestID(ctx, httpserver.RequestID(rc))
	ctx = edge.WithNetwork(ctx, clientip.Network(s.httpServer.Proxies.ClientIP(rc)))
	failed := func(err error) error {
		rc.Response.Header.SetCanonical(keyCacheStatus, errorCacheStatus(err))
		return err
	}
	var absence error
	for try := 1; ; try++ {
		var err error
		if res.mapping, res.lookup, err = s.pictures.Lookup(ctx, res.want.Key); err != nil {
			return failed(err)
		}
		if absence = s.resolve(res, scratch); absence == nil {
			if err := s.render(ctx, rc, res); err != nil {
				return failed(err)
			}
		}
		// Caches outside may have been told of a change meanwhile, and must not be
		// filled with what was before it.
		res.mayBeStale = res.lookup == edge.LookupStale || !s.pictures.StillCurrent(res.want.Key, res.mapping)
		if !res.mayBeStale || res.lookup == edge.LookupStale || try == maxTries {
			break
		}
	}
	to := httpserver.ResponseTo(rc)
	if absence != nil {
		return s.writeNotFound(to, res, absence)
	}
	s.writeResponse(to, res, scratch)
	return nil
}

// render finds out what there is to be shown of a view.
func (s *Server) render(ctx context.Context, rc *fasthttp.RequestCtx, res *response) (err error) {
	isProfile := res.target.route == profile
	if !isProfile {
		res.etag = s.pictures.ETag(res.view)
	}
	// Nothing needs to be fetched or drawn to know that a visitor has it.
	if res.notModified, err = res.checkConditions(rc.Request.Header.RawHeaders()); err != nil || res.notModified || isProfile {
		return err
	}
	picture, how, err := s.pictures.Picture(ctx, res.view)
	// Also when its file is missing: nobody should remember that.
	res.body, res.cacheOutcome = picture.Body, how
	return err
}

// response is what a request turned out to lead to.
type response struct {
	at      time.Time // when the request came
	target  target
	want    edge.Request
	mapping edgeproto.Mapping
	lookup  edge.LookupResult
	// mayBeStale says that core may know better by now, and so that nobody should
	// keep the answer.
	mayBeStale   bool
	view         edge.View
	cacheOutcome edge.Outcome
	etag         edge.ETag
	modified     int64 // as dateOf returns it
	// notModified says that the visitor has it. There is no body then.
	notModified bool
	body        []byte // a profile's is in scratch
}

// outcome returns how the request ended, as metrics tell it.
func (res *response) outcome() outcome {
	switch {
	case res.notModified:
		return notModified
	case res.cacheOutcome == edge.Hit && res.lookup == edge.LookupMiss:
		return rendered
	default:
		return cacheOutcomes[res.cacheOutcome]
	}
}

// writeResponse responds with a picture, a file or a profile, or that the visitor has it already.
func (s *Server) writeResponse(to httpserver.Response, res *response, scratch *requestScratch) {
	in := res.format()
	switch {
	case res.notModified:
		to.SetStatusCode(fasthttp.StatusNotModified)
	case in == formatJSON:
		to.SetBody(res.body)
	default:
		// The bytes are everybody's, and never change.
		to.SetBodyRaw(res.body)
	}
	if !res.notModified {
		to.SetCanonical(keyContentType, contentTypes[in])
	}
	to.SetCanonical(keyETag, res.etag[:])
	if res.modified > 0 {
		to.SetCanonical(keyLastModified, fasthttp.AppendHTTPDate(scratch.date[:0], time.Unix(res.modified, 0)))
	}
	to.SetCanonical(keyCacheControl, s.cacheControl(res))
	to.SetCanonical(keyCacheStatus, cacheStatus(res.lookup, res.cacheOutcome))
	scratch.tags = appendTags(scratch.tags[:0], res.want, res.mapping)
	switch {
	case res.target.route == profile:
		if cape := res.mapping.Player.Cape; cape != nil {
			scratch.tags = appendTagID(scratch.tags, "texture-", cape.TID)
		}
	case !res.view.File:
		scratch.tags = appendTag(scratch.tags, "render-", s.pictures.Revision())
	}
	s.tags.setHeaders(to, scratch.tags)
	to.SetRoute(s.routes.images[res.target.route][in][res.outcome()])
}

// writeNotFound returns a fault of locate, and sets what is said where there is nothing to be seen.
func (s *Server) writeNotFound(to httpserver.Response, res *response, err error) error {
	if fault.KindOf(err) != fault.NotFound {
		return err
	}
	control := ccNotFound
	if res.mayBeStale {
		control = ccShort
	}
	to.SetCanonical(keyCacheControl, control)
	to.SetCanonical(keyCacheStatus, cacheStatus(res.lookup, edge.Hit))
	s.tags.setHeaders(to, notFoundTags(res.want, res.mapping))
	return err
}

// unsafeString returns bytes as a text without copying them. Neither it nor parts of
// it may be kept for longer than the bytes stay as they are.
func unsafeString(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }
