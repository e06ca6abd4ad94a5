package api

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

// apiPutAgent registers the agent of the path, or updates it to the body. The same request twice has the
// same result, so that scripts may repeat it.
func (d *agentAPI) apiPutAgent(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := d.readAgent(w, r, actor)
	if err != nil {
		return err
	}
	name := request.PathName(r)
	if in.Name != nil && *in.Name != name {
		return fault.Field("name", "is another than in the address")
	}
	in.Name = &name
	draft, err := d.draft(r.Context(), actor, in)
	if err != nil {
		return err
	}
	a, err := d.hub.Update(r.Context(), actor, name, draft)
	code := http.StatusOK
	if fault.Is(err, fault.NotFound) {
		code = http.StatusCreated
		a, err = d.hub.Publish(r.Context(), actor, draft)
	}
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/api/v1/agents/"+a.Name)
	respond.JSON(w, code, d.agentJSON(actor, a))
	return nil
}

// maxImportLine bounds one line of an import, which is one agent, in bytes.
const maxImportLine = 256 << 10

// apiImport registers the agents of the body, one JSON object a line; only the operator may. Lines are
// stored while the body is read, so that memory does not bound the import. After an error the agents of
// earlier lines stay registered.
func (d *agentAPI) apiImport(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(make([]byte, 0, 64<<10), maxImportLine)
	n := 0
	done, err := d.hub.Import(r.Context(), actor, func() (hub.Draft, error) {
		for lines.Scan() {
			n++
			line := bytes.TrimSpace(lines.Bytes())
			if len(line) == 0 {
				continue
			}
			var in DraftJSON
			if err := request.DecodeLine(line, &in); err != nil {
				f := fault.As(err)
				return hub.Draft{}, &fault.Error{Kind: fault.Invalid, Fields: f.Fields, Safe: fmt.Sprintf(
					"Line %d is no agent. %s The agents before it were registered.", n, f.Safe)}
			}
			return in.Draft()
		}
		if err := lines.Err(); err != nil {
			if errors.Is(err, bufio.ErrTooLong) {
				return hub.Draft{}, fault.New(fault.Invalid,
					"Line %d is longer than %d KiB. The agents before it were registered.", n+1, maxImportLine>>10)
			}
			return hub.Draft{}, err
		}
		return hub.Draft{}, io.EOF
	})
	if err != nil {
		return err
	}
	list := done.Errors
	if list == nil {
		list = []string{}
	}
	respond.JSON(w, http.StatusOK, map[string]any{"registered": done.Agents, "skipped": done.Skipped, "errors": list})
	return nil
}

type suggestionJSON struct {
	Kind   string `json:"kind"`
	Text   string `json:"text"`
	Handle string `json:"handle,omitempty"`
	Count  int    `json:"count,omitempty"`
}

// apiSuggest answers with completions of the partial query in ?q=, for the search field of pages.
func (d *agentAPI) apiSuggest(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := d.hub.Suggest(r.Context(), actor, r.URL.Query().Get("q"))
	if err != nil {
		return err
	}
	out := make([]suggestionJSON, len(list))
	for i, s := range list {
		out[i] = suggestionJSON(s)
	}
	respond.JSON(w, http.StatusOK, map[string]any{"suggestions": out})
	return nil
}
