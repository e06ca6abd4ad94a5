package registry

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/registry"
)

const defaultPage = 30

type listJSON struct {
	Servers  []releaseJSON `json:"servers"`
	Metadata metadataJSON  `json:"metadata"`
}

type metadataJSON struct {
	NextCursor string `json:"nextCursor,omitempty"`
	Count      int    `json:"count"`
}

// releaseJSON is one version of a server: its server.json, and this registry's data about it.
type releaseJSON struct {
	Server json.RawMessage `json:"server"`
	Meta   map[string]any  `json:"_meta"`
}

type officialJSON struct {
	Status        string `json:"status"`
	StatusChanged string `json:"statusChangedAt"`
	Message       string `json:"statusMessage,omitempty"`
	Published     string `json:"publishedAt"`
	Updated       string `json:"updatedAt"`
	Latest        bool   `json:"isLatest"`
}

// agentJSON refers to the agent of this portal that calls the listed server.
type agentJSON struct {
	Page string   `json:"page"`
	Live hub.Live `json:"liveness"`
}

// listServers answers with a page of all versions of all servers. Order and cursor are by name and
// version, so that a version published meanwhile does not shift the pages.
func (d *Handler) listServers(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	f, err := d.decodeList(r)
	if err != nil {
		return err
	}
	found, more, err := d.Directory.Releases(r.Context(), actor, f)
	if err != nil {
		return err
	}
	out := listJSON{d.releasesJSON(found), metadataJSON{Count: len(found)}}
	if more {
		last := found[len(found)-1]
		out.Metadata.NextCursor = last.Name + ":" + last.Version
	}
	return respond.WriteJSON(w, http.StatusOK, out)
}

func (d *Handler) decodeList(r *http.Request) (registry.Filter, error) {
	f := registry.Filter{Limit: defaultPage}
	v := r.URL.Query()
	for name, values := range v {
		if len(values) > 1 {
			return f, errorAt(cutText(name, 80), "is given twice")
		}
		if strings.ContainsRune(values[0], 0) {
			return f, errorAt(cutText(name, 80), "must not hold a zero character")
		}
	}
	if s := v.Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 100 {
			return f, errorAt("limit", "expected a number from 1 to 100")
		}
		f.Limit = n
	}
	deleted, told, err := parseFlag(v.Get("include_deleted"))
	if err != nil {
		return f, err
	}
	f.Deleted = deleted
	if s := v.Get("updated_since"); s != "" {
		if f.UpdatedSince, err = time.Parse(time.RFC3339, s); err != nil {
			return f, fault.New(fault.Invalid,
				"Invalid updated_since format: expected RFC3339 timestamp (e.g., 2025-08-07T13:15:04.280Z)")
		}
		if told && !deleted {
			return f, fault.New(fault.Invalid,
				"Cannot set include_deleted=false when using updated_since (incremental sync requires deleted servers)")
		}
		f.Deleted = true
	}
	f.Search = v.Get("search")
	if f.Version = v.Get("version"); f.Version == "latest" {
		f.Version, f.Latest = "", true
	}
	if s := v.Get("cursor"); s != "" {
		// A cursor of an early client is a name without a version, which sorts before the name's
		// versions.
		f.AfterName, f.AfterVersion, _ = strings.Cut(s, ":")
	}
	return f, nil
}

// parseFlag parses a boolean of the query. told is false if s is empty.
func parseFlag(s string) (value, told bool, err error) {
	if s == "" {
		return false, false, nil
	}
	if value, err = strconv.ParseBool(s); err != nil {
		return false, true, errorAt("include_deleted", "use true or false")
	}
	return value, true, nil
}

// listVersions answers with all versions of one server, or with NotFound.
func (d *Handler) listVersions(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	deleted, _, err := parseFlag(r.URL.Query().Get("include_deleted"))
	if err != nil {
		return err
	}
	found, err := d.Directory.ReleasesOf(r.Context(), actor, request.PathParam(r, "name"), deleted)
	if err != nil {
		return err
	}
	return respond.WriteJSON(w, http.StatusOK, listJSON{d.releasesJSON(found), metadataJSON{Count: len(found)}})
}

// serveVersion answers with one version of a server, the latest for "latest".
func (d *Handler) serveVersion(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	deleted, _, err := parseFlag(r.URL.Query().Get("include_deleted"))
	if err != nil {
		return err
	}
	found, err := d.Directory.Release(r.Context(), actor, request.PathParam(r, "name"), request.PathParam(r, "version"),
		deleted)
	if err != nil {
		return err
	}
	return respond.WriteJSON(w, http.StatusOK, d.releaseJSON(found))
}

func (d *Handler) releasesJSON(list []registry.Release) []releaseJSON {
	out := make([]releaseJSON, len(list))
	for i, r := range list {
		out[i] = d.releaseJSON(r)
	}
	return out
}

// releaseJSON returns a version with the server.json that was published. For registered agents, and for
// removed versions, whose document is deleted, it generates one.
func (d *Handler) releaseJSON(r registry.Release) releaseJSON {
	meta := map[string]any{"io.modelcontextprotocol.registry/official": officialJSON{r.Status, formatTime(r.StatusAt),
		r.Message, formatTime(r.PublishedAt), formatTime(r.UpdatedAt), r.Latest}}
	doc := json.RawMessage(r.Document)
	if r.Removed {
		doc = makeDocument(registry.Release{Name: r.Name, Version: r.Version,
			Description: "Removed from this registry."}, "")
	} else if len(doc) == 0 {
		doc = makeDocument(r, d.URL+"/agents/"+r.Agent+"/mcp")
	}
	if r.Agent != "" && !r.Removed && r.Status != registry.ReleaseDeleted {
		meta[d.Directory.Namespace()+"/agent"] = agentJSON{d.URL + "/agents/" + r.Agent, r.Live}
	}
	return releaseJSON{doc, meta}
}

// makeDocument generates the server.json of a version without one. A registered agent is reached
// through the portal: only its owner may publish its own address.
func makeDocument(r registry.Release, remote string) json.RawMessage {
	type remoteJSON struct {
		Type string `json:"type"`
		URL  string `json:"url"`
	}
	s := struct {
		Schema      string       `json:"$schema"`
		Name        string       `json:"name"`
		Title       string       `json:"title,omitempty"`
		Description string       `json:"description"`
		Version     string       `json:"version"`
		Remotes     []remoteJSON `json:"remotes,omitempty"`
	}{"https://static.modelcontextprotocol.io/schemas/" + schemaVersions[0] + "/server.schema.json", r.Name, r.Title,
		shortText(r.Description), r.Version, nil}
	if remote != "" {
		s.Remotes = []remoteJSON{{streamable, remote}}
	}
	b, _ := json.Marshal(s) // encoding strings cannot fail
	return b
}

// shortText cuts a description to maxDescription runes on one line, the limit of server.json.
func shortText(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > maxDescription {
		return strings.TrimSpace(string(r[:maxDescription-1])) + "…"
	}
	return s
}

func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
