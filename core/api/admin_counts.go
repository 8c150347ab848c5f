package api

import (
	"context"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/version"
)

// countsJSON is what administrators see of the size of a site.
type countsJSON struct {
	Users        int64              `json:"users"`
	Players      int64              `json:"players"`
	Textures     int64              `json:"textures"`
	TextureBytes int64              `json:"texture_bytes"`
	Approximate  bool               `json:"approximate"`
	OpenReports  int64              `json:"open_reports"`
	WaitingMail  int64              `json:"waiting_mail"`
	Uploads      []dailyUploadsJSON `json:"uploads"`
	Versions     versionsJSON       `json:"versions"`
}

type dailyUploadsJSON struct {
	Day     string `json:"day"`
	Uploads int64  `json:"uploads"`
}

type versionsJSON struct {
	Core     string `json:"core"`
	Database string `json:"database"`
	Schema   int32  `json:"schema"`
}

// handleCount handles GET /api/admin/counts.
func (s *Server) handleCount(ctx context.Context, rc *fasthttp.RequestCtx, _ core.Actor) error {
	c, err := s.Counts(ctx)
	if err != nil {
		return err
	}
	body := countsJSON{
		Users: c.Users, Players: c.Players, Textures: c.Textures, TextureBytes: c.TextureBytes, Approximate: c.Approximate,
		OpenReports: c.OpenReports, WaitingMail: c.WaitingMail, Uploads: make([]dailyUploadsJSON, len(c.Uploads)),
		Versions: versionsJSON{version.Current().Version, c.Database, c.Schema},
	}
	for i, day := range c.Uploads {
		body.Uploads[i] = dailyUploadsJSON{day.Day.Format(time.DateOnly), day.Uploads}
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, body)
}
