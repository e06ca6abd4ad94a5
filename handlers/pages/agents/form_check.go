package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/agentkind"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

// checkJSON is the answer to the form's script, which shows the errors beside the fields.
type checkJSON struct {
	// Fields maps form fields to their errors.
	Fields   map[string]string `json:"fields"`
	NameFree bool              `json:"name_free"`
	// Names are proposals of free names if the agent cannot have the name.
	Names []string `json:"names,omitempty"`
	// Found describes the server at the address, if the script asked for a check of the address.
	Found string `json:"found,omitempty"`
}

// checkForm answers with the errors of a form while it is being filled in, and stores nothing. It
// contacts the agent's address only if the form marks the address as new.
func (d *Form) checkForm(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.answerCheck(w, r, actor, nil)
}

// checkEdit is checkForm for an edit of the agent in the path, so the agent's own name counts as free.
func (d *Form) checkEdit(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := d.editable(r, actor)
	if err != nil {
		return err
	}
	return d.answerCheck(w, r, actor, &a)
}

func (d *Form) answerCheck(w http.ResponseWriter, r *http.Request, actor ident.Actor, a *hub.Agent) error {
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Log in to register an agent.")
	}
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	s := sheet{view: typed(in), bad: map[string]string{}}
	if a != nil {
		s.name, s.view.Name = a.Name, a.Name
	}
	s.draft, s.rows = draftOf(s.view, in, s.bad)
	messages := map[string]string{}
	if _, err := d.hub.Preview(r.Context(), actor, s.name, unasked(s.draft)); err != nil {
		m, _, ok := pages.FieldErrors(w, err)
		if !ok {
			return err
		}
		messages = m
	}
	maps.Copy(messages, s.bad)
	out := checkJSON{Fields: formFields(messages, s.view.Kind, s.rows), NameFree: true}
	if name := strings.TrimSpace(s.view.Name); a == nil && name != "" {
		if out.NameFree, err = d.hub.NameFree(r.Context(), actor, name); err != nil {
			return err
		}
		if !out.NameFree {
			out.Fields["name"] = cmp.Or(out.Fields["name"], "taken; choose another")
			out.Names = d.freeNames(r.Context(), actor, name)
		}
	}
	if in.Has("ask_address") && s.view.Endpoint != "" && out.Fields["endpoint"] == "" &&
		(s.view.Kind == string(hub.A2A) || s.view.Kind == string(hub.MCP)) {
		out.Found = d.whatAnswers(r.Context(), actor, s.view.Endpoint, hub.Kind(s.view.Kind))
	}
	// encoded escapes < and >, so the answer contains no markup that was typed
	respond.JSON(w, http.StatusOK, encoded(out))
	return nil
}

// whatAnswers returns a sentence about the server at an address, for the person who fills in the form.
func (d *Form) whatAnswers(ctx context.Context, actor ident.Actor, address string, kind hub.Kind) string {
	found, err := d.hub.Read(ctx, actor, "", hub.Target{Endpoint: address})
	switch {
	case err != nil:
		return cmp.Or(fault.As(err).Fields["endpoint"], fault.As(err).Safe) + " You can register it all the same."
	case found.Kind != kind:
		return "What answers there looks like another kind: " + agentkind.Of(found.Kind).Choice + "."
	}
	return "Found “" + found.Title + "”."
}

// unasked returns a draft for which the service does not contact the agent's address: it fills the part
// of the config that the service would request.
func unasked(d hub.Draft) hub.Draft {
	key := agentkind.Of(value(d.Kind)).Supplied
	if key == "" {
		return d
	}
	config := maps.Clone(d.Config)
	if config == nil {
		config = map[string]json.RawMessage{}
	}
	if _, told := config[key]; !told {
		config[key] = encoded(nil)
	}
	d.Config = config
	return d
}

const maxFreeNames = 3

// freeNames returns up to maxFreeNames free names similar to a name that the agent cannot have.
func (d *Form) freeNames(ctx context.Context, actor ident.Actor, name string) []string {
	name = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(name), "@"))
	cut := func(s string, room int) string { return strings.TrimRight(s[:min(len(s), max(40-room, 0))], "-") }
	tries := []string{cut(name, len(actor.Name)+1) + "-" + actor.Name, cut(name, 6) + "-agent"}
	for n := 2; n <= 9; n++ {
		tries = append(tries, cut(name, 2)+"-"+strconv.Itoa(n))
	}
	var out []string
	for _, t := range tries {
		if len(out) == maxFreeNames {
			break
		}
		if free, err := d.hub.NameFree(ctx, actor, t); err == nil && free {
			out = append(out, t)
		}
	}
	return out
}
