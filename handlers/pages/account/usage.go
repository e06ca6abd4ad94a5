package account

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"agentsite/handlers/api/spending"
	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/usage"
	"agentsite/templates"
)

// The sizes of the plot, in units of its picture.
const (
	plotStep   = 10
	plotBar    = 7
	plotHeight = 60
)

// keyTitles are the titles of the table by its key, and of the links between them.
var keyTitles = map[usage.By]string{usage.ByDay: "By day", usage.ByAgent: "By agent", usage.ByModel: "By model",
	usage.ByOwner: "By owner", usage.ByPerson: "By caller"}

func (d *Pages) showUsage(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if !actor.IsPerson() {
		return respond.SeeOther(w, r, "/login?next="+url.QueryEscape("/account/usage"))
	}
	q, err := spending.ReadQuery(r)
	if err != nil {
		return err
	}
	if r.URL.Query().Get("by") == "" {
		q.By = usage.ByAgent
	}
	report, err := d.usage.Report(r.Context(), actor, q)
	if err != nil {
		return err
	}
	days := report
	if q.By != usage.ByDay {
		byDay := q
		byDay.By = usage.ByDay
		if days, err = d.usage.Report(r.Context(), actor, byDay); err != nil {
			return err
		}
	}
	v := templates.UsageView{KeyTitle: keyTitles[q.By], CSVHref: "/api/v1/usage?format=csv&" + usageParams(q.Of, q.By),
		Scopes: usageScopes(actor, q), Keys: usageKeys(q), More: len(report.Rows) == usage.MaxRows,
		Estimated: report.Total.Estimated > 0, Unpriced: report.Currency == "" && report.Total.Calls > 0}
	t := report.Total
	v.Figures = []templates.Tile{
		{Label: "Calls", Value: pages.FormatNumber(t.Calls), Hint: fmt.Sprintf("in %d days", usageDays(report))},
		{Label: "Tokens", Value: pages.FormatNumber(t.Input + t.Output),
			Hint: pages.FormatNumber(t.Input) + " read, " + pages.FormatNumber(t.Output) + " written"}}
	if q.Of == usage.OfAgents {
		if v.Ceilings, err = d.ceilingRows(r, actor, report.Currency); err != nil {
			return err
		}
		v.OfAgents = true
	}
	if report.Currency != "" {
		cost := templates.Tile{Label: "Cost", Value: formatMoney(t.TalkCost+t.WorkCost, report.Currency)}
		if t.TalkCost > 0 {
			cost.Hint = formatMoney(t.TalkCost, report.Currency) + " for the talk of teams"
		}
		v.Figures = append(v.Figures, cost)
	}
	v.Chart, v.ChartTitle = usagePlot(days)
	for _, s := range report.Rows {
		row := templates.UsageRow{Key: cmp.Or(spending.FormatKey(q.By, s.Key), "not registered"),
			Calls:  pages.FormatCounted(int(s.Calls), "call", "calls"),
			Tokens: pages.FormatCounted(int(s.Input+s.Output), "token", "tokens"), Estimated: s.Estimated > 0}
		if report.Currency != "" {
			row.Cost = formatMoney(s.TalkCost+s.WorkCost, report.Currency)
		}
		if q.By == usage.ByAgent && s.Key != "" {
			row.Href = "/agents/" + url.PathEscape(s.Key)
		}
		v.Rows = append(v.Rows, row)
	}
	return d.site.Render(w, r, http.StatusOK, templates.Usage(d.site.Frame(r, actor, "Usage of models"), v))
}

// ceilingRows returns the ceilings of the actor with the tokens and money spent today.
func (d *Pages) ceilingRows(r *http.Request, actor ident.Actor, currency string) ([]templates.CeilingRow, error) {
	list, err := d.ceilings.List(r.Context(), actor)
	if err != nil {
		return nil, err
	}
	rows := make([]templates.CeilingRow, len(list))
	for i, c := range list {
		row := templates.CeilingRow{Agent: c.Agent}
		if c.Tokens > 0 {
			row.Parts = append(row.Parts, templates.CeilingPart{Spent: c.Spent.Tokens, Most: c.Tokens,
				Text: pages.FormatNumber(c.Spent.Tokens) + " of " +
					pages.FormatCounted(int(c.Tokens), "token", "tokens")})
		}
		if c.Cost > 0 {
			row.Parts = append(row.Parts, templates.CeilingPart{Spent: c.Spent.Cost, Most: c.Cost,
				Text: formatMoney(c.Spent.Cost, "") + " of " + formatMoney(c.Cost, currency)})
		}
		rows[i] = row
	}
	return rows, nil
}

// putCeiling sets the ceiling of the form, and removes one that is empty.
func (d *Pages) putCeiling(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	var most usage.Amount
	var c fault.Check
	if s := strings.ReplaceAll(strings.TrimSpace(in.Get("tokens")), ",", ""); s != "" {
		most.Tokens, err = strconv.ParseInt(s, 10, 64)
		c.Field(err == nil, "tokens", "use a number, or leave it empty")
	}
	most.Cost, err = spending.ParseCost(in.Get("cost"))
	c.Field(err == nil, "cost", "use a sum such as 2.50, or leave it empty")
	if err = c.Err(); err == nil {
		err = d.ceilings.Put(r.Context(), actor, strings.TrimPrefix(strings.TrimSpace(in.Get("agent")), "@"), most)
	}
	if err != nil {
		return err
	}
	return respond.SeeOther(w, r, "/account/usage?"+usageParams(usage.OfAgents, usage.ByAgent)+"#ceilings-title")
}

func usageParams(of usage.Scope, by usage.By) string {
	return url.Values{"of": {string(of)}, "by": {string(by)}}.Encode()
}

func usageScopes(actor ident.Actor, q usage.Query) (out []templates.Choice) {
	list := []usage.Scope{usage.OfMe, usage.OfAgents}
	if actor.IsOperator() {
		list = append(list, usage.OfPortal)
	}
	labels := map[usage.Scope]string{usage.OfMe: "What you asked", usage.OfAgents: "Your agents", usage.OfPortal: "The portal"}
	for _, of := range list {
		out = append(out, templates.Choice{Href: "/account/usage?" + usageParams(of, q.By), Label: labels[of], Current: of == q.Of})
	}
	return out
}

func usageKeys(q usage.Query) (out []templates.Choice) {
	list := []usage.By{usage.ByAgent, usage.ByModel, usage.ByDay}
	if q.Of != usage.OfMe {
		list = append(list, usage.ByPerson)
	}
	if q.Of == usage.OfPortal {
		list = append(list, usage.ByOwner)
	}
	for _, by := range list {
		out = append(out, templates.Choice{Href: "/account/usage?" + usageParams(q.Of, by), Label: keyTitles[by], Current: by == q.By})
	}
	return out
}

// usageDays returns the number of days of a report.
func usageDays(r usage.Report) int { return int(usage.DayOf(r.To)-usage.DayOf(r.From)) + 1 }

// usagePlot draws the cost of each day, or the tokens if no model has a price; nil without data. title names the
// plotted figure.
func usagePlot(r usage.Report) (p *templates.Picture, title string) {
	value, title := func(s usage.Sum) int64 { return s.TalkCost + s.WorkCost }, "cost by day"
	if r.Total.TalkCost+r.Total.WorkCost == 0 {
		value, title = func(s usage.Sum) int64 { return s.Input + s.Output }, "tokens by day"
	}
	var most int64
	for _, s := range r.Rows {
		most = max(most, value(s))
	}
	if most == 0 {
		return nil, ""
	}
	days := usageDays(r)
	format := func(n int64) string {
		if title == "cost by day" {
			return formatMoney(n, r.Currency)
		}
		return pages.FormatCounted(int(n), "token", "tokens")
	}
	p = &templates.Picture{Width: strconv.Itoa(days*plotStep - (plotStep - plotBar)), Height: strconv.Itoa(plotHeight),
		From: pages.FormatMoment(r.From), To: pages.FormatMoment(r.To),
		Desc: fmt.Sprintf("At most %s on one of %d days.", format(most), days)}
	for _, s := range r.Rows {
		day, err := strconv.ParseInt(s.Key, 10, 64)
		if n := value(s); err == nil && n > 0 {
			at, h := int(day-usage.DayOf(r.From)), max(2, int(n*plotHeight/most))
			p.AddBar(at*plotStep, plotBar, h, plotHeight, "calls", usage.TimeOf(day).Format("2 Jan")+": "+format(n))
		}
	}
	return p, title
}

// formatMoney formats millionths of a currency, with as many digits as a small sum needs.
func formatMoney(millionths int64, currency string) string {
	text := spending.FormatCost(millionths)
	whole, rest, _ := strings.Cut(text, ".")
	if rest = strings.TrimRight(rest, "0"); len(rest) < 2 {
		rest = (rest + "00")[:2]
	}
	return strings.TrimSpace(whole + "." + rest + " " + currency)
}
