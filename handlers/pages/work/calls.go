package work

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/pages"
	"agentsite/internal/clock"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/templates"
)

const (
	callsShown  = 50
	chartDays   = 30
	chartStep   = 10
	chartBar    = 7
	chartHeight = 60
)

func statTiles(s hub.Stats) []templates.Tile {
	calls, failed := 0, 0
	for _, d := range s.Days {
		calls, failed = calls+d.Calls, failed+d.Failed
	}
	errors := templates.Tile{Label: "Failed", Value: pages.FormatNumber(int64(failed))}
	if failed > 0 {
		errors.Hint = fmt.Sprintf("%.1f%% of all", 100*float64(failed)/float64(calls))
	}
	out := []templates.Tile{{Label: "Calls", Value: pages.FormatNumber(int64(calls))}, errors,
		{Label: "Usual answer", Value: "–", Hint: "half are quicker"},
		{Label: "Slow answer", Value: "–", Hint: "95 of 100 are quicker"}}
	if s.P50 > 0 || s.P95 > 0 {
		out[2].Value, out[3].Value = took(s.P50), took(s.P95)
	}
	return out
}

// statChart draws the calls of each of the last chartDays days, with the failed ones in front. It returns
// nil without data.
func statChart(days []hub.Day) *templates.Picture {
	if len(days) == 0 {
		return nil
	}
	today := clock.Now().UTC().Truncate(24 * time.Hour)
	begin := today.AddDate(0, 0, 1-chartDays)
	most, calls, failed := 1, 0, 0
	for _, d := range days {
		most, calls, failed = max(most, d.Calls), calls+d.Calls, failed+d.Failed
	}
	p := &templates.Picture{Width: strconv.Itoa(chartDays*chartStep - (chartStep - chartBar)),
		Height: strconv.Itoa(chartHeight), From: pages.FormatMoment(begin), To: pages.FormatMoment(today),
		Desc: fmt.Sprintf("%s in %d days, %s failed; at most %s on one day.",
			pages.FormatCounted(calls, "call", "calls"), chartDays, pages.FormatNumber(int64(failed)),
			pages.FormatNumber(int64(most)))}
	for _, d := range days {
		at := int(d.Day.UTC().Sub(begin).Hours() / 24)
		if at < 0 || at >= chartDays {
			continue
		}
		title := d.Day.UTC().Format("2 Jan") + ": " + pages.FormatCounted(d.Calls, "call",
			"calls") + ", " + pages.FormatNumber(int64(d.Failed)) + " failed"
		bar := func(state string, n int) {
			if n == 0 {
				return
			}
			h := max(2, n*chartHeight/most)
			p.AddBar(at*chartStep, chartBar, h, chartHeight, state, title)
		}
		bar("calls", d.Calls)
		bar("failed", d.Failed)
	}
	return p
}

// took formats the duration of a call, "" if it is unknown.
func took(t time.Duration) string {
	switch {
	case t >= time.Minute:
		return pages.FormatSpan(t)
	case t <= 0:
		return ""
	}
	return pages.FormatLatency(t)
}

// callerWords maps kinds of actors to words for people.
var callerWords = map[string]string{"guest": "a visitor", "person": "a person with an account",
	"operator": "the operator", "agent": "another agent", "portal": "a person of another portal"}

// faceWords maps names of protocol endpoints to words for people.
var faceWords = map[string]string{"page": "the pages", "api": "the API", "a2a": "A2A", "mcp": "MCP",
	"openai": "the OpenAI API", "embed": "a site that shows it", "relay": "an answer that agents passed on"}

func callRow(a hub.Agent, c hub.CallRecord, owns bool) templates.CallRow {
	row := templates.CallRow{Who: callerWords[c.CallerKind], Face: faceWords[c.Face],
		State: strings.ReplaceAll(c.State, "_", " "), Took: took(c.Took),
		Failed: c.State == string(task.Failed) || c.State == string(task.Rejected), Reason: c.Reason,
		Time: pages.FormatMoment(c.At)}
	if row.Who == "" {
		row.Who = c.CallerKind
	}
	if row.Face == "" {
		row.Face = c.Face
	}
	if c.Own {
		row.Who = "an owner"
		if owns {
			row.Href = "/agents/" + a.Name + "/owner/calls/" + c.TaskID
		}
	}
	return row
}

// maxLogs bounds the calls with a log that is shown on one page.
const maxLogs = 10

// readLog returns the log of a hosted program during the last calls that the owner made.
func (d *Pages) readLog(ctx context.Context, actor ident.Actor, a hub.Agent,
	calls []hub.CallRecord) (out []templates.LogRow, err error) {
	for _, c := range calls {
		if !c.Own || len(out) == maxLogs {
			continue
		}
		list, err := d.hub.Usage.Traces(ctx, actor, a.Name, c.TaskID)
		if err != nil {
			return nil, err
		}
		row := templates.LogRow{Time: pages.FormatMoment(c.At), Href: "/agents/" + a.Name + "/owner/calls/" + c.TaskID}
		for _, t := range list {
			if t.Head == task.TracedLog || t.Head == task.TracedTrap {
				row.Lines += t.Head + ": " + t.Body + "\n"
				row.Trapped = row.Trapped || t.Head == task.TracedTrap
			}
		}
		if row.Lines != "" {
			out = append(out, row)
		}
	}
	return out, nil
}

// wireLog shows an owner the recorded requests and responses of one call. An owner can see only calls
// that it made itself.
func (d *Pages) wireLog(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := Manageable(d.hub, r, actor)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "task")
	list, err := d.hub.Usage.Traces(r.Context(), actor, a.Name, id)
	if err != nil {
		return err
	}
	v := templates.WireView{Ref: a.Name, Title: a.Title, Pairs: wirePairs(list)}
	stats, err := d.hub.Usage.Stats(r.Context(), actor, a.Name)
	if err != nil {
		return err
	}
	for _, c := range stats.Calls {
		if c.TaskID == id {
			v.Call, v.Known = callRow(a, c, true), true
		}
	}
	return d.site.Render(w, r, http.StatusOK, templates.Wire(d.site.Frame(r, actor, "Wire log of "+a.Title), v))
}

// wirePairs returns each recorded request together with its response.
func wirePairs(list []hub.Trace) []templates.WirePair {
	var out []templates.WirePair
	for _, t := range list {
		m := &templates.WireMessage{Time: pages.FormatMoment(t.At), Head: t.Head,
			Body: pages.IndentJSON(strings.TrimRight(t.Body, "\r\n"))}
		if int64(len(t.Body)) < t.Size {
			m.Cut = "The first " + pages.FormatBytes(int64(len(t.Body))) + " of " + pages.FormatBytes(t.Size) + "."
		}
		n := len(out) - 1
		switch {
		case t.Sent:
			out = append(out, templates.WirePair{Sent: m})
		case n >= 0 && out[n].Got == nil:
			out[n].Got = m
		default:
			out = append(out, templates.WirePair{Got: m})
		}
	}
	return out
}
