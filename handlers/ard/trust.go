package ard

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sync"
	"time"

	"agentsite/internal/hub"
)

// trustManifest holds the verifiable facts of an entry: the portal whose domain is in the
// identifier lists a card with that content under it (AI Catalog 1.0, Trust Manifest). It has no
// attestations, because there are none for agents.
type trustManifest struct {
	// Identity is the entry's identifier, as the AI Catalog requires; its domain is the
	// publisher's, as ARD requires.
	Identity string        `json:"identity"`
	Subject  *trustSubject `json:"subject,omitempty"`
	IssuedAt string        `json:"issuedAt,omitempty"`
	// Signature is a detached JWS over the canonical form (RFC 8785) of the manifest without it.
	// Its header names the key and the address of the key.
	Signature string `json:"signature,omitempty"`
}

// trustSubject is the document that an entry points at.
type trustSubject struct {
	Identifier string `json:"identifier"`
	Type       string `json:"type"`
	Digest     string `json:"digest"`
	Version    string `json:"version,omitempty"`
	URL        string `json:"url"`
}

// keptManifests bounds the cached manifests. Each costs three signatures: the card's two and its
// own.
const keptManifests = 10_000

// manifests caches manifests until their agent changes. The zero value is empty.
type manifests struct {
	mu   sync.Mutex // guards kept
	kept map[string]keptManifest
}

type keptManifest struct {
	version  int
	updated  time.Time
	manifest *trustManifest
}

// addTrust adds its manifest to the entry of an agent, if the portal has the document that the
// entry points at.
func (d *Handler) addTrust(e *entry, a *hub.Agent) {
	if d.cfg.Documents == nil || d.cfg.Signer == nil || a.Elsewhere() { // the agent's own portal vouches for it
		return
	}
	d.manifests.mu.Lock()
	k, ok := d.manifests.kept[e.Identifier]
	d.manifests.mu.Unlock()
	if !ok || k.version != a.Version || !k.updated.Equal(a.UpdatedAt) {
		m, err := d.makeManifest(e, a)
		if err != nil { // the entry is valid without it
			d.cfg.Log.Error("sign an entry", "identifier", e.Identifier, "error", err)
			return
		}
		k = keptManifest{a.Version, a.UpdatedAt, m}
		d.manifests.mu.Lock()
		if d.manifests.kept == nil || len(d.manifests.kept) >= keptManifests {
			d.manifests.kept = make(map[string]keptManifest)
		}
		d.manifests.kept[e.Identifier] = k
		d.manifests.mu.Unlock()
	}
	e.Trust = k.manifest
}

// makeManifest makes a manifest, or returns nil if there is no document.
func (d *Handler) makeManifest(e *entry, a *hub.Agent) (*trustManifest, error) {
	doc, found, err := d.cfg.Documents.Document(*a, e.Type)
	if !found || err != nil {
		return nil, err
	}
	sum := sha256.Sum256(doc)
	issued := a.UpdatedAt
	if issued.Before(d.cfg.Started) { // another version of the portal may write another card
		issued = d.cfg.Started
	}
	m := &trustManifest{Identity: e.Identifier, IssuedAt: formatTime(issued),
		Subject: &trustSubject{Identifier: e.Identifier, Type: e.Type, Digest: "sha256:" + hex.EncodeToString(sum[:]),
			Version: e.Version, URL: e.URL}}
	m.Signature, err = d.signValue(m)
	return m, err
}

// signValue returns the signature of a value without one.
func (d *Handler) signValue(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	return d.cfg.Signer.SignDetached(b)
}
