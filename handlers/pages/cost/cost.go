// Package cost shows the cost of models on pages.
package cost

import (
	"fmt"
	"strconv"
	"strings"

	"agentsite/handlers/api/spending"
	"agentsite/handlers/pages"
	"agentsite/internal/usage"
	"agentsite/templates"
)

// The sizes of the plot, in units of its picture.
const (
	plotStep   = 10
	plotBar    = 7
	plotHeight = 60
)

// CeilingParts returns the bounds of a ceiling with the tokens and the money that are spent today.
func CeilingParts(c usage.CeilingState, currency string) (parts []templates.CeilingPart) {
	if c.Tokens > 0 {
		parts = append(parts, templates.CeilingPart{Spent: c.Spent.Tokens, Most: c.Tokens,
			Text: pages.FormatNumber(c.Spent.Tokens) + " of " + pages.FormatCounted(int(c.Tokens), "token", "tokens")})
	}
	if c.Cost > 0 {
		parts = append(parts, templates.CeilingPart{Spent: c.Spent.Cost, Most: c.Cost,
			Text: FormatMoney(c.Spent.Cost, "") + " of " + FormatMoney(c.Cost, currency)})
	}
	return parts
}

// Days returns the number of days of a report.
func Days(r usage.Report) int { return int(usage.DayOf(r.To)-usage.DayOf(r.From)) + 1 }

// Plot draws the cost of each day, or the tokens if no model has a price. It has no picture without data.
func Plot(r usage.Report) templates.UsagePlot {
	value, title := func(s usage.Sum) int64 { return s.TalkCost + s.WorkCost }, "cost by day"
	if r.Total.TalkCost+r.Total.WorkCost == 0 {
		value, title = func(s usage.Sum) int64 { return s.Input + s.Output }, "tokens by day"
	}
	var most int64
	for _, s := range r.Rows {
		most = max(most, value(s))
	}
	if most == 0 {
		return templates.UsagePlot{}
	}
	days := Days(r)
	format := func(n int64) string {
		if title == "cost by day" {
			return FormatMoney(n, r.Currency)
		}
		return pages.FormatCounted(int(n), "token", "tokens")
	}
	p := &templates.Picture{Width: strconv.Itoa(days*plotStep - (plotStep - plotBar)), Height: strconv.Itoa(plotHeight),
		From: pages.FormatMoment(r.From), To: pages.FormatMoment(r.To),
		Desc: fmt.Sprintf("At most %s on one of %d days.", format(most), days)}
	for _, s := range r.Rows {
		day, err := strconv.ParseInt(s.Key, 10, 64)
		if n := value(s); err == nil && n > 0 {
			at, h := int(day-usage.DayOf(r.From)), max(2, int(n*plotHeight/most))
			p.AddBar(at*plotStep, plotBar, h, plotHeight, "calls", usage.TimeOf(day).Format("2 Jan")+": "+format(n))
		}
	}
	return templates.UsagePlot{Picture: p, Title: title}
}

// FormatMoney formats millionths of a currency, with as many digits as a small sum needs.
func FormatMoney(millionths int64, currency string) string {
	text := spending.FormatCost(millionths)
	whole, rest, _ := strings.Cut(text, ".")
	if rest = strings.TrimRight(rest, "0"); len(rest) < 2 {
		rest = (rest + "00")[:2]
	}
	return strings.TrimSpace(whole + "." + rest + " " + currency)
}
