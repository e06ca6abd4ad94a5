// Package program has the short page that registers a program on a person's computer as an agent, the page of the
// command that connects it, and the portal's own executable, with which such a program connects.
package program

import (
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/address"
	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/internal/account"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
	"agentsite/templates"
)

const (
	downloadEvery = time.Minute // of one address, because the file has tens of megabytes
	downloadBurst = 20
	maxDownloads  = 32 // at once, of all addresses together
	maxOwn        = 2  // at once, of one address
	maxAddresses  = 10_000
)

// Pages has the page and the file. Create it with New.
type Pages struct {
	portal    address.Portal
	accounts  *account.Service
	hub       *hub.Service
	site      *pages.Site
	tokens    shownTokens
	addresses *limit.Keyed
	running   *limit.Concurrent
	own       *limit.Concurrent // by address
	path      string            // of the executable, "" if the system does not name it
	log       *slog.Logger
}

// New returns Pages that serve the executable of this process.
func New(portal address.Portal, accounts *account.Service, agents *hub.Service, site *pages.Site,
	log *slog.Logger) *Pages {
	path, err := os.Executable()
	if err != nil {
		log.Warn("the portal cannot offer its executable for download", "error", err)
	}
	return &Pages{portal: portal, accounts: accounts, hub: agents, site: site, path: path, log: log,
		addresses: limit.New(downloadEvery, downloadBurst, maxAddresses), running: limit.NewConcurrent(maxDownloads),
		own: limit.NewConcurrent(maxOwn)}
}

// Routes declares the routes.
func (p *Pages) Routes(r chi.Router) {
	r.Get("/agents/new/program", p.site.Page(p.showForm))
	r.Get("/agents/{name}/connect", p.site.Page(p.showCommand))
	r.Post("/agents/{name}/connect", p.site.Page(p.connectAgent))
	r.Get("/program", p.site.Page(p.sendProgram))
}

// showForm asks for the name and the description of the agent. The form goes to the route that registers all agents,
// which leads to the command that connects the program.
func (p *Pages) showForm(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Log in to register an agent.")
	}
	return p.site.Render(w, r, http.StatusOK, templates.ProgramForm(p.site.Frame(r, actor, "Connect a program")))
}

// sendProgram answers with the executable. It needs no account, because the command that connects a program fetches it
// and the program is no secret.
func (p *Pages) sendProgram(w http.ResponseWriter, r *http.Request, _ ident.Actor) error {
	done, err := p.beginDownload(request.ClientAddr(r))
	if err != nil {
		return err
	}
	defer done()
	f, err := os.Open(p.path)
	if err != nil { // deleted since the start, as by an upgrade
		p.log.Warn("open the executable", "error", err)
		return fault.New(fault.NotFound, "The portal cannot read its program. Build it from its source by go build.")
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", `attachment; filename="`+fileName(runtime.GOOS)+`"`)
	http.ServeContent(w, r, "", info.ModTime(), f)
	return nil
}

// beginDownload counts a download for an address. The caller calls done after it.
func (p *Pages) beginDownload(address string) (done func(), err error) {
	if wait, ok := p.addresses.Allow(address); !ok {
		return nil, fault.Limited(wait, "The program was downloaded many times from your address. Wait a minute.")
	}
	if !p.own.Begin(address) {
		return nil, fault.Limited(time.Minute, "The program is being downloaded from your address. Wait for the end.")
	}
	if !p.running.Begin("") {
		p.own.End(address)
		return nil, fault.Limited(time.Minute, "The program is downloaded by many at this moment. Wait a minute.")
	}
	return func() { p.running.End(""); p.own.End(address) }, nil
}

// fileName returns the name that the executable has on a system.
func fileName(system string) string {
	if system == "windows" {
		return "agentsite.exe"
	}
	return "agentsite"
}
