package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi/decode"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// auditEntryJSON is an entry of the audit log.
type auditEntryJSON struct {
	ID         int64            `json:"id"`
	Time       timestamp        `json:"time"`
	Actor      core.UserID      `json:"actor"`
	ActorEmail string           `json:"actor_email"`
	Address    netip.Addr       `json:"address"`
	Action     core.AuditAction `json:"action"`
	Subject    string           `json:"subject"`
	Details    json.RawMessage  `json:"details"`
}

// auditPageJSON is a page of the audit log. Pages have a cursor instead of numbers, since new
// entries move all others.
type auditPageJSON struct {
	PerPage int              `json:"per_page"`
	Next    int64            `json:"next"` // value of before for the next page, 0 on the last one
	Data    []auditEntryJSON `json:"data"`
}

// defaultAuditPerPage is the number of entries on a page.
const defaultAuditPerPage = 50

// handleListAuditEntries handles GET /api/admin/audit.
func (s *Server) handleListAuditEntries(ctx context.Context, rc *fasthttp.RequestCtx, _ core.Actor) error {
	f := decode.ParseQuery(rc)
	query := core.AuditQuery{
		Action: f.OptionalStr("action", ""), Subject: f.OptionalStr("subject", ""),
		Before: f.ID("before"), Limit: int(f.Integer("perPage", defaultAuditPerPage)),
	}
	var err error
	if query.Actor, err = s.userParameter(ctx, f, "actor", 0); err != nil {
		return err
	}
	if !strings.Contains(query.Subject, ":") { // not as user:2
		user, err := s.userParameter(ctx, f, "subject", 1)
		if err != nil {
			return err
		}
		if user != nil {
			query.Subject = fmt.Sprintf("user:%d", *user)
		}
	}
	entries, more, err := s.Audit.List(ctx, query)
	if err != nil {
		return err
	}
	body := auditPageJSON{PerPage: query.Limit, Data: make([]auditEntryJSON, len(entries))}
	for i, e := range entries {
		body.Data[i] = auditEntryJSON{e.ID, timestamp(e.ActedAt), e.Actor, e.ActorEmail, e.Address, e.Action, e.Subject, e.Details}
		if more {
			body.Next = e.ID
		}
	}
	return httpserver.WriteJSON(rc, fasthttp.StatusOK, body)
}
