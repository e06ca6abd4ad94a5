package liveness

import (
	"agentsite/internal/hub"
	"context"
	"fmt"
	"time"
)

// The conditions under which owners are notified of an outage. One failed contact is not enough:
// there must be downContacts of them in a row over at least downFor.
const (
	downContacts = 2
	downFor      = 3 * time.Minute
	// linkDownFor is longer than downFor, because agents that connect to the portal are restarted
	// by hand.
	linkDownFor = 10 * time.Minute
	// tellEvery is the minimum time between two notices about one agent, so that an agent that
	// fails and recovers all the time causes one pair of notices an hour.
	tellEvery = time.Hour
)

// outage decides about notices to an agent's owners. It depends on the contacts only, so replaying
// a stored history after a restart leads to the same decisions.
type outage struct {
	link     bool
	answered bool      // the agent was alive at some earlier contact
	contacts int       // contacts in a row at which the agent was not alive
	since    time.Time // time of the first of these contacts
	told     bool      // the owners were notified that the agent is down
	last     time.Time // time of the last notice that the agent is down; zero for none
}

// replayOutage returns the state of an agent's outage after its stored history.
func replayOutage(c hub.Checkup) *outage {
	o := &outage{link: c.Agent.Kind == hub.Link}
	for _, contact := range c.History {
		o.addContact(contact)
	}
	if !o.answered && o.contacts > 0 && len(c.History) >= hub.MaxHistory {
		o.told = true // the history is full of failures: the notice was sent before it began
	}
	return o
}

// addContact adds one more contact and returns the kind of the notice that it causes: NoticeDown,
// NoticeUp, or "" for none. A contact with state Unknown changes nothing.
func (o *outage) addContact(c hub.Contact) string {
	switch {
	case c.State == hub.Unknown:
		return ""
	case c.State != hub.Alive:
		if o.contacts++; o.contacts == 1 {
			o.since = c.At
		}
		if at, ok := o.dueAt(); ok && !o.link && o.contacts >= downContacts && !c.At.Before(at) {
			o.told, o.last = true, c.At
			return hub.NoticeDown
		}
		return ""
	}
	// An agent that connects to the portal has no contacts while it is away. If its outage lasted
	// long enough, notifyMissing has notified the owners.
	if at, ok := o.dueAt(); ok && o.link && !c.At.Before(at) {
		o.told, o.last = true, at
	}
	was := o.told
	o.answered, o.contacts, o.told, o.since = true, 0, false, time.Time{}
	if was {
		return hub.NoticeUp
	}
	return ""
}

// dueAt returns the time at which owners are to be notified if the agent is still down then; false
// if no notice is pending.
func (o *outage) dueAt() (time.Time, bool) {
	if o.contacts == 0 || o.told || !o.answered {
		return time.Time{}, false
	}
	at := o.since.Add(downFor)
	if o.link {
		at = o.since.Add(linkDownFor)
	}
	if again := o.last.Add(tellEvery); !o.last.IsZero() && again.After(at) {
		at = again
	}
	return at, true
}

// notifyOutage notifies the owners if the new liveness l starts or ends an outage. c is the agent's
// state before. For a linked agent that is away it returns the time at which notifyMissing is to be
// called, else the zero time.
func (m *Service) notifyOutage(ctx context.Context, c hub.Checkup, l hub.Liveness) (again time.Time) {
	o := replayOutage(c)
	since := o.since
	// Stored histories have whole seconds, and both must give the same result.
	switch o.addContact(hub.Contact{At: l.CheckedAt.Truncate(time.Second), State: l.State}) {
	case hub.NoticeDown:
		m.tellDown(ctx, c.Agent, l, o.since)
	case hub.NoticeUp:
		m.tellUp(ctx, c.Agent, l, since)
	}
	if at, ok := o.dueAt(); ok && o.link && !l.CheckedAt.After(at) {
		return at
	}
	return time.Time{}
}

// notifyMissing notifies the owners of a linked agent that is still away. If that is too early, it
// returns the time at which to call it again, else the zero time.
func (m *Service) notifyMissing(ctx context.Context, agentID string, now time.Time) (again time.Time) {
	c, err := m.queue.store.Checkup(ctx, agentID)
	if err != nil || c.Agent.Kind != hub.Link || c.Agent.Liveness.State == hub.Alive {
		return time.Time{}
	}
	o := replayOutage(c)
	at, ok := o.dueAt()
	if ok && now.Before(at) {
		return at
	}
	if ok {
		m.tellDown(ctx, c.Agent, c.Agent.Liveness, o.since)
	}
	return time.Time{}
}

func (m *Service) tellDown(ctx context.Context, a hub.Agent, l hub.Liveness, since time.Time) {
	if a.Status.State != hub.Active && a.Status.State != hub.Deprecated {
		return
	}
	what := map[hub.Live]string{
		hub.NeedsAuth:     "has refused this portal",
		hub.WrongProtocol: "has not been speaking its protocol",
	}[l.State]
	switch {
	case a.Kind == hub.Link:
		what = "has not been connected"
	case what == "":
		what = "could not be reached"
	}
	m.ports.Notices.NotifyOwners(ctx, a, hub.Notice{Kind: hub.NoticeDown,
		Text: fmt.Sprintf("%s %s since %s. %s", a.Name, what, since.UTC().Format("2 January, 15:04 UTC"), l.Reason)})
}

func (m *Service) tellUp(ctx context.Context, a hub.Agent, l hub.Liveness, since time.Time) {
	if a.Status.State != hub.Active && a.Status.State != hub.Deprecated {
		return
	}
	text := a.Name + " is back"
	if !since.IsZero() {
		text += " after " + formatRoughly(l.CheckedAt.Sub(since))
	}
	m.ports.Notices.NotifyOwners(ctx, a, hub.Notice{Kind: hub.NoticeUp, Text: text + "."})
}

// formatRoughly formats a duration in one unit, minutes to days, for a sentence.
func formatRoughly(d time.Duration) string {
	n, unit := int(d.Minutes()+0.5), "minute"
	switch {
	case d >= 48*time.Hour:
		n, unit = int(d.Hours()/24+0.5), "day"
	case d >= 2*time.Hour:
		n, unit = int(d.Hours()+0.5), "hour"
	}
	if n = max(n, 1); n == 1 {
		return "a " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}
