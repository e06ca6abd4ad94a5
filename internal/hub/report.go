package hub

import (
	"context"
	"log/slog"
	"slices"
	"time"
	"unicode/utf8"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
	"agentsite/internal/plaintext"
)

// Report is a complaint about an agent, for the operators.
type Report struct {
	ID             string
	AgentID        string
	AgentName      string
	ReporterKind   string // guest, person or operator
	ReporterID     string
	ReporterHandle string
	Reason         string // one of ReportReasons
	Text           string
	CreatedAt      time.Time
	ClosedAt       time.Time // zero while open
	ClosedBy       string    // account name of the operator who closed it
	Outcome        string
}

// ReportReasons are the allowed reasons of a report, in the order of the form.
var ReportReasons = []string{"broken", "misleading", "harmful", "spam", "impersonation", "other"}

const maxReportText = 1000

// Complaints stores reports about agents, notifies the operators, and closes reports.
type Complaints struct {
	store  complaintStore
	agents visibleAgents
	notice *Notifier
	limit  *limit.Keyed // keyed by actor id, for visitors by network address
	log    *slog.Logger
}

type complaintStore interface {
	Reports
	Operators(ctx context.Context) ([]string, error)
}

// visibleAgents are the methods of Service that Complaints needs.
type visibleAgents interface {
	Get(ctx context.Context, actor ident.Actor, name string) (Agent, error)
	Source(a Agent) Source
}

// Submit stores a complaint about an agent that the actor may see, and notifies the operators. The rate
// of an actor is limited.
func (s *Complaints) Submit(ctx context.Context, actor ident.Actor, name, reason, text string) error {
	if actor.ID == "" {
		return fault.New(fault.Unauthenticated, "Log in to report an agent, or talk to it first as a visitor.")
	}
	if !actor.May(ident.AgentsRead) {
		return fault.New(fault.Forbidden, "%s", ident.AgentsRead.DescribeMissing())
	}
	a, err := s.agents.Get(ctx, actor, name)
	if err != nil {
		return err
	}
	if a.Elsewhere() {
		return fault.New(fault.Forbidden,
			"%s is an agent of another portal, whose operator decides about it. Report it there: %s/agents/%s/report",
			a.Handle(), s.agents.Source(a).URL, a.Name)
	}
	text = plaintext.Clean(text)
	var c fault.Check
	c.Field(slices.Contains(ReportReasons, reason), "reason", "choose what is wrong with it")
	c.Field(utf8.RuneCountInString(text) <= maxReportText, "text", "use at most %d characters", maxReportText)
	c.Field(text != "" || reason != "other", "text", "say what is wrong")
	if err := c.Err(); err != nil {
		return err
	}
	key := actor.ID
	if actor.Kind == ident.Guest {
		key = actor.Addr
	}
	if wait, ok := s.limit.Allow(key); !ok {
		return fault.Limited(wait, "You reported much in a short time. Wait a while.")
	}
	handle := actor.Name
	if actor.Kind == ident.Guest {
		handle = "guest"
	}
	r := Report{ID: ident.NewID(), AgentID: a.ID, AgentName: a.Name, ReporterKind: string(actor.Kind),
		ReporterID: actor.ID, ReporterHandle: handle,
		Reason: reason, Text: text, CreatedAt: clock.Now()}
	if err := s.store.AddReport(ctx, r); err != nil {
		return err
	}
	operators, err := s.store.Operators(ctx)
	if err != nil {
		s.log.Warn("list operators", "error", err)
	}
	s.notice.Notify(ctx, operators, Notice{Kind: NoticeReport, Subject: a.Name,
		Text: "Somebody reported " + a.Name + " as " + reason + ".", Href: "/admin/reports"})
	return nil
}

// List lists at most 100 reports for the operator: open ones oldest first, or closed ones newest first.
func (s *Complaints) List(ctx context.Context, actor ident.Actor, open bool) ([]Report, error) {
	if err := RequireOperator(actor); err != nil {
		return nil, err
	}
	return s.store.Reports(ctx, open, "", 100)
}

// Close closes a report for the operator; outcome is a sentence that the reporter, unless a guest, gets in a notice.
func (s *Complaints) Close(ctx context.Context, actor ident.Actor, id, outcome string) error {
	if err := RequireOperator(actor); err != nil {
		return err
	}
	outcome = plaintext.OneLine(outcome)
	var c fault.Check
	c.Field(ident.ValidID(id), "id", "there is no such report")
	c.Field(utf8.RuneCountInString(outcome) <= 300, "outcome", "use at most 300 characters")
	if err := c.Err(); err != nil {
		return err
	}
	r, err := s.store.CloseReport(ctx, id, actor.Name, outcome)
	if err != nil {
		return err
	}
	if r.ReporterKind != string(ident.Guest) {
		text := "Your report about " + r.AgentName + " was looked at."
		if outcome != "" {
			text += " " + outcome
		}
		s.notice.Notify(ctx, []string{r.ReporterID},
			Notice{Kind: NoticeReport, Subject: r.AgentName, Text: text, Href: "/agents/" + r.AgentName})
	}
	return nil
}
