package api

import (
	"context"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/serve"
)

// reportBody is a report as the API writes it.
type reportBody struct {
	RID        core.ReportID    `json:"rid"`
	TID        core.TextureID   `json:"tid"`
	Uploader   core.UserID      `json:"uploader"`
	Reporter   core.UserID      `json:"reporter"`
	State      core.ReportState `json:"state"`
	Reason     string           `json:"reason"`
	ReportedAt timestamp        `json:"reported_at"`
	SettledAt  *timestamp       `json:"settled_at,omitempty"`
}

func toReportBody(r core.Report) reportBody {
	return reportBody{
		RID: r.ID, TID: r.Texture, Uploader: r.Uploader, Reporter: r.Reporter, State: r.State, Reason: r.Reason,
		ReportedAt: timestamp(r.ReportedAt), SettledAt: (*timestamp)(r.SettledAt),
	}
}

// report handles POST /api/reports.
func (s *Server) report(ctx context.Context, rc *fasthttp.RequestCtx, caller core.Caller) error {
	network := client{network: core.ClientOf(ctx).Network}
	if err := s.networkReports.take(rc, network); err != nil {
		return err
	}
	if err := s.reports.take(rc, client{user: caller.ID}); err != nil {
		s.networkReports.giveBack(network)
		return err
	}
	f, err := read(rc)
	if err != nil {
		return err
	}
	tid, reason := f.requiredInteger("tid"), f.text("reason")
	if err := f.fault(); err != nil {
		return err
	}
	if err := s.Reports.Add(ctx, caller, core.TextureID(tid), reason); err != nil {
		return err
	}
	return done(rc, "Thank you. An administrator will look at the texture.", nil)
}

// listReports handles GET /api/admin/reports.
func (s *Server) listReports(ctx context.Context, rc *fasthttp.RequestCtx, _ core.Actor) error {
	f := readQuery(rc)
	query := core.ReportQuery{
		State: core.ReportState(strings.TrimSpace(f.optionalText("state", ""))),
		Page:  int(f.integer("page", 1)), PerPage: int(f.integer("perPage", defaultReportsPerPage)),
	}
	if !f.null("state") && query.State == "" {
		f.flaw("state", "The state must not be empty.")
	}
	if err := f.fault(); err != nil {
		return err
	}
	page, err := s.Reports.List(ctx, query)
	if err != nil {
		return err
	}
	bodies := make([]reportBody, len(page.Reports))
	for i, r := range page.Reports {
		bodies[i] = toReportBody(r)
	}
	return serve.JSON(rc, fasthttp.StatusOK, toPageBody(query.Page, query.PerPage, page.Total, bodies))
}

// defaultReportsPerPage is how many reports a page shows.
const defaultReportsPerPage = 50

// settleReport handles PUT /api/admin/reports/{rid}.
func (s *Server) settleReport(ctx context.Context, rc *fasthttp.RequestCtx, by core.Actor) error {
	rid, err := number(rc, "rid")
	if err != nil {
		return err
	}
	f, err := read(rc)
	if err != nil {
		return err
	}
	action := f.text("action")
	if err := f.fault(); err != nil {
		return err
	}
	report, err := s.Reports.Settle(ctx, by, core.ReportID(rid), action)
	if err != nil {
		return err
	}
	return done(rc, "The report is settled.", toReportBody(report))
}
