package api

import (
	"context"
	"net/http"
	"sync"
	"time"
	"unsafe"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/edge/cache"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
	"github.com/veneer-skins/veneer/shared/tracing"
)

// requestScratch is the reused memory of a request and its response.
type requestScratch struct {
	response response
	key      [maxKey]byte
	view     [edge.ViewKeySize]byte
	date     [len(http.TimeFormat)]byte
	tags     []byte
	body     []byte
}

// maxKey is the length of the longest key, save for names that grow when their case is
// folded.
const maxKey = len(edgeproto.HashPrefix) + maxName

var scratchPool = sync.Pool{New: func() any { return new(requestScratch) }}

// serveFast serves a request on the fast path, without allocations, and reports whether it
// did: otherwise the server does.
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

// wouldReject returns the fault with which serveMiss would reject a request at once. There are
// very many of these when a client makes names up, or core is unreachable.
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

// serve serves a request for a picture, a file or a profile.
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

// serveHit serves a request from the caches, on the fast path and on the server alike, and
// reports whether it did. lines are the raw header lines of the request.
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

// parse parses a request that arrived at a time.
func (scratch *requestScratch) parse(target target, query string, at time.Time) (res *response, err error) {
	res = &scratch.response
	*res = response{target: target, at: at}
	res.want, err = parseRequest(target, query, scratch.key[:0])
	return res, err
}

// tryGet completes the response from the caches, and reports whether it could.
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

// resolve sets the view or the profile that the mapping leads to.
func (s *Server) resolve(res *response, scratch *requestScratch) (err error) {
	res.modified = res.lastModified()
	if res.target.route == profile {
		return res.setProfile(scratch)
	}
	res.view, err = s.pictures.View(res.want, res.mapping)
	return err
}

// maxTries bounds how often a response is made because the mapping has changed in the
// meantime.
const maxTries = 3

// serveMiss serves a request that is not a hit: it looks up, fetches and renders.
func (s *Server) serveMiss(rc *fasthttp.RequestCtx, res *response, scratch *requestScratch) error {
	ctx, cancel := s.opts.RequestContext(rc)
	defer cancel()
	ctx = tracing.WithRequestID(ctx, httpserver.RequestID(rc))
	ctx = edge.WithNetwork(ctx, clientip.Network(s.opts.Proxies.ClientIP(rc)))
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
		// A CDN may have been purged because of a change in the meantime, and must not store
		// the response from before it.
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

// render sets the entity tag and, unless the client has it, the body.
func (s *Server) render(ctx context.Context, rc *fasthttp.RequestCtx, res *response) (err error) {
	isProfile := res.target.route == profile
	if !isProfile {
		res.etag = s.pictures.ETag(res.view)
	}
	// A 304 needs no fetch and no render.
	if res.notModified, err = res.checkConditions(rc.Request.Header.RawHeaders()); err != nil || res.notModified || isProfile {
		return err
	}
	picture, how, err := s.pictures.Picture(ctx, res.view)
	// A missing file is a NotFound fault, which must not be cached downstream.
	res.body, res.cacheOutcome = picture.Body, how
	return err
}

// response is a request and its response.
type response struct {
	at      time.Time // when the request arrived
	target  target
	want    edge.Request
	mapping edgeproto.Mapping
	lookup  edge.LookupResult
	// mayBeStale says that the mapping may have changed, so that caches must not store the
	// response.
	mayBeStale   bool
	view         edge.View
	cacheOutcome cache.Outcome
	etag         edge.ETag
	modified     int64 // see lastModified
	// notModified means 304, without a body.
	notModified bool
	body        []byte // of a profile: in scratch
}

// outcome returns the outcome for metrics.
func (res *response) outcome() outcome {
	switch {
	case res.notModified:
		return notModified
	case res.cacheOutcome == cache.Hit && res.lookup == edge.LookupMiss:
		return miss
	default:
		return cacheOutcomes[res.cacheOutcome]
	}
}

// writeResponse responds with a picture, a file, a profile or 304.
func (s *Server) writeResponse(to httpserver.Response, res *response, scratch *requestScratch) {
	in := res.format()
	switch {
	case res.notModified:
		to.SetStatusCode(fasthttp.StatusNotModified)
	case in == formatJSON:
		to.SetBody(res.body)
	default:
		// The body is shared and immutable.
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

// writeNotFound returns a fault of resolve, and sets the headers of one that may be cached.
func (s *Server) writeNotFound(to httpserver.Response, res *response, err error) error {
	if fault.KindOf(err) != fault.NotFound {
		return err
	}
	control := ccNotFound
	if res.mayBeStale {
		control = ccShort
	}
	to.SetCanonical(keyCacheControl, control)
	to.SetCanonical(keyCacheStatus, cacheStatus(res.lookup, cache.Hit))
	s.tags.setHeaders(to, notFoundTags(res.want, res.mapping))
	return err
}

// unsafeString returns bytes as a string without copying them. Neither it nor a part of it may
// be kept for longer than the bytes stay as they are.
func unsafeString(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }
