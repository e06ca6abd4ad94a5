package record_test

import (
	"bytes"
	"crypto/ed25519"
	"testing"
	"time"

	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

// FuzzOpen reads anything as a record. What is one reads the same again, and
// its signature over the same bytes is worth what its key is.
func FuzzOpen(f *testing.F) {
	p := recordtest.NewPortal("one")
	var tree record.Tree
	for _, body := range []record.Body{p.Card(), p.Agent("x"), p.Gone("y"), p.Head(&tree),
		&record.Contact{Header: p.Header(hour), CardSeq: 1, Host: "one.example", Port: 443},
		&record.Provider{Header: p.Header(hour), Kind: record.ProvidesCap, HeadSeq: 1, Count: 1},
		&record.Live{Header: p.Header(hour), Subject: p.ID, Words: record.PackWords([]record.Word{{Reach: record.Alive}})}} {
		r, err := record.Sign(recordtest.Network, body, p.Op)
		if _, ok := body.(*record.Card); ok {
			r, err = record.Sign(recordtest.Network, body, p.Root)
		}
		if err != nil {
			f.Fatal(err)
		}
		f.Add(r.Wire)
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		r, err := record.Open(recordtest.Network, wire)
		if err != nil {
			if record.ReasonOf(err) == "" {
				t.Errorf("%v has no reason", err)
			}
			return
		}
		again, err := record.Open(recordtest.Network, r.Wire)
		if err != nil || again.Hash != r.Hash || !bytes.Equal(r.Wire, wire) || again.Slot() != r.Slot() {
			t.Errorf("%q reads otherwise the second time: %v", wire, err)
		}
	})
}

// FuzzPayload signs anything as a payload and brings it to a gate that knows
// the key: past the signature nothing may break either.
func FuzzPayload(f *testing.F) {
	p := recordtest.NewPortal("one")
	for _, typ := range []string{"agent/1", "head/1", "summary/1", "provider/1", "attest/1", "fork/1", "portal/1", "node/1", "live/1"} {
		f.Add(typ, []byte(`{"epoch":1795340000000,"exp":1795348900000,"id":"x","iss":1795348800000,"name":"xx","portal":"`+string(p.ID)+`","seq":1}`))
	}
	card, err := record.Sign(recordtest.Network, p.Card(), p.Root)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, typ string, payload []byte) {
		g, mem := recordtest.Gate(t)
		now := time.UnixMilli(p.Now)
		if _, _, err := g.Admit(t.Context(), card.Wire, now); err != nil {
			t.Fatal(err)
		}
		r, _, err := g.Admit(t.Context(), []byte(envelope(typ, payload, p.Op)), now)
		if err != nil {
			if record.ReasonOf(err) == "" {
				t.Errorf("%v has no reason", err)
			}
			return
		}
		if r.Portal != p.ID || !oracle(payload) || r.Issued > p.Now+5*60_000 || r.Expires <= p.Now {
			t.Errorf("%s %q was admitted", typ, payload)
		}
		if held, _ := mem.Held(t.Context(), r.Slot()); !bytes.Equal(held, r.Wire) {
			t.Error("something else is held")
		}
	})
}

// FuzzContact signs anything as the body of a contact.
func FuzzContact(f *testing.F) {
	p := recordtest.NewPortal("one")
	r, err := record.Sign(recordtest.Network, &record.Contact{Header: p.Header(hour), CardSeq: 1, Host: "one.example", Port: 443}, p.Op)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(r.Wire[:len(r.Wire)-ed25519.SignatureSize])
	f.Fuzz(func(t *testing.T, body []byte) {
		wire := append(bytes.Clone(body), ed25519.Sign(p.Op, pae(recordtest.Network, "node/1", body))...)
		r, err := record.Open(recordtest.Network, wire)
		if err != nil {
			return
		}
		c, ok := r.Body.(*record.Contact)
		if !ok || len(wire) > 350 || !record.ValidOrigin(c.Origin()) {
			t.Fatalf("%x was read as %+v", wire, r.Body)
		}
		again, err := record.Sign(recordtest.Network, c, p.Op)
		if r.Key == record.KeyIDOf(record.PublicOf(p.Op)) && (err != nil && record.ReasonOf(err) != record.TooLong || err == nil && !bytes.Equal(again.Wire, wire)) {
			t.Errorf("%x is written as %x, %v", wire, again.Wire, err)
		}
	})
}
