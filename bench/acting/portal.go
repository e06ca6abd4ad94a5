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

// portal is a portal with its model and the tokens of accounts.
type portal struct {
	*proc.Process
	model  *proc.Process
	tokens []string
	client *http.Client
}

// startPortal starts a model and a portal on a new folder with accounts. The caller must call stopAll.
func (b *bench) startPortal(people int) (*portal, error) {
	dir, err := os.MkdirTemp(b.Dir, "portal-")
	if err != nil {
		return nil, err
	}
	p := &portal{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000, DisableCompression: true}}}
	if p.tokens, err = seedPortal(dir, people); err != nil {
		return nil, fmt.Errorf("fill a portal: %w", err)
	}
	if p.model, err = startChild("model", strconv.Itoa(b.rate)); err != nil {
		return nil, err
	}
	// One provider and one agent do all the work, so that their usual bounds would be measured.
	p.Process, err = proc.Start("portal", b.Portal, "serve", "--listen", "127.0.0.1:0", "--data", dir, "--log-level", "warn",
		"--network", "off", "--llm-url", "http://"+p.model.Addr+"/v1", "--llm-model", "m",
		"--limits", "running=4000,running-per-account=2000,running-per-agent=2000,running-per-owner=4000,running-per-provider=4000")
	if err != nil {
		p.model.Kill()
		return nil, err
	}
	return p, nil
}

func (p *portal) stopAll() {
	p.Process.Stop()
	p.model.Stop()
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
	return p.callAPI(http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "description": "Part of a measurement.",
		"kind": "prompt", "visibility": "public", "config": map[string]any{"instructions": instructions, "tools": tools}})
}

// allowAsking lets an agent of the first account ask every public one for that account.
func (p *portal) allowAsking(agent string) error {
	return p.callAPI(http.MethodPut, "/api/v1/grants/"+ident.NewID(), map[string]any{"agent": agent, "tool": "ask", "scope": "public",
		"decision": "allow"})
}

func (p *portal) callAPI(method, path string, body any) error {
	res, err := sendJSON(p.client, method, "http://"+p.Addr+path, p.tokens[0], body)
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
