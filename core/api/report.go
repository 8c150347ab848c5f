package api

import (
	"context"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi"
	"github.com/veneer-skins/veneer/core/clientapi/decode"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// ownReportJSON is a report in a response to its reporter.
type ownReportJSON struct {
	RID        core.ReportID    `json:"rid"`
	TID        core.TextureID   `json:"tid"`
	State      core.ReportState `json:"state"`
	Reason     string           `json:"reason"`
	ReportedAt timestamp        `json:"reported_at"`
	SettledAt  *timestamp       `json:"settled_at,omitempty"`
}

func toOwnReportJSON(r core.Report) ownReportJSON {
	return ownReportJSON{
		RID: r.ID, TID: r.Texture, State: r.State, Reason: r.Reason, ReportedAt: timestamp(r.ReportedAt), SettledAt: (*timestamp)(r.SettledAt),
	}
}

// reportJSON is a report in a response to an administrator.
type reportJSON struct {
	ownReportJSON
	TextureName      string      `json:"texture_name,omitempty"`
	Uploader         core.UserID `json:"uploader"`
	UploaderNickname string      `json:"uploader_nickname,omitempty"`
	Reporter         core.UserID `json:"reporter"`
	ReporterNickname string      `json:"reporter_nickname,omitempty"`
}

func toReportJSON(r core.Report) reportJSON {
	return reportJSON{toOwnReportJSON(r), r.TextureName, r.Uploader, r.UploaderNickname, r.Reporter, r.ReporterNickname}
}

// toReportPageJSON converts a page of reports.
func toReportPageJSON[T any](query core.ReportQuery, page core.ReportPage, toJSON func(core.Report) T) pageJSON[T] {
	bodies := make([]T, len(page.Reports))
	for i, r := range page.Reports {
		bodies[i] = toJSON(r)
	}
	return toPageJSON(query.Page, query.PerPage, page.Total, bodies)
}

// settlement returns what becomes of a report.
func settlement(f *decode.Form) core.SettlementRequest {
	request := core.SettlementRequest{Action: f.Str("action")}
	request.Ban, request.Refuse = ban(f), f.OptionalBool("refuse", false)
	return request
}

// handleReportTexture handles POST /api/reports.
func (s *Server) handleReportTexture(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	if _, err := s.takeWithNetwork(rc, s.limiters.Reports, s.limiters.NetworkReports, clientapi.Key{User: caller.ID}); err != nil {
		return err
	}
	f := decode.ParseForm(rc)
	tid, reason := f.RequiredInteger("tid"), f.Str("reason")
	if err := f.Err(); err != nil {
		return err
	}
	if err := s.Reports.Add(ctx, caller, core.TextureID(tid), reason); err != nil {
		return err
	}
	return writeOK(rc, "Thank you. An administrator will look at the texture.", nil)
}

// handleListOwnReports handles GET /api/reports.
func (s *Server) handleListOwnReports(ctx context.Context, rc *fasthttp.RequestCtx, token core.VerifiedToken) error {
	query, err := parseReportQuery(rc)
	if err != nil {
		return err
	}
	page, err := s.Reports.ListByUser(ctx, token, query)
	if err != nil {
		return err
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, toReportPageJSON(query, page, toOwnReportJSON))
}

// handleListReports handles GET /api/admin/reports.
func (s *Server) handleListReports(ctx context.Context, rc *fasthttp.RequestCtx, _ core.Actor) error {
	query, err := parseReportQuery(rc)
	if err != nil {
		return err
	}
	page, err := s.Reports.List(ctx, query)
	if err != nil {
		return err
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, toReportPageJSON(query, page, toReportJSON))
}

// parseReportQuery parses the parameters of a list of reports.
func parseReportQuery(rc *fasthttp.RequestCtx) (core.ReportQuery, error) {
	f := decode.ParseQuery(rc)
	query := core.ReportQuery{State: core.ReportState(strings.TrimSpace(f.OptionalStr("state", "")))}
	query.Page, query.PerPage = f.Page(defaultReportsPerPage)
	if !f.IsAbsent("state") && query.State == "" {
		f.AddError("state", "The state must not be empty.")
	}
	return query, f.Err()
}

// defaultReportsPerPage is the number of reports on a page.
const defaultReportsPerPage = 50
