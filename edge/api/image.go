package api

import (
	"sync"
	"unsafe"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/mapping"
)

// scratch is the memory in which a request's texts are put together.
type scratch struct {
	key  [maxKey]byte
	view [edge.ViewNameBytes]byte
	tags []byte
	body []byte
}

// maxKey is the length of the longest key, save for names that grow when they are
// folded.
const maxKey = len(mapping.HashPrefix) + maxName

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// image answers a request for what is drawn or kept by way of textures. What is in
// memory is answered here, from bytes that were made before and without any
// allocation; fetch does the rest.
func (s *Server) image(rc *fasthttp.RequestCtx, about subject) error {
	memory, _ := scratches.Get().(*scratch)
	defer scratches.Put(memory)
	want, err := wantOf(about, borrowed(rc.URI().QueryString()), memory.key[:0])
	if err != nil {
		if fault.KindOf(err) == fault.NotFound {
			rc.Response.Header.Set(fasthttp.HeaderCacheControl, cacheNotFound)
		}
		return err
	}

	led, known := s.pictures.Recall(want.Key, rc.Time())
	if !known {
		return s.fetch(rc, about, want, memory)
	}
	if about.route == profile {
		return s.profile(rc, want, led, edge.Kept, memory)
	}
	view, err := s.pictures.View(want, led)
	if err != nil {
		return s.absent(rc, want, led, edge.Kept, err)
	}
	picture, finished := s.pictures.Finished(view, memory.view[:0])
	if !finished {
		return s.fetch(rc, about, want, memory)
	}
	unchanged, err := held(rc, picture.ETag)
	if err != nil {
		return err
	}
	s.show(rc, shown{about: about, want: want, led: led, view: view, etag: picture.ETag, unchanged: unchanged, body: picture.Body}, memory)
	return nil
}

// maxTries is how often a picture is made anew because another texture is worn by
// the time when it is finished.
const maxTries = 3

// fetch answers what image could not: it asks core, fetches and has drawn.
func (s *Server) fetch(rc *fasthttp.RequestCtx, about subject, want edge.Want, memory *scratch) error {
	ctx, cancel := s.door.Bound()
	defer cancel()
	rc.Response.Header.Set(headerCacheStatus, statusFailed)
	for try := 1; ; try++ {
		led, source, err := s.pictures.Lookup(ctx, want.Key)
		if err != nil {
			return err
		}
		if about.route == profile {
			return s.profile(rc, want, led, source, memory)
		}
		view, err := s.pictures.View(want, led)
		if err != nil {
			return s.absent(rc, want, led, source, err)
		}

		found := shown{about: about, want: want, led: led, source: source, view: view, etag: s.pictures.ETag(view)}
		// Nothing needs to be fetched or drawn to know that a visitor has it.
		if found.unchanged, err = held(rc, found.etag); err != nil {
			return err
		}
		if !found.unchanged {
			picture, how, err := s.pictures.Picture(ctx, view)
			if err != nil {
				// Also when its file is missing: nobody should remember that.
				return err
			}
			// Caches outside may have been told of a change meanwhile, and must not
			// be filled with what was before it.
			if how != edge.Hit && source != edge.Stale && try < maxTries && !s.pictures.StillLeads(want.Key, led) {
				continue
			}
			found.body, found.how = picture.Body, how
		}
		s.show(rc, found, memory)
		return nil
	}
}

// shown is what a request turned out to lead to.
type shown struct {
	about  subject
	want   edge.Want
	led    mapping.Mapping
	source edge.Source
	view   edge.View
	how    edge.Outcome
	etag   edge.ETag
	// unchanged says that the visitor has it. There is no body then.
	unchanged bool
	body      []byte
}

// show answers with a picture or a file, or that the visitor has it already.
func (s *Server) show(rc *fasthttp.RequestCtx, found shown, memory *scratch) {
	header, how := &rc.Response.Header, outcomes[found.how]
	if how == hit && found.source == edge.Asked {
		how = rendered
	}
	if found.unchanged {
		how = notModified
		rc.SetStatusCode(fasthttp.StatusNotModified)
	} else {
		header.SetContentTypeBytes(contentType(found.view))
		// The bytes are everybody's, and never change.
		rc.Response.SetBodyRaw(found.body)
	}
	header.SetCanonical(keyETag, found.etag[:])
	header.SetCanonical(keyCacheControl, s.cacheControl(found.about.route))
	header.SetCanonical(keyCacheStatus, cacheStatus(found.source, found.how))
	memory.tags = appendTags(memory.tags[:0], found.want, found.led)
	if !found.view.File {
		memory.tags = appendTag(memory.tags, "render-", s.pictures.Revision())
	}
	s.tags.set(header, memory.tags)
	s.routes.claim(rc, found.about.route, formatOf(found.view), how)
}

// absent answers that there is nothing to be seen, unless err says otherwise.
func (s *Server) absent(rc *fasthttp.RequestCtx, want edge.Want, led mapping.Mapping, source edge.Source, err error) error {
	if fault.KindOf(err) == fault.NotFound {
		header := &rc.Response.Header
		header.SetCanonical(keyCacheStatus, cacheStatus(source, edge.Hit))
		header.Set(fasthttp.HeaderCacheControl, cacheNotFound)
		s.tags.set(header, absenceTags(want, led))
	}
	return err
}

func contentType(view edge.View) []byte {
	if view.Format == render.WebP {
		return typeWebP
	}
	return typePNG
}

// borrowed returns bytes as a text without copying them. Neither it nor parts of
// it may be kept for longer than the bytes stay as they are.
func borrowed(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }
