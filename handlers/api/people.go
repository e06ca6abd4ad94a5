package api

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

func (d *chatAPI) apiInvite(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	handles, err := memberHandles(w, r)
	if err != nil {
		return err
	}
	var out []memberJSON
	for _, h := range handles {
		m, err := d.chat.Invite(r.Context(), actor, chi.URLParam(r, "id"), h)
		if err != nil {
			return err
		}
		out = append(out, newMemberJSON(m))
	}
	respond.JSON(w, http.StatusCreated, map[string]any{"members": out})
	return nil
}

type membersBody struct {
	Handle  string   `json:"handle"`
	Members []string `json:"members"`
}

// memberHandles reads the handles that a request names: {"handle":"guide"} or {"members":["guide"]}.
func memberHandles(w http.ResponseWriter, r *http.Request) ([]string, error) {
	var in membersBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return nil, err
	}
	if in.Handle != "" {
		in.Members = append(in.Members, in.Handle)
	}
	if len(in.Members) == 0 || len(in.Members) > chat.MaxMembers {
		return nil, &fault.Error{Kind: fault.Invalid, Safe: `members: name whom, for example {"members":["guide"]}`,
			Fields: map[string]string{"members": "name whom"}}
	}
	return in.Members, nil
}

func (d *chatAPI) apiRemoveMember(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	handles := []string{request.PathParam(r, "handle")}
	if handles[0] == "" {
		handles[0] = r.URL.Query().Get("handle")
	}
	if handles[0] == "" {
		var err error
		if handles, err = memberHandles(w, r); err != nil {
			return err
		}
	}
	for _, h := range handles {
		if err := d.chat.Remove(r.Context(), actor, chi.URLParam(r, "id"), h); err != nil {
			return err
		}
	}
	return nothing(w, nil)
}

type roleBody struct {
	Role string `json:"role"`
}

func (d *chatAPI) apiSetRole(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in roleBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	return nothing(w, d.chat.SetRole(r.Context(), actor, chi.URLParam(r, "id"), request.PathParam(r, "handle"),
		in.Role))
}

type disclosureJSON struct {
	Agent  string     `json:"agent"`
	Host   string     `json:"host"`
	Share  chat.Share `json:"share"`
	ToldAt string     `json:"told_at,omitempty"`
}

// apiDisclosures lists the agents whose messages leave the portal, with their destination and whether the actor has
// seen the disclosure.
func (d *chatAPI) apiDisclosures(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := d.chat.Disclosures(r.Context(), actor, chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	out := make([]disclosureJSON, len(list))
	for i, x := range list {
		out[i] = disclosureJSON{x.Agent, x.Host, x.Share, respond.FormatTime(x.ToldAt)}
	}
	respond.JSON(w, http.StatusOK, map[string]any{"disclosures": out})
	return nil
}

type disclosureBody struct {
	Agent string     `json:"agent"`
	Share chat.Share `json:"share"`
}

func (d *chatAPI) apiDisclose(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in disclosureBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	return nothing(w, d.chat.Disclose(r.Context(), actor, chi.URLParam(r, "id"), in.Agent, in.Share))
}

// PrefsJSON holds an account's notification settings. Times have the form HH:MM; empty ones mean no quiet
// hours.
type PrefsJSON struct {
	Notify    chat.Notify `json:"notify"`
	QuietFrom string      `json:"quiet_from"`
	QuietTo   string      `json:"quiet_to"`
	Zone      string      `json:"zone"`
}

func NewPrefsJSON(p chat.Prefs) PrefsJSON {
	j := PrefsJSON{Notify: p.Notify, Zone: p.Zone}
	if p.QuietFrom != p.QuietTo {
		j.QuietFrom, j.QuietTo = clockTime(p.QuietFrom), clockTime(p.QuietTo)
	}
	return j
}

// Prefs converts the settings, and returns an error that names the field of a malformed time.
func (j PrefsJSON) Prefs() (p chat.Prefs, err error) {
	var c fault.Check
	p = chat.Prefs{Notify: j.Notify, Zone: strings.TrimSpace(j.Zone)}
	read := func(name, s string) int {
		if s = strings.TrimSpace(s); s == "" {
			return 0
		}
		n, ok := minuteOfDay(s)
		c.Field(ok, name, "write a time like 22:00")
		return n
	}
	p.QuietFrom, p.QuietTo = read("quiet_from", j.QuietFrom), read("quiet_to", j.QuietTo)
	c.Field((strings.TrimSpace(j.QuietFrom) == "") == (strings.TrimSpace(j.QuietTo) == ""), "quiet_to",
		"give both times, or neither")
	return p, c.Err()
}

func clockTime(minute int) string { return fmt.Sprintf("%02d:%02d", minute/60, minute%60) }

// minuteOfDay returns the minute of the day of a time HH:MM; ok is false if the form is wrong.
func minuteOfDay(s string) (int, bool) {
	h, m, ok := strings.Cut(s, ":")
	hour, err1 := strconv.ParseUint(h, 10, 8)
	minute, err2 := strconv.ParseUint(m, 10, 8)
	return int(hour)*60 + int(minute), ok && err1 == nil && err2 == nil && len(m) == 2 && hour < 24 && minute < 60
}

func (d *chatAPI) apiPrefs(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	p, err := d.chat.Preferences.Get(r.Context(), actor)
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, NewPrefsJSON(p))
	return nil
}

func (d *chatAPI) apiSetPrefs(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in PrefsJSON
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	p, err := in.Prefs()
	if err == nil {
		err = d.chat.Preferences.Set(r.Context(), actor, p)
	}
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, NewPrefsJSON(p))
	return nil
}
