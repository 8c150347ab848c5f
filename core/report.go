package core

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/veneer-skins/veneer/shared/fault"
)

// ReportID is the id of a report.
type ReportID int64

// ReportState is what has become of a report.
type ReportState string

// The states of a report: it is open until an administrator settles it in one of
// the other ways.
const (
	ReportOpen     ReportState = "open"
	ReportRejected ReportState = "rejected" // nothing is wrong with the texture
	ReportDeleted  ReportState = "deleted"  // the texture was
	ReportBanned   ReportState = "banned"   // the texture's uploader was
)

// Report is what a user has against a texture. It outlives all three that it is
// about: who deletes the texture does not get away with it.
type Report struct {
	ID         ReportID
	Texture    TextureID // also when it is deleted
	Uploader   UserID    // of the texture; 0 when deleted
	Reporter   UserID    // 0 when deleted
	State      ReportState
	Reason     string
	ReportedAt time.Time
	SettledAt  *time.Time // nil while the report is open
}

// Notice returns what reporters are told once their report is settled.
func (r Report) Notice() (title, content string) {
	content = fmt.Sprintf("Thank you for reporting texture %d. ", r.Texture)
	switch r.State {
	case ReportDeleted:
		content += "It is deleted."
	case ReportBanned:
		content += "Its uploader is banned."
	default:
		content += "We looked at it, and it stays."
	}
	return "Your report", content
}

// ReportQuery says which reports are wanted.
type ReportQuery struct {
	State   ReportState // empty for all
	Page    int         // from 1
	PerPage int
}

// ReportPage is some reports, of Total that the query finds.
type ReportPage struct {
	Reports []Report
	Total   int
}

// ReportStore keeps reports.
type ReportStore interface {
	// AddReport adds a report. The texture must exist (NotFound), and be public, the
	// reporter's own or in their closet, or the reporter an administrator (Forbidden).
	// It returns a Duplicate fault that names the field tid while another one of the
	// reporter's about the texture is open.
	AddReport(ctx context.Context, reporter UserID, texture TextureID, reason string) error

	// Reports lists reports, the latest first.
	Reports(ctx context.Context, query ReportQuery) (ReportPage, error)

	// SettleReport settles a report, and does what its state says then, as one act of
	// an administrator: with ReportDeleted it deletes the texture, if it is still
	// there, and so settles all open reports about it; with ReportBanned it bans the
	// uploader. Either returns a Forbidden fault unless the authority is over them. Who
	// made the reports is notified. It returns a NotFound fault when there is no such
	// report, or nobody to be banned, and a Duplicate one when the report is settled
	// already.
	SettleReport(ctx context.Context, by Actor, report ReportID, state ReportState) (Report, error)
}

// Reports are what users have against textures.
type Reports struct {
	store ReportStore
}

// NewReports returns the reports kept in a store.
func NewReports(store ReportStore) *Reports { return &Reports{store: store} }

// maxReason is the most characters in the reason of a report.
const maxReason = 1000

// Add reports a texture that the caller may see. One report about it may be open.
func (r *Reports) Add(ctx context.Context, caller Caller, texture TextureID, reason string) error {
	var wrong fieldFaults
	if texture < 1 {
		wrong.add(fault.Field("tid", "A TID is at least 1."))
	}
	reason, err := validateText("reason", strings.TrimSpace(reason), maxReason)
	wrong.add(err)
	if err := wrong.fault(); err != nil {
		return err
	}
	return r.store.AddReport(ctx, caller.ID, texture, reason)
}

// List returns a page of reports, the latest first. A page past the end is empty.
func (r *Reports) List(ctx context.Context, query ReportQuery) (ReportPage, error) {
	var wrong fieldFaults
	wrong.addPage(query.Page, query.PerPage, maxPage)
	switch query.State {
	case "", ReportOpen, ReportRejected, ReportDeleted, ReportBanned:
	default:
		wrong.add(fault.Field("state", "The state must be open, rejected, deleted or banned."))
	}
	if err := wrong.fault(); err != nil {
		return ReportPage{}, err
	}
	return r.store.Reports(ctx, query)
}

// actionStates are the states in which a report ends, by what is done.
var actionStates = map[string]ReportState{"reject": ReportRejected, "delete": ReportDeleted, "ban": ReportBanned}

// Settle settles a report: an action rejects it, deletes the texture or bans its
// uploader.
func (r *Reports) Settle(ctx context.Context, by Actor, report ReportID, action string) (Report, error) {
	state, ok := actionStates[strings.TrimSpace(action)]
	if !ok {
		return Report{}, fault.Field("action", "The action must be reject, delete or ban.")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cascadeTimeout)
	defer cancel()
	return r.store.SettleReport(ctx, by, report, state)
}
