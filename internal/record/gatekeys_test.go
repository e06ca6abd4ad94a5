package record_test

import (
	"testing"

	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

func TestGate_CardWithoutAKeyVoidsWhatItSigned(t *testing.T) {
	t.Parallel()
	p := recordtest.NewPortal("one")
	g, mem := recordtest.Gate(t, p)
	r := p.Sign(t, p.Agent("x"))
	admit(t, g, r.Wire, p.Now)
	stolen := *p
	p.Op = recordtest.Key("one op, the next")
	if _, why := admit(t, g, p.Sign(t, p.Card()).Wire, p.Now); why != "" {
		t.Fatal(why)
	}
	stolen.Seq = p.Seq
	if _, why := admit(t, g, stolen.Sign(t, stolen.Agent("y")).Wire, p.Now); why != record.NoKey {
		t.Errorf("the stolen key: %q", why)
	}
	if wire, _ := mem.Held(t.Context(), r.Slot()); wire != nil {
		t.Error("what it signed before is still held")
	}
	// Nor does it convict the portal.
	var tree record.Tree
	a := stolen.Sign(t, stolen.Head(&tree))
	stolen.Seq--
	h := stolen.Head(&tree)
	h.Prev = record.Hash{1}
	b := stolen.Sign(t, h)
	if b.Hash.String() < a.Hash.String() {
		a, b = b, a
	}
	for range 2 { // one of the two orders is right
		w := recordtest.NewPortal("witness")
		g2, mem2 := recordtest.Gate(t, w)
		admit(t, g2, p.Sign(t, p.Card()).Wire, p.Now)
		f := w.Sign(t, &record.Fork{Header: w.Header(day), Subject: p.ID, A: a.Wire, B: b.Wire})
		if fresh, _ := admit(t, g2, f.Wire, p.Now); fresh || len(mem2.Conflicts()) != 0 {
			t.Error("a stolen key convicts its portal")
		}
		a, b = b, a
	}
	if fresh, why := admit(t, g, p.Sign(t, p.Agent("y")).Wire, p.Now); !fresh {
		t.Errorf("the new key: %s", why)
	}
}

func TestGate_KeysAreGoodForWholeLives(t *testing.T) {
	t.Parallel()
	p := recordtest.NewPortal("one")
	g, _ := recordtest.Gate(t, p)
	key := p.Key()
	for name, c := range map[string]struct {
		issued, expires int64
		want            record.Reason
	}{
		"inside":          {p.Now, p.Now + day, ""},
		"to its last":     {key.Until - 30*day, key.Until, ""},
		"outlives it":     {key.Until - day, key.Until + 1, record.KeyTime},
		"long before it":  {key.From - 1, p.Now + day, record.KeyTime},
		"from its first":  {key.From, p.Now + day, ""},
		"dated back by a": {key.Until - day, key.Until, record.Expired},
	} {
		a := p.Agent("x")
		a.ID, a.Epoch = "x"+string('a'+rune(len(name))), key.From-day
		a.Issued, a.Expires = c.issued, c.expires
		now := max(p.Now, c.issued)
		if c.want == record.Expired {
			now = key.Until + hour // and the key is listed still
		}
		if _, why := admit(t, g, p.Sign(t, a).Wire, now); why != c.want {
			t.Errorf("%s: %q, want %q", name, why, c.want)
		}
	}
}

func TestGate_AgentWithAKeyOfItsOwnMustSignToo(t *testing.T) {
	t.Parallel()
	p := recordtest.NewPortal("one")
	g, _ := recordtest.Gate(t, p)
	key := recordtest.Key("an agent")
	a := p.Agent("x")
	a.ID, a.AgentPub = record.PortableID(record.PublicOf(key)), record.PublicOf(key)
	if _, err := record.Sign(recordtest.Network, a, p.Op); record.ReasonOf(err) != record.BadSignature {
		t.Errorf("without the agent's signature: %v", err)
	}
	if err := a.Cosign(recordtest.Network, key); err != nil {
		t.Fatal(err)
	}
	r := p.Sign(t, a)
	if _, why := admit(t, g, r.Wire, p.Now); why != "" {
		t.Error(why)
	}
	if got := r.Body.(*record.Agent).AgentID(); got != a.ID {
		t.Errorf("portable agent is %s", got)
	}
	a.Header, a.Title = p.Header(day), "Something else"
	if _, err := record.Sign(recordtest.Network, a, p.Op); record.ReasonOf(err) != record.BadSignature {
		t.Errorf("changed after the agent signed: %v", err)
	}
}

func TestGate_OtherNetworkIsNoneOfOurs(t *testing.T) {
	t.Parallel()
	p := recordtest.NewPortal("one")
	g, err := record.NewGate("elsewhere", new(recordtest.Memory))
	if err != nil {
		t.Fatal(err)
	}
	if _, why := admit(t, g, p.Sign(t, p.Card()).Wire, p.Now); why != record.BadSignature {
		t.Errorf("a card of another network: %q", why)
	}
	for _, bad := range []string{"", "UPPER", "a b", "a\x00", "1st", "abcdefghijklmnopqrstuvwxyz-1234567"} {
		if _, err := record.NewGate(bad, new(recordtest.Memory)); err == nil {
			t.Errorf("%q names a network", bad)
		}
	}
}
