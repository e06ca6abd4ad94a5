// Package operator has the API routes of the settings that an operator may change while the portal runs, of the matters
// that wait for the operator, and of the figures of each day.
package operator

import (
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/adjust"
	"agentsite/internal/attention"
	"agentsite/internal/fault"
	"agentsite/internal/figures"
	"agentsite/internal/ident"
)

// API answers the routes. Create it with New.
type API struct {
	settings  *adjust.Service
	attention *attention.Service
	figures   *figures.Service
	sessions  *request.Sessions
}

// New returns the API over the services of a portal.
func New(s *adjust.Service, a *attention.Service, f *figures.Service, sessions *request.Sessions) *API {
	return &API{s, a, f, sessions}
}

// Routes declares the routes below /api/v1.
func (d *API) Routes(r chi.Router) {
	r.Get("/settings", d.sessions.API(d.listSettings))
	r.Patch("/settings", d.sessions.API(d.changeSettings))
	r.Post("/settings/{name}/undo", d.sessions.API(d.undoSetting))
	r.Get("/attention", d.sessions.API(d.listMatters))
	r.Get("/figures", d.sessions.API(d.reportFigures))
}

// SettingJSON is a setting.
type SettingJSON struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// FixedBy is the flag or variable that fixes the value.
	FixedBy string `json:"fixed_by,omitempty"`
	// Live is true if a change applies at once; Pending if one waits for a restart.
	Live      bool    `json:"live"`
	Pending   bool    `json:"pending"`
	ChangedAt string  `json:"changed_at,omitempty"`
	Previous  *string `json:"previous,omitempty"`
}

// SettingsBody changes settings; Password is that of the operator's account.
type SettingsBody struct {
	Settings map[string]string `json:"settings"`
	Password string            `json:"password"`
}

// PasswordBody proves the operator of a request without other contents.
type PasswordBody struct {
	Password string `json:"password"`
}

func (d *API) listSettings(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := d.settings.List(r.Context(), actor)
	if err != nil {
		return err
	}
	out := make([]SettingJSON, len(list))
	for i, s := range list {
		out[i] = SettingJSON{Name: s.Name, Value: s.Value, FixedBy: s.Given, Live: adjust.IsLive(s.Name),
			Pending: s.Pending}
		if !s.Changed.IsZero() {
			out[i].ChangedAt, out[i].Previous = respond.FormatTime(s.Changed), &s.Undo
		}
	}
	respond.JSON(w, http.StatusOK, map[string]any{"settings": out})
	return nil
}

func (d *API) changeSettings(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in SettingsBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	var c fault.Check
	known := make(adjust.Values)
	for _, name := range adjust.Names() {
		if value, ok := in.Settings[name]; ok {
			known[name] = value
		}
	}
	c.Field(len(known) == len(in.Settings), "settings", "has a name that is no setting; GET /settings lists them")
	err := c.Err()
	if err == nil {
		_, err = d.settings.Change(r.Context(), actor, in.Password, known)
	}
	if err != nil {
		return namePassword(err)
	}
	d.attention.Renew()
	return d.listSettings(w, r, actor)
}

func (d *API) undoSetting(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in PasswordBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	if err := d.settings.Undo(r.Context(), actor, in.Password, request.PathName(r)); err != nil {
		return namePassword(err)
	}
	d.attention.Renew()
	return d.listSettings(w, r, actor)
}

// namePassword names the field of the password in an error as the body does; forms of pages call it confirm.
func namePassword(err error) error {
	if f := fault.As(err); f.Fields["confirm"] != "" {
		return fault.Field("password", f.Fields["confirm"])
	}
	return err
}

// MatterJSON is a matter that waits, with its remedy.
type MatterJSON struct {
	Area string `json:"area"`
	Text string `json:"text"`
	Do   string `json:"do,omitempty"`
	Href string `json:"href"`
	Note bool   `json:"note"`
}

func (d *API) listMatters(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := d.attention.List(r.Context(), actor)
	if err != nil {
		return err
	}
	out := make([]MatterJSON, len(list))
	for i, m := range list {
		out[i] = MatterJSON{string(m.Area), m.Text, m.Do, m.Href, m.Note}
	}
	respond.JSON(w, http.StatusOK, map[string]any{"matters": out})
	return nil
}

// DayJSON is the figures of a day on which the portal ran; others are missing from the list.
type DayJSON struct {
	Day     string           `json:"day"`
	Figures map[string]int64 `json:"figures"`
}

func (d *API) reportFigures(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	days := figures.DefaultDays
	if s := r.URL.Query().Get("days"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			return fault.Field("days", "use a number of days")
		}
		days = n
	}
	report, err := d.figures.Report(r.Context(), actor, days)
	if err != nil {
		return err
	}
	out := make([]DayJSON, 0, days)
	for i := range days {
		day := DayJSON{Day: figures.TimeOf(figures.DayOf(report.From) + int64(i)).Format(time.DateOnly),
			Figures: make(map[string]int64)}
		for _, s := range report.Series {
			if s.Known[i] {
				day.Figures[s.Name] = s.Values[i]
			}
		}
		if len(day.Figures) > 0 {
			out = append(out, day)
		}
	}
	respond.JSON(w, http.StatusOK, map[string]any{"days": out})
	return nil
}
