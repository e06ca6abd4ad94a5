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

// networkName keeps demos apart from real networks: a record that is signed for one network is
// invalid in another.
const networkName = "agentsite-demo"

// tokenLife is the lifetime of the tokens of the simulated people, longer than a demo runs.
const tokenLife = 30 * 24 * time.Hour

// portal is a running portal of the demo, with its agents and the clients of its people.
type portal struct {
	role
	app     *app.Portal
	shop    *workshop
	log     *os.File
	clients []client           // one per person, the operator first
	link    string             // address that signs the operator in
	cancel  context.CancelFunc // stops the portal; nil before it runs
	done    chan struct{}
	err     error // result of app.Run; read it only after done is closed
	killed  atomic.Bool
	once    sync.Once
	stopErr error
}

func (p *portal) url() string { return p.app.URL() }

// handle returns the handle of an agent of the portal, which is valid in the whole network.
func (p *portal) handle(name string) string {
	u, err := url.Parse(p.url())
	if err != nil { // cannot happen: the portal parsed the address before
		return name
	}
	return name + "@" + u.Host
}

func (p *portal) countAgents() int { return len(p.agents) + len(p.benches) }

// startPortal starts a portal with its data below dir and registers its agents. idle bounds its
// idle connections to other portals, 0 for the default. The portal knows no other portal yet. After
// an error everything that was started is stopped.
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
	cfg.CheapHashes, cfg.PeerIdle, cfg.Goals = true, idle, goals
	cfg.Limits = "disk-reserve=0" // the data is thrown away
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

// runPortal runs the portal in a goroutine and returns once it answers requests. The goroutine ends
// by stopPortal.
func (p *portal) runPortal(ctx context.Context) error {
	// The portal must run longer than ctx, which ends with its start.
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

// fillPortal creates accounts and tokens for the people of the role and registers its agents.
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

// listSkills returns the skills of an agent in the JSON of the A2A card, which the registration API
// takes too.
func listSkills(a agent) []any {
	return []any{object{"id": a.Name, "name": a.Title, "description": a.About, "tags": a.Tags,
		"examples": a.Asks[:min(2, len(a.Asks))]}}
}

// stopPortal stops the portal, then the server of its agents. Further calls return the result of
// the first.
func (p *portal) stopPortal() error {
	p.once.Do(func() {
		switch {
		case p.cancel != nil:
			p.cancel()
			<-p.done
		case p.app != nil: // the portal was opened but never ran
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

// said is a writer that closes heard once the text what was written to it, and discards everything.
type said struct {
	what  []byte
	heard chan struct{}
	once  sync.Once
}

// Write implements io.Writer. It finds the text only within one call, which suffices because the
// portal writes it in one call.
func (s *said) Write(b []byte) (int, error) {
	if bytes.Contains(b, s.what) {
		s.once.Do(func() { close(s.heard) })
	}
	return len(b), nil
}
