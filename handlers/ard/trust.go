package ard

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sync"
	"time"

	"agentsite/internal/hub"
)

// trustManifest states facts that a client can verify: the portal of the domain in the identifier lists
// a card with the given hash (AI Catalog 1.0, Trust Manifest). It contains no attestations, because no
// authority issues any for agents.
type trustManifest struct {
	// Identity is the entry's identifier, as the AI Catalog requires; its domain is the
	// publisher's, as ARD requires.
	Identity string        `json:"identity"`
	Subject  *trustSubject `json:"subject,omitempty"`
	IssuedAt string        `json:"issuedAt,omitempty"`
	// Signature is a detached JWS over the canonical form (RFC 8785) of the manifest without this field.
	// The header of the JWS names the key and the key's address.
	Signature string `json:"signature,omitempty"`
}

// trustSubject is the document that an entry refers to, with the hash by which a client verifies it.
type trustSubject struct {
	Identifier string `json:"identifier"`
	Type       string `json:"type"`
	Digest     string `json:"digest"`
	Version    string `json:"version,omitempty"`
	URL        string `json:"url"`
}

// keptManifests bounds the cached manifests. A cached one saves three signatures: two of the card and one
// of the manifest.
const keptManifests = 10_000

// manifests caches trust manifests by agent, until the agent changes. The zero value is empty.
type manifests struct {
	mu   sync.Mutex // guards kept
	kept map[string]keptManifest
}

type keptManifest struct {
	version  int
	updated  time.Time
	manifest *trustManifest
}

// addTrust adds a trust manifest to the entry of an agent, if this portal serves the card that the entry
// refers to.
func (d *Handler) addTrust(e *entry, a *hub.Agent) {
	// an agent of another portal is vouched for by that portal
	if d.cfg.Documents == nil || d.cfg.Signer == nil || a.Elsewhere() {
		return
	}
	d.manifests.mu.Lock()
	k, ok := d.manifests.kept[e.Identifier]
	d.manifests.mu.Unlock()
	if !ok || k.version != a.Version || !k.updated.Equal(a.UpdatedAt) {
		m, err := d.makeManifest(e, a)
		if err != nil { // the entry is sent without a manifest, which is optional
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

// makeManifest returns a signed trust manifest for an entry, nil if the portal has no such card.
func (d *Handler) makeManifest(e *entry, a *hub.Agent) (*trustManifest, error) {
	doc, found, err := d.cfg.Documents.Document(*a, e.Type)
	if !found || err != nil {
		return nil, err
	}
	sum := sha256.Sum256(doc)
	issued := a.UpdatedAt
	if issued.Before(d.cfg.Started) { // a new version of the software may write the card differently
		issued = d.cfg.Started
	}
	m := &trustManifest{Identity: e.Identifier, IssuedAt: formatTime(issued),
		Subject: &trustSubject{Identifier: e.Identifier, Type: e.Type, Digest: "sha256:" + hex.EncodeToString(sum[:]),
			Version: e.Version, URL: e.URL}}
	m.Signature, err = d.signValue(m)
	return m, err
}

// signValue returns a detached JWS over the canonical form of v. v must not contain a signature yet.
func (d *Handler) signValue(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	return d.cfg.Signer.SignDetached(b)
}
