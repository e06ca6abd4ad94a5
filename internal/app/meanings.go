package app

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"

	"agentsite/handlers/address"
	"agentsite/internal/embedding"
	"agentsite/internal/hub"
	"agentsite/internal/index"
	"agentsite/internal/meaning"
	"agentsite/internal/weborigin"
)

// openIndex makes the empty index of agents, which finds them by words and by meaning.
func (p *Portal) openIndex() (err error) {
	if p.senses, err = meaning.Open(); err != nil {
		return fmt.Errorf("open the model of meanings: %w", err)
	}
	p.index = index.NewWithMeaning(p.senses, meaning.Dims)
	return nil
}

// searchIndex returns the index with the operator's server of embeddings, if there is one. It needs the drivers.
func (p *Portal) searchIndex() hub.Index {
	e := p.set.Embedder
	if e.URL == "" {
		return p.index
	}
	p.meanings = embedding.New(embedding.Config{
		Server:    embedding.Server{URL: e.URL, Key: e.Key, Model: e.Model},
		Transport: p.model.RoundTripper(), Index: p.index, Builtin: p.senses,
		Path: filepath.Join(p.set.Data, embedding.CacheFile), Private: e.Private, Log: p.log,
		Secret: []byte(p.keys.Mark("agentsite/embeddings/1", "texts"))})
	return p.meanings
}

// encodeAgents adds the meanings of the agents that are loaded, at the start and later from other portals. It begins
// after the start, because words are enough to find an agent at first.
func (p *Portal) encodeAgents(ctx context.Context) error {
	select {
	case <-p.loaded:
		return p.index.Run(ctx)
	case <-ctx.Done():
		return nil
	}
}

// embedAgents is encodeAgents for the operator's server of embeddings, if there is one.
func (p *Portal) embedAgents(ctx context.Context) error {
	select {
	case <-p.loaded:
	case <-ctx.Done():
		return nil
	}
	if p.meanings == nil {
		return nil
	}
	return p.meanings.Run(ctx)
}

// shownMeanings returns the parts of the server of embeddings that pages show.
func (p *Portal) shownMeanings() address.Meanings {
	if p.meanings == nil {
		return address.Meanings{}
	}
	return address.Meanings{Host: hostOf(p.set.Embedder.URL), Private: p.set.Embedder.Private, State: p.meanings}
}

// hostOf returns the host of a server that gets the texts of searches; "" if they stay on this machine.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || weborigin.IsLoopback(u.Hostname()) {
		return ""
	}
	return u.Host
}
