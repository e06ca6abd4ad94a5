// Package work has the pages about the work of an agent: its queue, its cost and its calls. Only its owners and the
// operator see them.
package work

import (
	"context"
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/pages"
	"agentsite/handlers/pages/cost"
	"agentsite/handlers/request"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/halt"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/usage"
	"agentsite/templates"
)

// Queue is the queue of an agent's tasks.
type Queue interface {
	// AgentQueue returns the number of tasks that run and wait. Only those who may edit the agent may read it.
	AgentQueue(ctx context.Context, actor ident.Actor, name string) (running, waiting int, err error)
}

// Pages are the page about the work of an agent, and the wire logs of calls. Create them with New.
type Pages struct {
	hub      *hub.Service
	halts    *halt.Service
	usage    *usage.Service
	ceilings *usage.Ceilings
	queue    Queue
	tasks    *task.Service
	site     *pages.Site
}

// New returns the pages. Without a service of usage they show no cost.
func New(directory *hub.Service, halts *halt.Service, used *usage.Service, ceilings *usage.Ceilings, queue Queue,
	tasks *task.Service, site *pages.Site) *Pages {
	return &Pages{directory, halts, used, ceilings, queue, tasks, site}
}

// Manageable returns the agent in the path if the actor may see the owner's pages, otherwise an error.
func Manageable(directory *hub.Service, r *http.Request, actor ident.Actor) (hub.Agent, error) {
	a, err := directory.Get(r.Context(), actor, request.PathName(r))
	if err != nil {
		return a, err
	}
	if !actor.IsPerson() {
		return a, fault.New(fault.Unauthenticated, "Log in to manage this agent.")
	}
	if !a.MayEdit(actor) {
		return a, fault.New(fault.Forbidden, "Only an owner of %s may do that.", a.Name)
	}
	return a, nil
}

// showWork shows the queue, the cost and the last calls of an agent. Callers are shown by kind only.
func (d *Pages) showWork(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := Manageable(d.hub, r, actor)
	if err != nil {
		return err
	}
	stats, err := d.hub.Usage.Stats(r.Context(), actor, a.Name)
	if err != nil {
		return err
	}
	running, waiting, err := d.queue.AgentQueue(r.Context(), actor, a.Name)
	if err != nil {
		return err
	}
	v := templates.WorkView{Ref: a.Name, Title: a.Title, Icon: a.Icon, Paused: d.halts.ReasonOf(a, d.hub.TextGoesTo(a)),
		Tiles: statTiles(stats), Chart: statChart(stats.Days), Unpaid: a.OwnerID != actor.ID || d.usage == nil}
	answers := 0
	for _, c := range stats.Calls {
		row := callRow(a, c, a.OwnedBy(actor))
		switch state := task.State(c.State); {
		case state.Active():
			if wait, ok := d.tasks.WaitOf(task.Task{ID: c.TaskID, State: state}); ok {
				row.Wait = wait.String()
			}
			if state != task.Submitted && state != task.Working {
				answers++ // It waits for a person and takes no place in the queue.
			}
			v.Queue = append(v.Queue, row)
		case len(v.Calls) < callsShown:
			v.Calls = append(v.Calls, row)
		}
	}
	v.Unlisted = max(running+waiting+answers-len(v.Queue), 0)
	v.Now = []templates.Tile{{Label: "Runs now", Value: strconv.Itoa(running)},
		{Label: "Waits", Value: strconv.Itoa(waiting)}}
	today := failedToday(stats.Days)
	v.Now = append(v.Now, templates.Tile{Label: "Failed today", Value: pages.FormatNumber(int64(today))})
	if v.IsProgram = a.Kind == hub.Wasm && a.OwnedBy(actor); v.IsProgram {
		if v.Log, err = d.readLog(r.Context(), actor, a, stats.Calls); err != nil {
			return err
		}
	}
	if !v.Unpaid {
		if err := d.addCost(r, actor, a, &v); err != nil {
			return err
		}
	}
	return d.site.Render(w, r, http.StatusOK, templates.Work(d.site.Frame(r, actor, "Work of "+a.Title), v))
}

// addCost adds the cost of an agent's models to the page of the person who owns it.
func (d *Pages) addCost(r *http.Request, actor ident.Actor, a hub.Agent, v *templates.WorkView) error {
	report, err := d.usage.Report(r.Context(), actor, usage.Query{Of: usage.OfAgents, By: usage.ByDay, AgentID: a.ID})
	if err != nil {
		return err
	}
	v.Plot = cost.Plot(report)
	tile := templates.Tile{Label: "Tokens today", Value: "0"}
	if report.Currency != "" {
		tile = templates.Tile{Label: "Cost today", Value: cost.FormatMoney(0, report.Currency)}
	}
	for _, s := range report.Rows {
		if s.Key != strconv.FormatInt(usage.DayOf(clock.Now()), 10) {
			continue
		}
		tokens := pages.FormatCounted(int(s.Input+s.Output), "token", "tokens")
		if tile.Value = pages.FormatNumber(s.Input + s.Output); report.Currency != "" {
			tile.Value, tile.Hint = cost.FormatMoney(s.TalkCost+s.WorkCost, report.Currency), tokens
		}
	}
	v.Now = append(v.Now, tile)
	ceilings, err := d.ceilings.List(r.Context(), actor)
	for _, c := range ceilings {
		if c.AgentID == a.ID {
			v.Ceiling = cost.CeilingParts(c, report.Currency)
		}
	}
	return err
}

// failedToday returns the number of calls that failed today (UTC).
func failedToday(days []hub.Day) int {
	for _, d := range days {
		if usage.DayOf(d.Day) == usage.DayOf(clock.Now()) {
			return d.Failed
		}
	}
	return 0
}

// Routes declares the routes of the pages.
func (d *Pages) Routes(r chi.Router) {
	r.Get("/agents/{name}/owner/work", d.site.Page(d.showWork))
	r.Get("/agents/{name}/owner/calls/{task}", d.site.Page(d.wireLog))
}
