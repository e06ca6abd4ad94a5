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
	"agentsite/handlers/pages/cost"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/usage"
	"agentsite/templates"
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
		{Label: "Calls", Value: pages.FormatNumber(t.Calls), Hint: fmt.Sprintf("in %d days", cost.Days(report))},
		{Label: "Tokens", Value: pages.FormatNumber(t.Input + t.Output),
			Hint: pages.FormatNumber(t.Input) + " read, " + pages.FormatNumber(t.Output) + " written"}}
	if q.Of == usage.OfAgents {
		if v.Ceilings, err = d.ceilingRows(r, actor, report.Currency); err != nil {
			return err
		}
		v.OfAgents = true
	}
	if report.Currency != "" {
		spent := templates.Tile{Label: "Cost", Value: cost.FormatMoney(t.TalkCost+t.WorkCost, report.Currency)}
		if t.TalkCost > 0 {
			spent.Hint = cost.FormatMoney(t.TalkCost, report.Currency) + " for the talk of teams"
		}
		v.Figures = append(v.Figures, spent)
	}
	v.Plot = cost.Plot(days)
	for _, s := range report.Rows {
		row := templates.UsageRow{Key: cmp.Or(spending.FormatKey(q.By, s.Key), "not registered"),
			Calls: pages.FormatNumber(s.Calls), Tokens: pages.FormatNumber(s.Input + s.Output), Estimated: s.Estimated > 0}
		if report.Currency != "" {
			row.Cost = cost.FormatMoney(s.TalkCost+s.WorkCost, report.Currency)
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
		rows[i] = templates.CeilingRow{Agent: c.Agent, Parts: cost.CeilingParts(c, currency)}
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
	labels := map[usage.Scope]string{usage.OfMe: "What you asked",
		usage.OfAgents: "Your agents", usage.OfPortal: "The portal"}
	for _, of := range list {
		out = append(out, templates.Choice{Href: "/account/usage?" + usageParams(of, q.By),
			Label: labels[of], Current: of == q.Of})
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
		out = append(out, templates.Choice{Href: "/account/usage?" + usageParams(q.Of, by),
			Label: keyTitles[by], Current: by == q.By})
	}
	return out
}
