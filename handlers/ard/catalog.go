package ard

import (
	"context"
	"net/http"
	"sync"

	"agentsite/internal/hub"
)

// catalogAgents bounds the agents in a catalog. The catalog of a larger portal holds the newest live
// agents; its first entry refers to the registry, which lists all.
const catalogAgents = 100

// catalog caches the two catalog documents until the state number of the directory changes. The zero
// value is empty.
type catalog struct {
	mu      sync.Mutex // guards the fields below
	state   uint64     // state number of the directory when the documents were made
	ard, ai []byte
}

// catalogJSON is an AI Catalog. ARD reads entries only and ignores the rest, §5.1.
type catalogJSON struct {
	SpecVersion string    `json:"specVersion"`
	Host        *hostJSON `json:"host"`
	Entries     []entry   `json:"entries"`
	// Signature covers the other fields, in the same way as a trustManifest's; only an AI Catalog
	// has it.
	Signature string `json:"signature,omitempty"`
}

type hostJSON struct {
	DisplayName      string `json:"displayName"`
	Identifier       string `json:"identifier"`
	DocumentationURL string `json:"documentationUrl"`
	LogoURL          string `json:"logoUrl"`
}

func (d *Handler) ardCatalog(w http.ResponseWriter, r *http.Request) error {
	ard, _, err := d.catalogs(r.Context())
	if err != nil {
		return err
	}
	sendCached(w, r, jsonType, catalogSeconds, ard)
	return nil
}

func (d *Handler) aiCatalog(w http.ResponseWriter, r *http.Request) error {
	_, ai, err := d.catalogs(r.Context())
	if err != nil {
		return err
	}
	sendCached(w, r, catalogType, catalogSeconds, ai)
	return nil
}

// catalogs returns both documents. They differ in two fields: drafts of the AI Catalog call an
// entry's type mediaType, so there it has both names, and an AI Catalog is signed.
func (d *Handler) catalogs(ctx context.Context) (ard, ai []byte, err error) {
	c := &d.catalog
	// read before the search: if agents change meanwhile, the documents are made again at the next
	// request
	state := d.cfg.Directory.State()
	c.mu.Lock()
	ard, ai = c.ard, c.ai
	fresh := ard != nil && c.state == state
	c.mu.Unlock()
	if fresh {
		return ard, ai, nil
	}
	agents, err := d.catalogAgentsNow(ctx)
	if err != nil {
		return nil, nil, err
	}
	doc := catalogJSON{SpecVersion: "1.0", Entries: []entry{d.registryEntry()}, Host: &hostJSON{
		DisplayName: d.cfg.Live.NameOr(d.cfg.Name), Identifier: d.cfg.Publisher, DocumentationURL: d.cfg.URL + "/docs",
		LogoURL: d.cfg.URL + "/favicon.svg"}}
	for i := range agents {
		doc.Entries = append(doc.Entries, d.entryOf(&agents[i].Agent, cardType),
			d.entryOf(&agents[i].Agent, serverType))
	}
	if ard, err = encodeJSON(doc); err != nil {
		return nil, nil, err
	}
	for i := range doc.Entries {
		doc.Entries[i].MediaType = doc.Entries[i].Type
	}
	if d.cfg.Signer != nil {
		if doc.Signature, err = d.signValue(doc); err != nil {
			return nil, nil, err
		}
	}
	if ai, err = encodeJSON(doc); err != nil {
		return nil, nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ard == nil || c.state < state {
		c.state, c.ard, c.ai = state, ard, ai
	}
	return ard, ai, nil
}

// catalogAgentsNow returns the agents that a new catalog contains: live and newest first if there are
// more than catalogAgents.
func (d *Handler) catalogAgentsNow(ctx context.Context) ([]hub.Result, error) {
	page, err := d.cfg.Directory.Search(ctx, publicActor,
		hub.Query{Scope: hub.ScopePortal, Sort: hub.SortNewest, Limit: catalogAgents})
	if err != nil || page.Total <= catalogAgents {
		return page.Results, err
	}
	page, err = d.cfg.Directory.Search(ctx, publicActor,
		hub.Query{Scope: hub.ScopePortal, Sort: hub.SortNewest, Limit: catalogAgents,
			Live: []string{string(hub.Alive)}})
	return page.Results, err
}
