package record_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

const (
	hour = recordtest.Hour
	day  = recordtest.Day
)

func admit(t *testing.T, g *record.Gate, wire []byte, now int64) (bool, record.Reason) {
	t.Helper()
	_, fresh, err := g.Admit(t.Context(), wire, time.UnixMilli(now))
	if err != nil && record.ReasonOf(err) == "" {
		t.Fatal(err)
	}
	return fresh, record.ReasonOf(err)
}

func TestGate_AdmitsEachTypeOnce(t *testing.T) {
	t.Parallel()
	p, q := recordtest.NewPortal("one"), recordtest.NewPortal("two")
	g, _ := recordtest.Gate(t, p, q)
	var tree record.Tree
	for _, body := range []record.Body{
		p.Card(), p.Agent("x"), p.Gone("y"), p.Head(&tree),
		&record.Contact{Header: p.Header(48 * hour), CardSeq: 1, Host: "one.example", Port: 443},
		&record.Summary{Header: p.Header(48 * hour), Caps: []record.CapCount{{Cap: "text", Count: 2}}, Terms: record.NewBloom(10)},
		&record.Provider{Header: p.Header(36 * hour), Kind: record.ProvidesAgent, Key: record.AgentKey("x"), HeadSeq: 1, Count: 1},
		&record.Attest{Header: p.Header(180 * day), Subject: q.ID, Verdict: record.Vouch},
	} {
		r := p.Sign(t, body)
		if fresh, why := admit(t, g, r.Wire, p.Now); !fresh || why != "" {
			t.Errorf("%s: fresh %v, %s", r.Type, fresh, why)
		}
		if fresh, why := admit(t, g, r.Wire, p.Now); fresh || why != "" {
			t.Errorf("%s again: fresh %v, %s", r.Type, fresh, why)
		}
	}
}

func TestGate_RefusesEveryChangedByte(t *testing.T) {
	t.Parallel()
	p := recordtest.NewPortal("one")
	g, _ := recordtest.Gate(t, p)
	for _, r := range []*record.Record{
		p.Sign(t, p.Agent("x")),
		p.Sign(t, &record.Contact{Header: p.Header(hour), CardSeq: 1, Host: "one.example", Port: 443}),
	} {
		for i := range r.Wire {
			for _, x := range []byte{1, 0x20, 0x80} {
				bad := bytes.Clone(r.Wire)
				bad[i] ^= x
				if fresh, why := admit(t, g, bad, p.Now); fresh || why == "" {
					t.Fatalf("%s with byte %d changed by %#x was admitted", r.Type, i, x)
				}
			}
		}
		if _, why := admit(t, g, r.Wire, p.Now); why != "" {
			t.Fatalf("%s: %s", r.Type, why)
		}
	}
}

func TestGate_NeverGoesBack(t *testing.T) {
	t.Parallel()
	p := recordtest.NewPortal("one")
	g, mem := recordtest.Gate(t, p)
	var tree record.Tree
	old, now := p.Sign(t, p.Head(&tree)), p.Sign(t, p.Head(&tree))
	if _, why := admit(t, g, now.Wire, p.Now); why != "" {
		t.Fatal(why)
	}
	mem.Forget(p.Now + 1000*day) // what must never be forgotten
	if _, why := admit(t, g, old.Wire, p.Now); why != record.Stale {
		t.Errorf("an older head: %q", why)
	}
	p.Epoch += 1000
	p.Seq = 0
	again := p.Sign(t, p.Head(&tree))
	if fresh, why := admit(t, g, again.Wire, p.Now); !fresh || why != "" {
		t.Errorf("seq 1 of a new epoch: %s", why)
	}
	p.Epoch -= 1000
	p.Seq = 100
	if _, why := admit(t, g, p.Sign(t, p.Agent("x")).Wire, p.Now); why != record.Stale {
		t.Errorf("an agent of an epoch that is over: %q", why)
	}
}

// An old record must not come back once its tombstone may be forgotten.
func TestGate_TombstoneOutlivesWhatItDeletes(t *testing.T) {
	t.Parallel()
	p := recordtest.NewPortal("one")
	g, mem := recordtest.Gate(t, p)
	agent := p.Sign(t, p.Agent("x"))
	p.Now += hour
	gone := p.Sign(t, p.Gone("x"))
	for _, r := range []*record.Record{agent, gone} {
		if _, why := admit(t, g, r.Wire, p.Now); why != "" {
			t.Fatal(why)
		}
	}
	for at := p.Now; at < p.Now+40*day; at += 6 * hour {
		mem.Forget(at)
		if fresh, why := admit(t, g, agent.Wire, at); fresh || why != record.Stale && why != record.Expired {
			t.Fatalf("%d h later the deleted agent came back: %q", (at-p.Now)/hour, why)
		}
	}
	if s, err := mem.Seen(t.Context(), agent.Slot()); err != nil || s != (record.Seen{}) {
		t.Errorf("the tombstone stays for ever: %v, %v", s, err)
	}
}

// A version that expires early must be remembered as long as an older one that
// does not could come back.
func TestGate_ShortLifeDoesNotBringBackTheLonger(t *testing.T) {
	t.Parallel()
	p := recordtest.NewPortal("one")
	g, mem := recordtest.Gate(t, p)
	long := p.Sign(t, p.Agent("x"))
	brief := p.Agent("x")
	brief.Expires = brief.Issued + hour
	if _, why := admit(t, g, p.Sign(t, brief).Wire, p.Now); why != "" {
		t.Fatal(why)
	}
	mem.Forget(p.Now + 20*day)
	if _, why := admit(t, g, long.Wire, p.Now+20*day); why != record.Stale {
		t.Errorf("the older version: %q", why)
	}
}

func TestGate_KeepsEquivocationAsProof(t *testing.T) {
	t.Parallel()
	liar, witness := recordtest.NewPortal("liar"), recordtest.NewPortal("witness")
	g, mem := recordtest.Gate(t, liar, witness)
	var one, two record.Tree
	two.Set(record.AgentKey("x"), record.Hash{1})
	a := liar.Sign(t, liar.Head(&one))
	liar.Seq--
	b := liar.Sign(t, liar.Head(&two))
	if _, why := admit(t, g, a.Wire, liar.Now); why != "" {
		t.Fatal(why)
	}
	if _, why := admit(t, g, b.Wire, liar.Now); why != record.Equivocation {
		t.Fatalf("another head of the version: %q", why)
	}
	if _, why := admit(t, g, liar.Sign(t, liar.Agent("x")).Wire, liar.Now); why != record.Quarantined {
		t.Errorf("more of the liar: %q", why)
	}
	next := *liar
	next.Op = recordtest.Key("liar op, the next")
	if fresh, why := admit(t, g, next.Sign(t, next.Card()).Wire, liar.Now); !fresh {
		t.Errorf("the card that throws the key away: %q", why)
	}
	list := mem.Conflicts()
	if len(list) != 1 {
		t.Fatalf("%d conflicts", len(list))
	}
	f := list[0].Proof()
	f.Header = witness.Header(365 * day)
	proof := witness.Sign(t, f)

	// Elsewhere nobody has seen either head.
	g2, mem2 := recordtest.Gate(t, liar, witness)
	if fresh, why := admit(t, g2, proof.Wire, liar.Now+100*hour); !fresh || why != "" {
		t.Fatalf("the proof: %s", why) // also when the heads have expired
	}
	if s, _ := mem2.Standing(t.Context(), liar.ID); !s.Quarantined {
		t.Error("the liar is not quarantined")
	}
	if s, _ := mem2.Standing(t.Context(), witness.ID); s.Quarantined {
		t.Error("the witness is quarantined")
	}
}

// Whoever sees both ends with the same one, in whatever order they came.
func TestGate_OfTwoOfAVersionTheLowerHashStays(t *testing.T) {
	t.Parallel()
	p := recordtest.NewPortal("one")
	a := p.Sign(t, p.Agent("x"))
	p.Seq--
	other := p.Agent("x")
	other.Title = "Another"
	b := p.Sign(t, other)
	var held [2][]byte
	for i, order := range [][]*record.Record{{a, b}, {b, a}} {
		p.Seq = 0
		g, mem := recordtest.Gate(t, p)
		admit(t, g, order[0].Wire, p.Now)
		if _, why := admit(t, g, order[1].Wire, p.Now); why != record.Equivocation {
			t.Fatal(why)
		}
		held[i], _ = mem.Held(t.Context(), a.Slot())
		c := mem.Conflicts()[0]
		if c.Proof() != nil || !bytes.Equal(c.Lower, held[i]) || len(c.Higher) == 0 {
			t.Error("the conflict is kept wrong")
		}
	}
	if !bytes.Equal(held[0], held[1]) || held[0] == nil {
		t.Error("the order decides what stays")
	}
}

func TestRefused_HasAKindForDoors(t *testing.T) {
	t.Parallel()
	p := recordtest.NewPortal("one")
	g, _ := recordtest.Gate(t)
	_, _, err := g.Admit(t.Context(), p.Sign(t, p.Agent("x")).Wire, time.UnixMilli(p.Now))
	if !fault.Is(err, fault.Unauthenticated) || record.ReasonOf(err) != record.NoPortal || record.ReasonOf(errors.New("x")) != "" {
		t.Errorf("%v", err)
	}
}
