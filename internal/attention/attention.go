// Package attention lists the matters of a portal that wait for its operator, each with its remedy and the page where
// it is done. The checks are those of package doctor, as far as they ask no other server; it adds reports, other
// portals, refused tasks, failures, invitations and settings. It changes nothing.
package attention

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/adjust"
	"agentsite/internal/clock"
	"agentsite/internal/doctor"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/figures"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/scheduler"
)

// Area is the part of the operator's pages that an item belongs to; the value is the name of its tab.
type Area string

// The areas. Items of Overview belong to no other page.
const (
	Overview Area = "overview"
	Settings Area = "settings"
	Invites  Area = "invites"
	Reports  Area = "reports"
	Queue    Area = "queue"
	Peers    Area = "peers"
)

// Item is one matter. Texts may contain text of other portals, so the code that displays it must escape them.
type Item struct {
	Area Area
	// Text says what is the matter, Do what mends it; Do may be "".
	Text, Do string
	// Href is the page that mends or explains it.
	Href string
	// Note is true if the portal works nevertheless and nothing has to be done.
	Note bool
}

const (
	// examinedFor is the time for which an examination is reused: it reads all agents of the portal.
	examinedFor = time.Minute
	// expiresSoon is the time before the end of an unused invitation from which on it is noted.
	expiresSoon = 48 * time.Hour
	// usualDays is the number of days before today with which the failed tasks of today are compared. Fewer than
	// fewErrors are never more than usual.
	usualDays = 7
	fewErrors = 20
)

// Examiner examines the portal. It is implemented by app.Portal.
type Examiner interface {
	Examine(ctx context.Context, q doctor.Question) (doctor.Report, error)
}

// Complaints lists the reports about agents. It is implemented by hub.Complaints.
type Complaints interface {
	List(ctx context.Context, actor ident.Actor, open bool) ([]hub.Report, error)
}

// Accounts lists the unused invitations. It is implemented by account.Service.
type Accounts interface {
	Invitations(ctx context.Context, actor ident.Actor) ([]account.Credential, error)
}

// Portals lists the other portals. It is implemented by federation.Peers.
type Portals interface {
	List(ctx context.Context, actor ident.Actor) ([]federation.Peer, error)
}

// Tasks returns the state of the queue of tasks. It is implemented by app.Portal.
type Tasks interface {
	Queue(ctx context.Context, actor ident.Actor) (scheduler.Snapshot, error)
}

// Config holds the sources of items. A nil source has none.
type Config struct {
	Examiner   Examiner
	Complaints Complaints
	Accounts   Accounts
	Portals    Portals
	Tasks      Tasks
	Settings   *adjust.Service
	Figures    *figures.Service
}

// Service lists what needs attention. It is safe for concurrent use.
type Service struct {
	cfg Config

	mu     sync.Mutex // held while examining, so that concurrent callers wait for one examination
	at     time.Time
	report doctor.Report
}

// New returns a Service.
func New(cfg Config) *Service { return &Service{cfg: cfg} }

// List returns the items, those that need an action first. A source that fails is an item too. What the doctor says may be a minute old unless Renew was
// called; the rest is current. Only operators may call it.
func (s *Service) List(ctx context.Context, actor ident.Actor) ([]Item, error) {
	if err := requireOperator(actor); err != nil {
		return nil, err
	}
	var due, notes []Item
	add := func(i Item) {
		if i.Note {
			notes = append(notes, i)
		} else {
			due = append(due, i)
		}
	}
	for _, list := range []func(context.Context, ident.Actor, func(Item)) error{s.addFindings, s.addReports,
		s.addPortals, s.addTasks, s.addErrors, s.addSettings, s.addInvitations} {
		if err := list(ctx, actor, add); ctx.Err() != nil {
			return nil, ctx.Err()
		} else if err != nil {
			add(Item{Area: Overview, Text: fmt.Sprintf("A part of this list could not be made: %v.", err),
				Do: "Look into the log of the portal.", Href: "/docs/operate#how-do-i-monitor-that-it-is-healthy"})
		}
	}
	return append(due, notes...), nil
}

// Count returns the number of items that need an action, by area.
func Count(items []Item) map[Area]int {
	out := make(map[Area]int)
	for _, i := range items {
		if !i.Note {
			out[i.Area]++
		}
	}
	return out
}

// Renew makes the next call of List examine the portal anew. Call it after an operator changed something.
func (s *Service) Renew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = time.Time{}
}

// ExamineAll returns all findings of the doctor, for which it also asks other portals. Only operators may call it.
func (s *Service) ExamineAll(ctx context.Context, actor ident.Actor) ([]Item, error) {
	if err := requireOperator(actor); err != nil {
		return nil, err
	}
	if s.cfg.Examiner == nil {
		return []Item{}, nil
	}
	r, err := s.cfg.Examiner.Examine(ctx, doctor.Question{})
	if err != nil {
		return nil, err
	}
	var due, notes []Item
	for _, f := range r.Findings {
		if i, ok := itemOf(f); ok && i.Note {
			notes = append(notes, i)
		} else if ok {
			due = append(due, i)
		}
	}
	return append(due, notes...), nil
}

// places are the areas and the pages of the doctor's checks. Their texts stand on the overview alone, so they count there,
// except those about other portals.
var places = map[string]Item{
	doctor.Data:        {Area: Overview, Href: "/admin/storage"},
	doctor.Settings:    {Area: Overview, Href: "/docs/start#which-settings-are-there"},
	doctor.Reach:       {Area: Overview, Href: "/docs/start#what-goes-wrong-behind-a-proxy"},
	doctor.Keys:        {Area: Overview, Href: "/docs/federation#what-is-the-identity-of-a-portal-in-the-federation"},
	doctor.Clock:       {Area: Overview, Href: "/docs/operate#how-do-i-monitor-that-it-is-healthy"},
	doctor.Peers:       {Area: Peers, Href: "/admin/peers"},
	doctor.Replication: {Area: Peers, Href: "/admin/peers"},
	doctor.DHT:         {Area: Peers, Href: "/admin/peers#dht-title"},
	doctor.Gossip:      {Area: Peers, Href: "/admin/peers"},
	doctor.Agents:      {Area: Overview, Href: "/admin/agents"},
}

// itemOf returns a finding as an item; ok is false if nothing is the matter.
func itemOf(f doctor.Finding) (i Item, ok bool) {
	if f.Level != doctor.Fault && f.Level != doctor.Note {
		return i, false
	}
	i, ok = places[f.Check]
	i.Text, i.Do, i.Note, i.Href = f.Text, f.Do, f.Level == doctor.Note, cmp.Or(f.Page, i.Href)
	return i, ok
}

// addFindings adds the findings of the doctor without the states of other portals, which addPortals adds from the
// present list.
func (s *Service) addFindings(ctx context.Context, _ ident.Actor, add func(Item)) error {
	if s.cfg.Examiner == nil {
		return nil
	}
	r, err := s.examine(ctx)
	if err != nil {
		return err
	}
	for _, f := range r.Findings {
		if i, ok := itemOf(f); ok && f.Check != doctor.Peers {
			add(i)
		}
	}
	return nil
}

func (s *Service) examine(ctx context.Context) (doctor.Report, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.at.IsZero() && time.Since(s.at) < examinedFor {
		return s.report, nil
	}
	r, err := s.cfg.Examiner.Examine(ctx, doctor.Question{Quick: true})
	if err == nil && ctx.Err() == nil { // a canceled examination found failures that are none
		s.report, s.at = r, time.Now()
	}
	return r, err
}

func (s *Service) addReports(ctx context.Context, actor ident.Actor, add func(Item)) error {
	if s.cfg.Complaints == nil {
		return nil
	}
	list, err := s.cfg.Complaints.List(ctx, actor, true)
	if n := len(list); err == nil && n > 0 {
		add(Item{Area: Reports, Text: counted(n, "report about an agent waits", "reports about agents wait") + ".",
			Do: "Look at the agent, then close the report or withdraw the agent.", Href: "/admin/reports"})
	}
	return err
}

// addPortals adds the portals about which the operator must decide.
func (s *Service) addPortals(ctx context.Context, actor ident.Actor, add func(Item)) error {
	if s.cfg.Portals == nil {
		return nil
	}
	list, err := s.cfg.Portals.List(ctx, actor)
	if err != nil {
		return err
	}
	for _, f := range doctor.JudgePortals(list) {
		i, _ := itemOf(f.Finding)
		// The doctor names the commands; on a page the same is done by buttons.
		i.Do, i.Note = "Decide about it on its page.", f.State != federation.Pending && f.State != federation.Quarantined
		if i.Href = "/admin/peers?state=" + string(f.State); f.State == federation.Stale {
			i.Do = "Remove it if it no longer exists."
		}
		add(i)
	}
	refused := 0
	for _, p := range list {
		if p.Bars != "" && p.State != federation.Denied {
			refused++
		}
	}
	if refused > 0 {
		add(Item{Area: Peers, Text: counted(refused, "portal refuses", "portals refuse") + " this one.",
			Do: "Read the reason that it sent, and ask its operator.", Href: "/admin/peers"})
	}
	return nil
}

func (s *Service) addTasks(ctx context.Context, actor ident.Actor, add func(Item)) error {
	if s.cfg.Tasks == nil {
		return nil
	}
	q, err := s.cfg.Tasks.Queue(ctx, actor)
	if err != nil {
		return err
	}
	refused := 0
	for _, c := range q.Classes {
		refused += c.Lately
	}
	if refused > 0 {
		add(Item{Area: Queue, Text: counted(refused, "task was", "tasks were") + " refused in the last hour, because " +
			"too many waited.", Do: "Look for the account or agent that causes most of them.", Href: "/admin/queue"})
	}
	return nil
}

// addErrors adds an item if far more tasks failed today than on the days before.
func (s *Service) addErrors(ctx context.Context, actor ident.Actor, add func(Item)) error {
	if s.cfg.Figures == nil {
		return nil
	}
	r, err := s.cfg.Figures.Report(ctx, actor, usualDays+1)
	if err != nil {
		return err
	}
	for _, series := range r.Series {
		if series.Name != figures.Errors {
			continue
		}
		before, days := int64(0), int64(0)
		for i, n := range series.Values[:usualDays] {
			if series.Known[i] {
				before, days = before+n, days+1
			}
		}
		if today := series.Last(); today >= fewErrors && today*max(days, 1) > 2*before {
			add(Item{Area: Queue, Text: fmt.Sprintf("%d tasks failed today, on %d days before it %d.", today, days, before),
				Do: "Look for agents that do not answer, and pause them.", Href: "/admin/queue"})
		}
	}
	return nil
}

func (s *Service) addSettings(ctx context.Context, actor ident.Actor, add func(Item)) error {
	if s.cfg.Settings == nil {
		return nil
	}
	list, err := s.cfg.Settings.List(ctx, actor)
	if err != nil {
		return err
	}
	for _, st := range list {
		if st.Pending {
			add(Item{Area: Settings, Text: "The setting " + st.Name + " was changed and does not apply yet.",
				Do: "Restart the portal, or undo the change.", Href: "/admin/settings"})
		}
	}
	return nil
}

func (s *Service) addInvitations(ctx context.Context, actor ident.Actor, add func(Item)) error {
	if s.cfg.Accounts == nil {
		return nil
	}
	list, err := s.cfg.Accounts.Invitations(ctx, actor)
	if err != nil {
		return err
	}
	now, soon := clock.Now(), 0
	for _, c := range list {
		if c.ExpiresAt.After(now) && c.ExpiresAt.Before(now.Add(expiresSoon)) {
			soon++
		}
	}
	if soon > 0 {
		add(Item{Area: Invites, Text: counted(soon, "invitation expires", "invitations expire") +
			" unused within two days.", Do: "Make a new one if it is still needed.", Href: "/admin/invites", Note: true})
	}
	return nil
}

func requireOperator(actor ident.Actor) error {
	if actor.IsOperator() && actor.May(ident.Admin) {
		return nil
	}
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Log in as the operator.")
	}
	return fault.New(fault.Forbidden, "Only the operator of this portal may see that.")
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", many)
}
