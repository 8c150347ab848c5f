package api

import (
	"context"
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
// memory is answered here, from bytes that were made before and without allocations
// of its own; fetch does the rest.
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

	found := shown{about: about, want: want}
	var known bool
	if found.led, known = s.pictures.Recall(want.Key, rc.Time()); !known {
		return s.fetch(rc, found, memory)
	}
	if about.route == profile {
		return s.profile(rc, found, memory)
	}
	if found.view, err = s.pictures.View(want, found.led); err != nil {
		return s.absent(rc, found, err)
	}
	picture, finished := s.pictures.Finished(found.view, memory.view[:0])
	if !finished {
		return s.fetch(rc, found, memory)
	}
	if found.unchanged, err = held(rc, picture.ETag); err != nil {
		return err
	}
	found.etag, found.body = picture.ETag, picture.Body
	s.show(rc, found, memory)
	return nil
}

// maxTries is how often an answer is looked for because another one has become
// right meanwhile.
const maxTries = 3

// fetch answers what image could not: it asks core, fetches and has drawn.
func (s *Server) fetch(rc *fasthttp.RequestCtx, found shown, memory *scratch) error {
	ctx, cancel := s.door.Bound()
	defer cancel()
	rc.Response.Header.Set(headerCacheStatus, statusFailed)
	var absence error
	for try := 1; ; try++ {
		var err error
		if found.led, found.source, err = s.pictures.Lookup(ctx, found.want.Key); err != nil {
			return err
		}
		absence = nil
		if found.about.route != profile {
			if found.view, absence = s.pictures.View(found.want, found.led); absence == nil {
				if err := s.prepare(ctx, rc, &found); err != nil {
					return err
				}
			}
		}
		// Caches outside may have been told of a change meanwhile, and must not be
		// filled with what was before it.
		found.doubtful = found.source == edge.Stale || !s.pictures.StillLeads(found.want.Key, found.led)
		if !found.doubtful || found.source == edge.Stale || try == maxTries {
			break
		}
	}
	switch {
	case absence != nil:
		return s.absent(rc, found, absence)
	case found.about.route == profile:
		return s.profile(rc, found, memory)
	}
	s.show(rc, found, memory)
	return nil
}

// prepare finds out what there is to be shown of a view.
func (s *Server) prepare(ctx context.Context, rc *fasthttp.RequestCtx, found *shown) (err error) {
	found.etag = s.pictures.ETag(found.view)
	// Nothing needs to be fetched or drawn to know that a visitor has it.
	if found.unchanged, err = held(rc, found.etag); err != nil || found.unchanged {
		return err
	}
	picture, how, err := s.pictures.Picture(ctx, found.view)
	// Also when its file is missing: nobody should remember that.
	found.body, found.how = picture.Body, how
	return err
}

// shown is what a request turned out to lead to.
type shown struct {
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
	// unchanged says that the visitor has it. There is no body then.
	unchanged bool
	body      []byte
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

// show answers with a picture or a file, or that the visitor has it already.
func (s *Server) show(rc *fasthttp.RequestCtx, found shown, memory *scratch) {
	header := &rc.Response.Header
	if found.unchanged {
		rc.SetStatusCode(fasthttp.StatusNotModified)
	} else {
		header.SetContentTypeBytes(contentType(found.view))
		// The bytes are everybody's, and never change.
		rc.Response.SetBodyRaw(found.body)
	}
	header.SetCanonical(keyETag, found.etag[:])
	header.SetCanonical(keyCacheControl, s.cacheControl(&found))
	header.SetCanonical(keyCacheStatus, cacheStatus(found.source, found.how))
	memory.tags = appendTags(memory.tags[:0], found.want, found.led)
	if !found.view.File {
		memory.tags = appendTag(memory.tags, "render-", s.pictures.Revision())
	}
	s.tags.set(header, memory.tags)
	s.routes.claim(rc, found.about.route, formatOf(found.view), found.outcome())
}

// absent answers that there is nothing to be seen, unless err says otherwise.
func (s *Server) absent(rc *fasthttp.RequestCtx, found shown, err error) error {
	if fault.KindOf(err) == fault.NotFound {
		header := &rc.Response.Header
		header.SetCanonical(keyCacheStatus, cacheStatus(found.source, edge.Hit))
		header.Set(fasthttp.HeaderCacheControl, cacheNotFound)
		if found.doubtful {
			header.SetCanonical(keyCacheControl, cacheDoubtful)
		}
		s.tags.set(header, absenceTags(found.want, found.led))
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
