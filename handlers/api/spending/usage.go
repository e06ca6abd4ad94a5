package spending

import (
	"encoding/csv"
	"math/big"
	"net/http"
	"strconv"
	"time"

	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/usage"
)

type SumJSON struct {
	Key          string   `json:"key"`
	Calls        int64    `json:"calls"`
	Estimated    int64    `json:"estimated_calls"`
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	Cost         CostJSON `json:"cost"`
}

// CostJSON is money as decimal numbers in text, so that sums stay exact.
type CostJSON struct {
	Talk string `json:"talk"`
	Work string `json:"work"`
}

// FormatCost formats millionths of a currency as a decimal number with six places.
func FormatCost(millionths int64) string { return big.NewRat(millionths, 1_000_000).FloatString(6) }

func newSumJSON(by usage.By, s usage.Sum) SumJSON {
	return SumJSON{Key: FormatKey(by, s.Key), Calls: s.Calls, Estimated: s.Estimated, InputTokens: s.Input,
		OutputTokens: s.Output, Cost: CostJSON{FormatCost(s.TalkCost), FormatCost(s.WorkCost)}}
}

// FormatKey returns the key of a sum for readers: a date for a day, and others unchanged.
func FormatKey(by usage.By, key string) string {
	if by != usage.ByDay {
		return key
	}
	day, err := strconv.ParseInt(key, 10, 64)
	if err != nil {
		return key
	}
	return usage.TimeOf(day).Format(time.DateOnly)
}

// ReadQuery reads the parameters of, by, from and to; by default the actor's own usage by day.
func ReadQuery(r *http.Request) (q usage.Query, err error) {
	in := r.URL.Query()
	q = usage.Query{Of: usage.Scope(in.Get("of")), By: usage.By(in.Get("by"))}
	if q.Of == "" {
		q.Of = usage.OfMe
	}
	if q.By == "" {
		q.By = usage.ByDay
	}
	var c fault.Check
	for name, day := range map[string]*time.Time{"from": &q.From, "to": &q.To} {
		if s := in.Get(name); s != "" {
			*day, err = time.Parse(time.DateOnly, s)
			c.Field(err == nil, name, "use a date such as 2026-11-26")
		}
	}
	return q, c.Err()
}

func (a *API) report(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	q, err := ReadQuery(r)
	if err != nil {
		return err
	}
	report, err := a.usage.Report(r.Context(), actor, q)
	if err != nil {
		return err
	}
	if r.URL.Query().Get("format") == "csv" {
		return writeCSV(w, report)
	}
	rows := make([]SumJSON, len(report.Rows))
	for i, s := range report.Rows {
		rows[i] = newSumJSON(report.By, s)
	}
	respond.JSON(w, http.StatusOK, map[string]any{"of": report.Of, "by": report.By, "currency": report.Currency,
		"from": report.From.Format(time.DateOnly), "to": report.To.Format(time.DateOnly), "rows": rows,
		"total": newSumJSON("", report.Total)})
	return nil
}

// writeCSV writes a report as a table with a line of names. A key that a spreadsheet would read as a formula gets
// an apostrophe.
func writeCSV(w http.ResponseWriter, report usage.Report) error {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="usage.csv"`)
	out := csv.NewWriter(w)
	_ = out.Write([]string{string(report.By), "calls", "estimated_calls", "input_tokens", "output_tokens", "talk_cost",
		"work_cost", "currency"}) // Flush returns the first error
	for _, s := range report.Rows {
		j := newSumJSON(report.By, s)
		if j.Key != "" && (j.Key[0] == '=' || j.Key[0] == '+' || j.Key[0] == '-' || j.Key[0] == '@') {
			j.Key = "'" + j.Key
		}
		_ = out.Write([]string{j.Key, strconv.FormatInt(j.Calls, 10), strconv.FormatInt(j.Estimated, 10),
			strconv.FormatInt(j.InputTokens, 10), strconv.FormatInt(j.OutputTokens, 10), j.Cost.Talk, j.Cost.Work,
			report.Currency})
	}
	out.Flush()
	return out.Error()
}
