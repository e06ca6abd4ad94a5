// Package hosting has the API routes of hosted programs: modules of accounts, and the operator's rules.
package hosting

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/hosting"
	"agentsite/internal/ident"
)

// API answers the routes. Create it with New.
type API struct {
	service  *hosting.Service
	sessions *request.Sessions
}

// New returns the routes over the service.
func New(service *hosting.Service, sessions *request.Sessions) *API { return &API{service, sessions} }

// Routes declares the routes below /api/v1.
func (a *API) Routes(r chi.Router) {
	r.Get("/hosting", a.sessions.API(a.getRules))
	r.Put("/hosting", a.sessions.API(a.putRules))
	r.Get("/hosting/policy", a.sessions.Listing(a.showPolicy))
	r.Get("/hosting/modules", a.sessions.API(a.listModules))
	r.Post("/hosting/modules", a.sessions.API(a.uploadModule))
	r.Delete("/hosting/modules/{hash}", a.sessions.API(a.deleteModule))
}

// ModuleJSON is an uploaded module.
type ModuleJSON struct {
	Hash      string `json:"hash"`
	Name      string `json:"name"`
	Size      int64  `json:"size"`
	CreatedAt string `json:"created_at"`
}

func toJSON(m hosting.Module) ModuleJSON {
	return ModuleJSON{m.Hash, m.Name, m.Size, respond.FormatTime(m.CreatedAt)}
}

// RulesBody changes the rules: fields that are left out stay as they are.
type RulesBody struct {
	Policy     *hosting.Policy `json:"policy"`
	List       *[]string       `json:"list"`
	MaxModules *int            `json:"max_modules"`
	MaxBytes   *int64          `json:"max_bytes"`
}

// PolicyJSON is the hosting policy of a portal.
type PolicyJSON struct {
	Policy hosting.Policy `json:"policy"`
}

func (a *API) showPolicy(w http.ResponseWriter, _ *http.Request, actor ident.Actor) error {
	policy, err := a.service.PublicPolicy(actor)
	if err == nil {
		respond.JSON(w, http.StatusOK, PolicyJSON{policy})
	}
	return err
}

func (a *API) getRules(w http.ResponseWriter, _ *http.Request, actor ident.Actor) error {
	rules, err := a.service.Rules(actor)
	if err == nil {
		respond.JSON(w, http.StatusOK, rules)
	}
	return err
}

func (a *API) putRules(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	rules, err := a.service.Rules(actor)
	if err != nil {
		return err
	}
	var in RulesBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	if in.Policy != nil {
		rules.Policy = *in.Policy
	}
	if in.List != nil {
		rules.Accounts = *in.List
	}
	if in.MaxModules != nil {
		rules.MaxModules = *in.MaxModules
	}
	if in.MaxBytes != nil {
		rules.MaxBytes = *in.MaxBytes
	}
	if rules, err = a.service.PutRules(r.Context(), actor, rules); err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, rules)
	return nil
}

func (a *API) listModules(w http.ResponseWriter, _ *http.Request, actor ident.Actor) error {
	list, err := a.service.ListModules(actor)
	if err != nil {
		return err
	}
	out := make([]ModuleJSON, len(list))
	for i, m := range list {
		out[i] = toJSON(m)
	}
	respond.JSON(w, http.StatusOK, map[string]any{"modules": out, "next_cursor": ""})
	return nil
}

// uploadTime bounds an upload, with the compiling of the module.
const uploadTime = 3 * time.Minute

// uploadModule stores a module: the body under the name in ?name=, or the first file of a multipart form.
func (a *API) uploadModule(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if err := a.service.MayUpload(r.Context(), actor); err != nil {
		return err
	}
	most := int64(a.service.MaxModule())
	room := most
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	form := err == nil && kind == "multipart/form-data"
	if form {
		room += request.MaxForm
	}
	if r.ContentLength > room {
		return &http.MaxBytesError{Limit: most}
	}
	rc := http.NewResponseController(w)
	until := time.Now().Add(uploadTime)
	if err := errors.Join(rc.SetReadDeadline(until), rc.SetWriteDeadline(until.Add(time.Minute))); err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, room)
	name, content := r.URL.Query().Get("name"), io.Reader(r.Body)
	if form {
		if name, content, err = formFile(r); err != nil {
			return err
		}
	}
	data, err := io.ReadAll(content)
	if _, over := errors.AsType[*http.MaxBytesError](err); err != nil && !over {
		return fault.Wrap(fault.Invalid, err, "The file ended early. Send it again.")
	}
	if err != nil {
		return err
	}
	m, err := a.service.Upload(r.Context(), actor, name, data)
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusCreated, toJSON(m))
	return nil
}

// maxParts bounds the parts of a form that are searched for the file.
const maxParts = 20

// formFile returns the name and the content of the first file of a form.
func formFile(r *http.Request) (string, io.Reader, error) {
	reader, err := r.MultipartReader()
	if err != nil {
		return "", nil, fault.Wrap(fault.Invalid, err, "The form could not be read.")
	}
	for range maxParts {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", nil, fault.Wrap(fault.Invalid, err, "The form could not be read.")
		}
		if part.FileName() != "" {
			return part.FileName(), part, nil
		}
	}
	return "", nil, fault.Field("module", "choose a file")
}

func (a *API) deleteModule(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	err := a.service.DeleteModule(r.Context(), actor, request.PathParam(r, "hash"))
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}
