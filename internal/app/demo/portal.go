package demo

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/internal/app"
	"agentsite/internal/control"
)

// networkName keeps demos apart from real networks: nothing that is signed in
// one counts in the other.
const networkName = "agentsite-demo"

// tokenLife is how long the people of a demo may act.
const tokenLife = 30 * 24 * time.Hour

// portal is one that runs, with its agents.
type portal struct {
	role
	app     *app.Portal
	shop    *workshop
	log     *os.File
	clients []client           // of people
	link    string             // signs the operator in
	cancel  context.CancelFunc // nil until it runs
	done    chan struct{}
	err     error // of Run; read it when done is closed
	killed  atomic.Bool
	once    sync.Once
	stopErr error
}

func (p *portal) url() string { return p.app.URL() }

// handle is how the whole network calls an agent of the portal.
func (p *portal) handle(name string) string {
	u, err := url.Parse(p.url())
	if err != nil { // it was parsed before
		return name
	}
	return name + "@" + u.Host
}

func (p *portal) countAgents() int { return len(p.agents) + len(p.benches) }

// startPortal starts a portal below dir and registers its agents; it keeps idle idle connections to
// others, 0 for the default number. It knows no other portal yet. If it fails, the parts it started
// are stopped.
func startPortal(ctx context.Context, r role, dir string, idle int, hc *http.Client) (p *portal, err error) {
	p = &portal{role: r, done: make(chan struct{})}
	defer func() {
		if err != nil {
			_ = p.stopPortal()
			p = nil
		}
	}()
	if p.shop, err = openWorkshop(ctx, r.agents, r.benches); err != nil {
		return p, err
	}
	data := filepath.Join(dir, r.folder)
	if err := os.Mkdir(data, 0o700); err != nil {
		return p, err
	}
	if p.log, err = os.OpenFile(filepath.Join(dir, r.folder+".log"), os.O_CREATE|os.O_EXCL|os.O_WRONLY,
		0o600); err != nil {
		return p, err
	}
	cfg := app.Defaults()
	cfg.Listen, cfg.Data, cfg.Name, cfg.Network, cfg.LogLevel = "127.0.0.1:0", data, r.name, networkName, "warn"
	cfg.CheapHashes, cfg.PeerIdle = true, idle
	if p.app, err = app.Open(ctx, cfg, p.log); err != nil {
		return p, err
	}
	if err := p.runPortal(ctx); err != nil {
		return p, err
	}
	if err := p.fillPortal(ctx, cfg, hc); err != nil {
		return p, err
	}
	return p, nil
}

// runPortal runs the portal, and returns when it serves.
func (p *portal) runPortal(ctx context.Context) error {
	// It outlives its start, and ends by stop.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.cancel = cancel
	ready := &said{what: []byte("ready "), heard: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.err = p.app.Run(running, ready, io.Discard)
	}()
	select {
	case <-ready.heard:
		return nil
	case <-p.done:
		return errors.Join(p.err, errors.New("it ended at its start"))
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fillPortal makes accounts and registers the agents.
func (p *portal) fillPortal(ctx context.Context, cfg app.Config, hc *http.Client) (err error) {
	c, err := control.Open(ctx, cfg, false, p.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for i, name := range p.people {
		if err := c.AddUser(ctx, name, rand.Text(), i == 0); err != nil {
			return fmt.Errorf("add %s: %w", name, err)
		}
		token, err := c.AddToken(ctx, name, "demo", nil, tokenLife)
		if err != nil {
			return fmt.Errorf("let %s act: %w", name, err)
		}
		p.clients = append(p.clients, client{p.url(), token, hc})
	}
	if p.link, err = c.ResetLink(ctx, p.people[0]); err != nil {
		return err
	}
	owner := 0
	register := func(draft object) error {
		draft["visibility"], draft["languages"] = "public", []string{"en"}
		owner++
		return p.clients[owner%len(p.clients)].callAPI(ctx, http.MethodPost, "/agents", draft, nil)
	}
	for _, a := range p.agents {
		err := register(object{"name": a.Name, "title": a.Title, "description": a.About, "kind": "a2a",
			"endpoint": p.shop.url + "/" + a.Name, "skills": listSkills(a),
			"config": object{"binding": "JSONRPC", "version": "1.0", "streaming": true}})
		if err != nil {
			return fmt.Errorf("register %s: %w", a.Name, err)
		}
	}
	for _, s := range p.benches {
		err := register(object{"name": s.Name, "title": s.Title, "description": s.About, "kind": "mcp",
			"endpoint": p.shop.url + "/" + s.Name})
		if err != nil {
			return fmt.Errorf("register %s: %w", s.Name, err)
		}
	}
	return nil
}

// listSkills returns the skills for an agent's card and page.
func listSkills(a agent) []any {
	return []any{object{"id": a.Name, "name": a.Title, "description": a.About, "tags": a.Tags,
		"examples": a.Asks[:min(2, len(a.Asks))]}}
}

// stopPortal stops the portal, then its agents. It may be called twice.
func (p *portal) stopPortal() error {
	p.once.Do(func() {
		switch {
		case p.cancel != nil:
			p.cancel()
			<-p.done
		case p.app != nil: // it never ran
			p.app.Close()
		}
		if p.shop != nil {
			p.shop.close()
		}
		if p.log != nil {
			p.stopErr = p.log.Close()
		}
	})
	return p.stopErr
}

// said is a writer that signals when a text was written to it.
type said struct {
	what  []byte
	heard chan struct{}
	once  sync.Once
}

// Write implements io.Writer. The portal writes the expected text in one call.
func (s *said) Write(b []byte) (int, error) {
	if bytes.Contains(b, s.what) {
		s.once.Do(func() { close(s.heard) })
	}
	return len(b), nil
}
