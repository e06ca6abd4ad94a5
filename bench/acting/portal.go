package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strconv"

	"agentsite/bench/corpus"
	"agentsite/bench/proc"
	"agentsite/internal/ident"
	"agentsite/store"
)

// portal is a portal with the tokens of accounts.
type portal struct {
	*proc.Process
	b      *bench
	dir    string
	flags  []string
	tokens []string
	client *http.Client
}

// startModel starts the model that all portals use. The caller must end it.
func (b *bench) startModel() (*proc.Process, error) { return startChild("model", strconv.Itoa(b.rate)) }

// startPortal starts a portal on a new folder with accounts. The caller must end it.
func (b *bench) startPortal(model *proc.Process, people int, flags ...string) (*portal, error) {
	dir, err := os.MkdirTemp(b.Dir, "portal-")
	if err != nil {
		return nil, err
	}
	// One provider and one agent do all the work, so that their usual bounds would be measured.
	p := &portal{b: b, dir: dir, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000, DisableCompression: true}},
		flags: append([]string{"--llm-url", "http://" + model.Addr + "/v1", "--llm-model", "m", "--model-budget", "1000G", "--limits",
			"running=4000,running-per-account=2000,running-per-agent=2000,running-per-owner=4000,running-per-provider=4000"}, flags...)}
	if p.tokens, err = seedPortal(dir, people); err != nil {
		return nil, fmt.Errorf("fill a portal: %w", err)
	}
	return p, p.serveAt("127.0.0.1:0")
}

// serveAt starts the process of the portal at an address.
func (p *portal) serveAt(addr string) (err error) {
	p.Process, err = proc.Start("portal", p.b.Portal, append([]string{"serve", "--listen", addr, "--data", p.dir, "--log-level", "warn"},
		p.flags...)...)
	return err
}

// seedPortal creates a data folder with that number of accounts and returns an API token of each.
func seedPortal(dir string, people int) (tokens []string, err error) {
	if _, err := ident.CreateKeys(dir); err != nil {
		return nil, err
	}
	db, err := store.Open(context.Background(), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for i := range people {
		_, secret, err := corpus.AddPerson(db, fmt.Sprintf("person-%d", i), false)
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, secret)
	}
	return tokens, nil
}

// registerAgent registers a prompt agent of the first account.
func (p *portal) registerAgent(name, instructions string, tools ...string) error {
	return p.callAPI(p.tokens[0], http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "description": "Part of a measurement.",
		"kind": "prompt", "visibility": "public", "config": map[string]any{"instructions": instructions, "tools": tools}})
}

// allowAsking lets an agent ask every public one for the account of a token.
func (p *portal) allowAsking(token, agent string) error {
	return p.callAPI(token, http.MethodPut, "/api/v1/grants/"+ident.NewID(), map[string]any{"agent": agent, "tool": "ask", "scope": "public",
		"decision": "allow"})
}

func (p *portal) callAPI(token, method, path string, body any) error {
	res, err := sendJSON(p.client, method, "http://"+p.Addr+path, token, body)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// sendJSON sends JSON and returns the answer, whose body the caller must close. A status other than 2xx is an error.
func sendJSON(c *http.Client, method, address, token string, body any) (*http.Response, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(method, address, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode/100 != 2 {
		defer res.Body.Close()
		says, _ := io.ReadAll(io.LimitReader(res.Body, 500))
		return nil, fmt.Errorf("%s %s: %s: %s", method, req.URL.Path, res.Status, says)
	}
	return res, nil
}
