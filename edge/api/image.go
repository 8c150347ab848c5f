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
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
	"github.com/veneer-skins/veneer/shared/tracing"
)

// exchange is a request for a picture, a file or a profile and its response, in memory that is
// reused.
type exchange struct {
	at       time.Time // when the request arrived
	route    *route
	request  edge.Request  // its key is in key
	response edge.Response // with ETag and Body of a profile as well
	modified int64         // see lastModified
	// outcomeNotModified means 304, without a body.
	notModified bool

	download downloadName

	key  [maxKey]byte
	date [len(http.TimeFormat)]byte
	tags []byte
	body []byte // of a profile

	disposition []byte
}

// maxKey is the length of the longest key, save for names that grow when their case is
// folded.
const maxKey = len(edgeproto.NamePrefix) + edgeproto.MaxNameBytes

var exchangePool = sync.Pool{New: func() any { return new(exchange) }}

// parse parses a request that arrived at a time.
func (e *exchange) parse(target target, query string, at time.Time) (err error) {
	e.at, e.route = at, target.route
	e.download = downloadOf(target, query)
	e.request, err = parseRequest(target, query, e.key[:0])
	return err
}

// serveFast serves a request on the fast path, without allocations, and reports whether it
// did: otherwise the server does.
func (s *Server) serveFast(c *httpserver.FastContext) bool {
	slot, hash := s.repeats.slot(c)
	if s.tryRepeat(c, slot, hash) {
		return true
	}
	if !c.SplitTarget() {
		return false
	}
	target, ok := s.parsePath(unsafeString(c.Path), unsafeString(c.Query))
	if !ok {
		return false
	}
	x, _ := c.Scratch.(*exchange)
	if x == nil {
		x = new(exchange)
		c.Scratch = x
	}
	err := x.parse(target, unsafeString(c.Query), c.At)
	if err != nil {
		return false
	}
	setCommonHeaders(c)
	if x.response, ok = s.pictures.TryGet(x.request, x.at); ok {
		err = s.writeResponse(c, x, c.Conditions)
	} else {
		err = s.wouldReject(c, x)
	}
	switch {
	case err == nil:
		if ok {
			slot.keep(c, hash, x)
		}
		return ok
	case fault.KindOf(err) != fault.NotFound && fault.KindOf(err) != fault.Unavailable:
		return false
	}
	c.WriteError(err)
	c.SetRoute(s.routes.views[x.route.number][noFormat][errorOutcome(err)])
	return true
}

// wouldReject returns the fault with which get would reject a request at once. There are very
// many of these when a client makes names up, or core is unreachable.
func (s *Server) wouldReject(c *httpserver.FastContext, x *exchange) error {
	if c.IsUnavailableLogged() {
		return nil
	}
	err := s.pictures.WouldReject(x.request, clientip.Network(c.ClientIP()))
	if err != nil {
		c.SetCanonical(keyCacheStatus, errorCacheStatus(err))
	}
	return err
}

// serve serves a request on the server.
func (s *Server) serve(rc *fasthttp.RequestCtx, target target) error {
	x, _ := exchangePool.Get().(*exchange)
	defer exchangePool.Put(x)
	if err := x.parse(target, unsafeString(rc.URI().QueryString()), rc.Time()); err != nil {
		if fault.KindOf(err) == fault.NotFound {
			rc.Response.Header.SetCanonical(keyCacheControl, ccNotFound)
		}
		return err
	}
	var ok bool
	if x.response, ok = s.pictures.TryGet(x.request, x.at); !ok {
		if err := s.get(rc, x); err != nil {
			rc.Response.Header.SetCanonical(keyCacheStatus, errorCacheStatus(err))
			return err
		}
	}
	return s.writeResponse(httpserver.ResponseTo(rc), x, rc.Request.Header.RawHeaders())
}

// get gets a response that is not cached. A 304 needs no fetch and no render.
func (s *Server) get(rc *fasthttp.RequestCtx, x *exchange) (err error) {
	ctx, cancel := s.workContext(rc)
	defer cancel()
	if x.response, err = s.pictures.Find(ctx, x.request); err != nil || x.response.Err != nil {
		return err
	}
	if err := x.checkConditions(rc.Request.Header.RawHeaders()); err != nil || x.notModified {
		return err
	}
	return s.pictures.Load(ctx, x.request, &x.response)
}

// workContext returns the context of what a request loads, with its id and its client's network.
func (s *Server) workContext(rc *fasthttp.RequestCtx) (context.Context, context.CancelFunc) {
	ctx, cancel := s.opts.RequestContext(rc)
	ctx = tracing.WithRequestID(ctx, httpserver.RequestID(rc))
	return edge.WithNetwork(ctx, clientip.Network(s.opts.Proxies.ClientIP(rc))), cancel
}

// writeResponse writes a response on the fast path or on the server: a picture, a file, a
// profile or 304. For any other one it sets the headers and returns the fault. fields are the
// raw header lines of the request.
func (s *Server) writeResponse(to httpserver.Response, x *exchange, fields []byte) error {
	res := &x.response
	if res.Err != nil {
		return s.writeNotFound(to, x)
	}
	if err := x.checkConditions(fields); err != nil {
		return err
	}
	format := x.format()
	switch {
	case x.notModified:
		to.SetStatusCode(fasthttp.StatusNotModified)
	case format == formatJSON:
		to.SetBody(res.Body)
	default:
		// The body is shared and immutable.
		to.SetBodyRaw(res.Body)
	}
	if !x.notModified {
		to.SetCanonical(keyContentType, contentTypes[format])
	}
	to.SetCanonical(keyETag, res.ETag[:])
	if x.download.isGiven {
		x.disposition = x.download.appendDisposition(x.disposition[:0], format)
		to.SetCanonical(keyContentDisposition, x.disposition)
	}
	if x.modified > 0 {
		to.SetCanonical(keyLastModified, fasthttp.AppendHTTPDate(x.date[:0], time.Unix(x.modified, 0)))
	}
	x.tags = appendTags(x.tags[:0], &x.request, res.Mapping)
	if res.IsDefault {
		x.tags = appendNameTag(x.tags, x.request.Key)
	}
	switch x.request.Kind {
	case edge.KindPicture:
		if res.Variant.Wear != render.WearNothing {
			x.tags = appendTagID(x.tags, edgeproto.TextureTagPrefix, res.Mapping.Player.Cape.TID)
		}
		x.tags = appendTag(x.tags, revisionTagPrefix, res.Revision)
	case edge.KindProfile:
		if cape := res.Mapping.Player.Cape; cape != nil {
			x.tags = appendTagID(x.tags, "texture-", cape.TID)
		}
	case edge.KindFile:
	}
	s.writeCaching(to, s.cacheControl(x), caching{res.MayBeStale, res.Lookup, res.Outcome}, x.tags)
	to.SetRoute(s.routes.views[x.route.number][format][x.outcome()])
	return nil
}

// writeNotFound returns the fault of a response without content. If that says that there is no
// such picture, it sets the headers, since this may be cached, unlike all other faults; or it
// writes the response 204 for games, where these are configured.
func (s *Server) writeNotFound(to httpserver.Response, x *exchange) error {
	res := &x.response
	if fault.KindOf(res.Err) != fault.NotFound {
		return res.Err
	}
	isEmpty := s.noContent && x.route.Subject.IsName() && x.request.IsForGames()
	control := ccNotFound
	if isEmpty {
		control = ccNoContent
	}
	s.writeCaching(to, control, caching{res.MayBeStale, res.Lookup, cache.Hit}, notFoundTags(&x.request, res.Mapping))
	if !isEmpty {
		return res.Err
	}
	to.SetStatusCode(fasthttp.StatusNoContent)
	to.SetRoute(s.routes.views[x.route.number][noFormat][outcomeNotFound])
	return nil
}

// outcome returns the outcome of a response with content, for metrics.
func (e *exchange) outcome() outcome {
	switch {
	case e.notModified:
		return outcomeNotModified
	case e.response.Outcome == cache.Hit && e.response.Lookup == edge.LookupMiss:
		return outcomeMiss
	default:
		return cacheOutcomes[e.response.Outcome]
	}
}

// unsafeString returns bytes as a string without copying them. Neither it nor a part of it may
// be kept for longer than the bytes stay as they are.
func unsafeString(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }
