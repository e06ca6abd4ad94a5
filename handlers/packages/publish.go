package packages

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/packages"
	"agentsite/templates"
)

// maxText bounds the manifest and the readme that are sent as files, in bytes.
const maxText = 64 << 10

// maxTry bounds the answer and the log of a try that the form shows, in bytes.
const maxTry = 32 << 10

// newPackage shows the form that publishes a package.
func (d *Pages) newPackage(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Log in to publish a package.")
	}
	return d.renderPublish(w, r, actor, http.StatusOK, templates.PublishView{Version: "0.1.0"})
}

func (d *Pages) renderPublish(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int,
	v templates.PublishView) error {
	if err := d.cfg.Hosting.MayUpload(r.Context(), actor); err != nil {
		v.Refusal = fault.As(err).Safe
	}
	return d.cfg.Site.Render(w, r, code, templates.PublishPackage(d.cfg.Site.Frame(r, actor, "Publish a package"), v))
}

// publishPackage reads the form and acts by the pressed button: it tries the module, shows a preview, or
// publishes.
func (d *Pages) publishPackage(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Log in to publish a package.")
	}
	in, err := d.readForm(w, r, actor)
	if err != nil {
		return err
	}
	v := newPublish(in)
	err = d.readFiles(r, actor, &v)
	draft, derr := draftFrom(&v)
	if err = errors.Join(err, derr); err == nil {
		switch {
		case in.Has("try"):
			err = d.tryPackage(r, actor, &v, &draft)
		case in.Has("preview"):
			if err = d.cfg.Packages.CheckDraft(actor, &draft); err == nil {
				v.Preview = d.previewOf(&draft)
			}
		default:
			var p packages.Package
			if p, err = d.cfg.Packages.Publish(r.Context(), actor, draft); err == nil {
				return respond.SeeOther(w, r, packageHref(&p))
			}
		}
	}
	if err == nil {
		return d.renderPublish(w, r, actor, http.StatusOK, v)
	}
	messages, code, ok := pages.FieldErrors(w, err)
	if !ok {
		return err
	}
	v.Errors = messages
	return d.renderPublish(w, r, actor, code, v)
}

func packageHref(p *packages.Package) string {
	return "/packages/" + url.PathEscape(p.Handle()) + "?version=" + url.QueryEscape(p.Version)
}

// readForm parses the form with its files into memory.
func (d *Pages) readForm(w http.ResponseWriter, r *http.Request, actor ident.Actor) (url.Values, error) {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "multipart/form-data" {
		return request.Form(w, r)
	}
	room := int64(request.MaxForm + 2*maxText)
	if d.cfg.Hosting.MayUpload(r.Context(), actor) == nil {
		room += int64(d.cfg.Hosting.MaxModule())
	}
	r.Body = http.MaxBytesReader(w, r.Body, room)
	if err := r.ParseMultipartForm(room); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "The form could not be read. A module may have at most 16 MiB, a "+
			"manifest and a readme 64 KiB.")
	}
	return r.PostForm, nil
}

// newPublish returns the form as it was typed.
func newPublish(in url.Values) templates.PublishView {
	get := func(name string) string { return strings.TrimSpace(in.Get(name)) }
	return templates.PublishView{Name: get("name"), Version: get("version"), Summary: get("summary"),
		Licence: get("licence"), Grants: request.NormalizeLines(in.Get("grants")), Memory: get("memory_mib"),
		Seconds: get("seconds"), Languages: get("languages"), Readme: request.NormalizeLines(in.Get("readme")),
		Module: get("module"), Ask: request.NormalizeLines(in.Get("ask"))}
}

// readFile returns a file of the form, nil if none was sent.
func readFile(r *http.Request, name string, most int64) (data []byte, filename string, err error) {
	if r.MultipartForm == nil {
		return data, "", nil
	}
	list := r.MultipartForm.File[name]
	if len(list) == 0 || list[0].Size == 0 {
		return data, "", nil
	}
	if list[0].Size > most {
		return data, "", fault.Field(strings.TrimSuffix(name, "_file"), "is larger than "+pages.FormatBytes(most))
	}
	f, err := list[0].Open() // the file is in memory, so there is nothing to close
	if err != nil {
		return data, "", err
	}
	data, err = io.ReadAll(f)
	return data, list[0].Filename, err
}

// readFiles takes the manifest and the readme of files into the fields, and stores the module.
func (d *Pages) readFiles(r *http.Request, actor ident.Actor, v *templates.PublishView) error {
	b, _, err := readFile(r, "manifest_file", maxText)
	if err != nil {
		return err
	}
	if b != nil {
		var m struct {
			packages.Manifest
			Lang string `json:"lang"`
		}
		dec := json.NewDecoder(strings.NewReader(string(b)))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&m); err != nil {
			return fault.Field("manifest",
				"cannot be read: use the file agentsite.json that `agentsite package init` makes")
		}
		takeManifest(v, &m.Manifest)
	}
	if b, _, err = readFile(r, "readme_file", maxText); err != nil {
		return err
	} else if b != nil {
		v.Readme = request.NormalizeLines(strings.ToValidUTF8(string(b), "\uFFFD"))
	}
	b, name, err := readFile(r, "module_file", int64(d.cfg.Hosting.MaxModule()))
	if err != nil || b == nil {
		return err
	}
	m, err := d.cfg.Hosting.Upload(r.Context(), actor, name, b)
	if err == nil {
		v.Module = m.Hash
	}
	return err
}

// takeManifest replaces the fields of the form by those of a manifest.
func takeManifest(v *templates.PublishView, m *packages.Manifest) {
	v.Name, v.Version, v.Summary, v.Licence = m.Name, m.Version, m.Summary, m.Licence
	v.Languages, v.Memory, v.Seconds = strings.Join(m.Languages, ", "), "", ""
	if m.Limits.MemoryMiB > 0 {
		v.Memory = strconv.FormatInt(m.Limits.MemoryMiB, 10)
	}
	if m.Limits.Seconds > 0 {
		v.Seconds = strconv.FormatInt(m.Limits.Seconds, 10)
	}
	var lines []string
	for _, g := range m.Grants {
		lines = append(lines, g.Name+" "+g.Why)
	}
	v.Grants = strings.Join(lines, "\n")
}

// draftFrom returns the version that the form describes. Each line of the grants has a name and the reason.
func draftFrom(v *templates.PublishView) (packages.Draft, error) {
	out := packages.Draft{Module: v.Module, Readme: v.Readme, Manifest: packages.Manifest{Name: v.Name,
		Version: v.Version, Summary: v.Summary, Licence: v.Licence, Grants: []packages.Grant{},
		Languages: request.SplitValues([]string{v.Languages})}}
	for line := range strings.Lines(v.Grants) {
		if name, why, _ := strings.Cut(strings.TrimSpace(line), " "); name != "" {
			out.Grants = append(out.Grants, packages.Grant{Name: name, Why: strings.TrimSpace(why)})
		}
	}
	var c fault.Check
	number := func(text, what string) int64 {
		n, err := strconv.ParseInt(cmp.Or(text, "0"), 10, 32)
		c.Field(err == nil, "limits", "%s is a number, or empty", what)
		return n
	}
	out.Limits = packages.Limits{MemoryMiB: number(v.Memory, "memory"), Seconds: number(v.Seconds, "time")}
	return out, c.Err()
}

// previewOf returns the version as operators will read it before they host it.
func (d *Pages) previewOf(draft *packages.Draft) *templates.PackageView {
	p := packages.Package{Manifest: draft.Manifest, Verified: true, State: packages.Published}
	out := &templates.PackageView{PackageRow: newRow(&p), Languages: strings.Join(p.Languages, ", "),
		Limits: limitsText(p.Limits), Module: draft.Module}
	if draft.Readme != "" {
		out.Readme = d.cfg.Markup.Message(draft.Readme)
	}
	for _, g := range p.Grants {
		out.Grants = append(out.Grants, templates.PackageGrant{Name: g.Name, Label: grantLabel(g.Name), Why: g.Why})
	}
	return out
}

// tryPackage runs the module with all grants of its manifest, and puts the answer and the log into the form.
func (d *Pages) tryPackage(r *http.Request, actor ident.Actor, v *templates.PublishView,
	draft *packages.Draft) error {
	config, err := packages.ConfigOf(&draft.Manifest, strings.TrimPrefix(v.Module, "sha256:"))
	if err != nil {
		return err
	}
	name, about, kind, visibility := "a-draft", "A draft.", hub.Wasm, hub.Private
	got, err := d.cfg.Hub.Try(r.Context(), actor, "", hub.Draft{Name: &name, Description: &about, Kind: &kind,
		Visibility: &visibility, Config: config}, v.Ask)
	if err != nil {
		f := fault.As(err)
		if text, ok := f.Fields["config.module"]; ok {
			return fault.Field("module", text)
		}
		if text, ok := f.Fields["try"]; ok {
			return fault.Field("ask", text)
		}
		return err
	}
	v.Tried = &templates.TryRow{Asked: v.Ask, HTML: d.cfg.Markup.Message(got.Text[:min(len(got.Text), maxTry)]),
		Reason: got.Reason, Took: pages.FormatLatency(got.Took)}
	v.Tried.Log = strings.Join(got.Log, "\n")
	v.Tried.Log = v.Tried.Log[:min(len(v.Tried.Log), maxTry)]
	return nil
}
