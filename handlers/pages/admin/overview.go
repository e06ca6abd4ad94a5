package admin

import (
	"fmt"
	"net/http"
	"strconv"

	"agentsite/handlers/pages"
	"agentsite/internal/attention"
	"agentsite/internal/clock"
	"agentsite/internal/figures"
	"agentsite/internal/ident"
	"agentsite/internal/quota"
	"agentsite/templates"
)

// The sizes of the plots, in units of their pictures.
const (
	plotStep   = 10
	plotBar    = 7
	plotHeight = 60
)

// figureTexts are the titles of figures and the pages with more.
var figureTexts = map[string]templates.Fact{
	figures.People:   {Label: "People", Href: "/admin/people"},
	figures.Messages: {Label: "Messages"},
	figures.Agents:   {Label: "Agents", Href: "/admin/agents"},
	figures.Errors:   {Label: "Failed tasks", Href: "/admin/queue"},
	figures.Disk:     {Label: "Disk", Href: "/admin/storage"},
}

func (d *Pages) overview(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	items, err := d.attention.List(r.Context(), actor)
	if err != nil {
		return err
	}
	return d.showOverview(w, r, actor, items, &templates.AdminOverview{})
}

// examineAll shows the overview with all findings of the doctor.
func (d *Pages) examineAll(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	items, err := d.attention.ExamineAll(r.Context(), actor)
	if err != nil {
		return err
	}
	return d.showOverview(w, r, actor, items, &templates.AdminOverview{Examined: true})
}

func (d *Pages) showOverview(w http.ResponseWriter, r *http.Request, actor ident.Actor, items []attention.Item,
	v *templates.AdminOverview) error {
	for _, i := range items {
		m := templates.Matter{Text: i.Text, Do: i.Do, Href: i.Href}
		if i.Note {
			v.Notes = append(v.Notes, m)
		} else {
			v.Due = append(v.Due, m)
		}
	}
	report, err := d.figures.Report(r.Context(), actor, figures.DefaultDays)
	if err != nil {
		return err
	}
	plotFigures(report, v)
	v.Facts = []templates.Fact{{Label: "Version", Value: d.portal.Version}, {Label: "Address", Value: d.portal.URL}}
	if !d.portal.Started.IsZero() {
		v.Facts = append(v.Facts, templates.Fact{Label: "Up for",
			Value: pages.FormatSpan(clock.Now().Sub(d.portal.Started))})
	}
	stats, err := d.stats.Stats(r.Context())
	if err != nil {
		return err
	}
	v.Facts = append(v.Facts,
		templates.Fact{Label: "Conversations", Value: pages.FormatNumber(stats["conversations"])},
		templates.Fact{Label: "Tasks waiting", Value: pages.FormatNumber(stats["tasks_waiting"]), Href: "/admin/queue"},
		templates.Fact{Label: "Database", Value: pages.FormatBytes(stats["bytes"]),
			Href: "/admin/storage"})
	if d.portal.Meanings.State != nil {
		text, _ := d.portal.Meanings.State.Describe()
		v.Facts = append(v.Facts, templates.Fact{Label: "Search by meaning", Value: text})
	}
	v.Facts = append(v.Facts, templates.Fact{Label: "Sign-up", Value: string(d.accounts.Policy()),
		Href: "/admin/settings"})
	return d.showAdmin(w, r, actor, http.StatusOK, templates.AdminView{Tab: "overview", Overview: v,
		Due: dueByTab(items)})
}

// dueByTab returns the number of items that need an action, by tab.
func dueByTab(items []attention.Item) map[string]int {
	out := make(map[string]int)
	for area, n := range attention.Count(items) {
		out[string(area)] = n
	}
	return out
}

// plotFigures draws each figure by day and lists them as a table.
func plotFigures(report figures.Report, v *templates.AdminOverview) {
	v.From, v.To = pages.FormatMoment(report.From), pages.FormatMoment(report.To)
	days := figures.DayOf(report.To) - figures.DayOf(report.From) + 1
	v.Days = make([]templates.DailyRow, days)
	for i := range v.Days {
		day := figures.TimeOf(figures.DayOf(report.To) - int64(i))
		v.Days[i].Day = pages.FormatMoment(day)
	}
	for _, s := range report.Series {
		v.Plots = append(v.Plots, plotSeries(report, s))
		for i := range v.Days {
			day, text := len(v.Days)-1-i, "–"
			if s.Known[day] {
				text = formatFigure(s.Name, s.Values[day])
			}
			v.Days[i].Values = append(v.Days[i].Values, text)
		}
	}
}

// plotSeries draws a bar for each known day; their heights begin at zero.
func plotSeries(report figures.Report, s figures.Series) templates.DailyPlot {
	text := figureTexts[s.Name]
	p := templates.DailyPlot{ID: "plot-" + s.Name, Title: text.Label, Href: text.Href,
		Now: formatFigure(s.Name, s.Last()), Picture: templates.Picture{
			Width: strconv.Itoa(len(s.Values)*plotStep - (plotStep - plotBar)), Height: strconv.Itoa(plotHeight)}}
	most, sum, first := int64(0), int64(0), int64(-1)
	for i, n := range s.Values {
		most, sum = max(most, n), sum+n
		if s.Known[i] && first < 0 {
			first = n
		}
	}
	state := "calls"
	if s.Name == figures.Errors {
		state, p.Change = "failed", "today, "+formatFigure(s.Name, sum)+" in all"
	} else if grown := s.Last() - first; grown > 0 {
		p.Change = "+" + formatFigure(s.Name, grown)
	} else if grown < 0 {
		p.Change = "−" + formatFigure(s.Name, -grown)
	}
	p.Picture.Desc = fmt.Sprintf("%s today, at most %s on one day.", p.Now, formatFigure(s.Name, most))
	for i, n := range s.Values {
		if s.Known[i] && n > 0 {
			day := figures.TimeOf(figures.DayOf(report.From) + int64(i))
			p.Picture.AddBar(i*plotStep, plotBar, max(2, int(n*plotHeight/most)), plotHeight, state,
				day.Format("2 Jan")+": "+formatFigure(s.Name, n))
		}
	}
	return p
}

func formatFigure(name string, n int64) string {
	if name == figures.Disk {
		return quota.Text(n)
	}
	return pages.FormatNumber(n)
}
