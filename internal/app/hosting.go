package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"agentsite/agentruntime/bundle"
	"agentsite/agentruntime/wasm"
	"agentsite/agentruntime/wasm/guest"
	"agentsite/agentruntime/wasm/sandbox"
	"agentsite/internal/egress"
	"agentsite/internal/fault"
	"agentsite/internal/hosting"
	"agentsite/internal/ident"
)

// The bounds of the processes of hosted programs.
const (
	programsFolder = "programs" // compiled programs, in the data folder
	programsBytes  = 1 << 30
	programs       = 24
)

// openHosting builds the services of hosted programs and of packages, and the sandbox, without any process.
func (p *Portal) openHosting(ctx context.Context, keys *ident.Keys) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program, which runs hosted programs: %w", err)
	}
	p.programs = sandbox.New(sandbox.Config{Command: []string{self, guest.Argument},
		Folder: filepath.Join(p.set.Data, programsFolder), CacheBytes: programsBytes, Children: programs,
		Limits: sandbox.DefaultLimits(), Modules: bundledModules{p.db.Modules}, Log: p.log})
	p.hosting = hosting.New(p.db.Modules, programCheck{p.programs}, hostingPeople{p})
	if err := p.hosting.Load(ctx); err != nil {
		return err
	}
	p.packages = newPackages(p, keys)
	return p.packages.Load(ctx)
}

// newHostedDriver returns the driver of hosted programs. Their requests are not signed: they go to hosts that the
// program's owner chose, which must not take them for requests of the portal.
func newHostedDriver(p *Portal, out egress.Config, models wasm.Models, tools wasm.Tools) *wasm.Driver {
	out.Signer = nil
	return wasm.New(wasm.Config{Programs: p.programs, Hosting: hostedModules{p}, Models: models, Tools: tools,
		RT: egress.New(out).RoundTripper(), Log: p.log})
}

// programCheck implements hosting.Sandbox.
type programCheck struct{ pool *sandbox.Pool }

func (c programCheck) CheckModule(ctx context.Context, hash string, data []byte) error {
	_, err := c.pool.Check(ctx, hash, data)
	if why, ok := sandbox.IsRefused(err); ok {
		return fault.Field("module", "the module "+why)
	}
	if errors.Is(err, sandbox.ErrBusy) {
		return fault.Wrap(fault.Unavailable, err, "The portal runs as many programs as it can. Try again later.")
	}
	return err
}

func (c programCheck) DropModule(hash string) error { return c.pool.Forget(hash) }
func (c programCheck) MaxModule() int               { return c.pool.Limits().Module }

// KeepModules implements hosting.Sandbox. The programs that come with the portal are in no list of an account.
func (c programCheck) KeepModules(hashes map[string]bool) error {
	hashes[bundle.Hash] = true
	return c.pool.Keep(hashes)
}

// bundledModules implements sandbox.Modules with the modules of accounts and that which comes with the portal.
type bundledModules struct{ next sandbox.Modules }

// ReadModule implements sandbox.Modules.
func (m bundledModules) ReadModule(ctx context.Context, hash string) ([]byte, error) {
	if hash == bundle.Hash {
		return bundle.Module()
	}
	return m.next.ReadModule(ctx, hash)
}

// hostingPeople implements hosting.People.
type hostingPeople struct{ portal *Portal }

func (h hostingPeople) Account(ctx context.Context, id string) (name string, operator bool, err error) {
	a, err := h.portal.db.Accounts.AccountByID(ctx, id)
	if err == nil && a.Disabled() {
		err = fault.New(fault.Forbidden, "This account is disabled.")
	}
	return a.Name, a.Operator, err
}

// hostedModules implements hub.Modules and wasm.Hosting.
type hostedModules struct{ portal *Portal }

// CheckHosted implements hub.Modules. It is called from checks that have no context.
func (h hostedModules) CheckHosted(ownerID, hash string) error {
	if ownerID == "" && hash == bundle.Hash { // a program of the portal itself, which only its operator stops
		if err := h.portal.packages.CheckRun(hash, ""); err != nil {
			return errors.New(fault.As(err).Safe)
		}
		return nil
	}
	m, ok := h.portal.hosting.Find(ownerID, hash)
	if !ok {
		return errors.New("names no program that you uploaded; upload it first and give its hash")
	}
	if err := h.portal.packages.CheckRun(hash, m.Source.Portal); err != nil {
		return errors.New(fault.As(err).Safe)
	}
	if err := h.portal.hosting.MayHost(context.Background(), ownerID); err != nil {
		return errors.New(fault.As(err).Safe)
	}
	return nil
}
