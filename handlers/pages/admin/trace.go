package admin

import (
	"net/http"
	"strings"

	"agentsite/internal/doctor"
	"agentsite/internal/record"
	"agentsite/templates"
)

// traceView traces how the record of one of this portal's agents reached another portal, if the request
// asks for it. Each step shows whether it succeeded, and so why the agent is missing there.
func (d *Pages) traceView(r *http.Request) (v templates.AdminTrace, code int, err error) {
	q := r.URL.Query()
	if !q.Has("agent") && !q.Has("at") {
		return v, http.StatusOK, nil
	}
	v.Agent, v.At = q.Get("agent"), q.Get("at")
	name, at := strings.TrimPrefix(strings.TrimSpace(v.Agent), "@"), strings.TrimSpace(v.At)
	if name == "" || len(name) > 200 || len(at) > 300 {
		v.Error = "Write the name of an agent of this portal."
		return v, http.StatusBadRequest, nil
	}
	report, err := d.examiner.Examine(r.Context(), doctor.Question{Agent: name, Portal: at})
	if err != nil {
		return v, 0, err
	}
	for _, f := range report.Findings {
		v.Steps = append(v.Steps, templates.TraceStep{Level: string(f.Level), Text: record.CleanLine(f.Text),
			Do: record.CleanLine(f.Do)})
	}
	return v, http.StatusOK, nil
}
