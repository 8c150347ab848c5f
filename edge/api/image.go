package api

import (
	"context"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/fault"
)

// image answers a request for a picture.
func (s *Server) image(ctx context.Context, rc *fasthttp.RequestCtx, about subject) error {
	header := &rc.Response.Header
	want, err := wantOf(about, rc.QueryArgs())
	if err != nil {
		if fault.KindOf(err) == fault.NotFound {
			header.Set(fasthttp.HeaderCacheControl, cacheNotFound)
		}
		return err
	}

	header.Set(headerCacheStatus, statusFailed)
	found, err := s.pictures.Find(ctx, want)
	if err != nil {
		if fault.KindOf(err) == fault.NotFound {
			header.Set(headerCacheStatus, cacheStatus(found.Source, false))
			header.Set(fasthttp.HeaderCacheControl, cacheNotFound)
			s.tags.set(header, absenceTags(want.Key, found.Mapping))
		}
		return err
	}

	etag, drawn := s.pictures.ETag(found.View), false
	// Nothing needs to be fetched or drawn to know that a visitor has it.
	if matches(rc.Request.Header.PeekAll(fasthttp.HeaderIfNoneMatch), etag) {
		rc.SetStatusCode(fasthttp.StatusNotModified)
	} else {
		var file []byte
		if file, drawn, err = s.pictures.Picture(ctx, found.View); err != nil {
			// Also when its file is missing: nobody should remember that.
			return err
		}
		rc.SetContentType(contentType(found.View))
		// The bytes are everybody's, and never change.
		rc.Response.SetBodyRaw(file)
	}
	header.Set(fasthttp.HeaderETag, etag)
	header.Set(fasthttp.HeaderCacheControl, s.cacheControl(about))
	header.Set(headerCacheStatus, cacheStatus(found.Source, drawn))
	s.tags.set(header, presenceTags(want.Key, found.Mapping, s.pictures.Revision()))
	return nil
}

func contentType(view edge.View) string {
	if view.Format == render.WebP {
		return "image/webp"
	}
	return "image/png"
}
