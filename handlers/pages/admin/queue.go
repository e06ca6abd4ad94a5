package admin

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/halt"
	"agentsite/internal/ident"
	"agentsite/internal/scheduler"
	"agentsite/templates"
)

// classNames are the classes of the scheduler as people see them.
var classNames = map[scheduler.Class]string{
	scheduler.Accounts: "Accounts", scheduler.Guests: "Guests, by address", scheduler.Portals: "Other portals",
}

// maxQueueRows bounds the accounts on the page; the API lists more.
const maxQueueRows = 20

// showQueue shows the operator the tasks that run and wait, and the accounts that cause them.
func (d *Pages) showQueue(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.showQueueWith(w, r, actor, http.StatusOK, "")
}

// showQueueWith shows the page with the reason why a stop was refused, "" for none.
func (d *Pages) showQueueWith(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int, wrong string) error {
	s, err := d.queue.Queue(r.Context(), actor)
	if err != nil {
		return err
	}
	v := queueView(s, actor)
	v.StopError = wrong
	halts, err := d.halts.List(r.Context(), actor)
	if err != nil {
		return err
	}
	for _, h := range halts {
		v.Stopped = append(v.Stopped, templates.StoppedRow{Kind: string(h.Kind), Name: h.Name, Reason: h.Reason,
			Since: pages.FormatMoment(h.CreatedAt), Operator: h.Operator})
	}
	return d.showAdmin(w, r, actor, code, templates.AdminView{Tab: "queue", Queue: &v})
}

// stopOrResume stops an agent, an owner or a provider, or lets it work again.
func (d *Pages) stopOrResume(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	kind, name, resume := halt.Kind(in.Get("kind")), strings.TrimSpace(in.Get("name")), in.Get("resume") != ""
	switch {
	case kind == halt.Agent && resume:
		err = d.halts.Resume(r.Context(), actor, name)
	case kind == halt.Agent:
		err = d.halts.Pause(r.Context(), actor, name, in.Get("reason"))
	case resume:
		err = d.halts.Continue(r.Context(), actor, kind, name)
	default:
		err = d.halts.Stop(r.Context(), actor, kind, name, in.Get("reason"))
	}
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Invalid) {
		f := fault.As(err)
		wrong := f.Safe
		for _, says := range f.Fields {
			wrong = "The name cannot be used: " + says + "."
		}
		return d.showQueueWith(w, r, actor, http.StatusBadRequest, wrong)
	}
	if err != nil {
		return err
	}
	return respond.SeeOther(w, r, "/admin/queue#stopped-title")
}

func queueView(s scheduler.Snapshot, actor ident.Actor) templates.AdminQueue {
	v := templates.AdminQueue{At: pages.FormatMoment(clock.Now()),
		Running: templates.QueueCount{Tasks: s.Running, Most: s.Limits.Running},
		Waiting: templates.QueueCount{Tasks: s.Waiting, Most: s.Limits.Waiting}}
	for _, c := range s.Classes {
		v.Refused += c.Lately
		v.Classes = append(v.Classes, templates.QueueRow{Name: classNames[c.Class], Running: c.Running, Waiting: c.Waiting,
			Share: formatShare(c.Share), Refused: c.Lately})
	}
	for _, a := range s.Accounts[:min(len(s.Accounts), maxQueueRows)] {
		row := templates.QueueRow{Name: cmp.Or(a.Name, a.Account), Running: a.Running, Waiting: a.Waiting,
			Share: formatShare(a.Share), Refused: a.Refused}
		switch {
		case a.Class == scheduler.Guests:
			row.Kind = "guests"
		case a.Class == scheduler.Portals:
			row.Kind, row.Href = "portal", "/admin/peers/"+url.PathEscape(a.Account)
		case a.Name != "" && a.Name != a.Account:
			row.Href = "/admin/people?q=" + url.QueryEscape(a.Name)
			if a.Account != actor.ID {
				row.Disable = "/admin/people/" + url.PathEscape(a.Name) + "/disable"
			}
		}
		v.Accounts = append(v.Accounts, row)
	}
	for _, p := range s.Agents {
		row := templates.QueueRow{Name: cmp.Or(p.Name, p.Key), Running: p.Running, Waiting: p.Waiting}
		if p.Name != "" {
			row.Href = "/agents/" + url.PathEscape(p.Name)
		}
		v.Agents = append(v.Agents, row)
	}
	for _, p := range s.Providers {
		v.Providers = append(v.Providers, templates.QueueRow{Name: cmp.Or(p.Name, p.Key), Running: p.Running,
			Waiting: p.Waiting})
	}
	return v
}

func formatShare(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }
