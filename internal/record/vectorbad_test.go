package record_test

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

func (f *forge) wire(good string) string {
	f.t.Helper()
	for _, v := range f.file.Good {
		if v.Name == good {
			return string(v.bytes(f.t))
		}
	}
	f.t.Fatalf("there is no %q", good)
	return ""
}

// changed returns a good record with a text of its envelope replaced, not
// signed anew.
func (f *forge) changed(good, old, with string) string {
	f.t.Helper()
	w := f.wire(good)
	if !strings.Contains(w, old) {
		f.t.Fatalf("%s has no %s", good, old)
	}
	return strings.Replace(w, old, with, 1)
}

func (f *forge) makeBadForm() {
	agent := f.wire("agent")
	var e struct{ K, P, S, T string }
	if err := json.Unmarshal([]byte(agent), &e); err != nil {
		f.t.Fatal(err)
	}
	f.bad(record.NotEnvelope, "nothing", "")
	f.bad(record.NotEnvelope, "an empty object", "{}")
	f.bad(record.NotEnvelope, "members in another order", fmt.Sprintf(`{"t":"%s","p":"%s","k":"%s","s":"%s"}`, e.T, e.P, e.K, e.S), card1)
	f.bad(record.NotEnvelope, "white space", f.changed("agent", `","p"`, `", "p"`), card1)
	f.bad(record.NotEnvelope, "a member more", f.changed("agent", `{"k"`, `{"a":"","k"`), card1)
	f.bad(record.NotEnvelope, "a member twice", f.changed("agent", `","s"`, `","p":"`+e.P+`","s"`), card1)
	f.bad(record.NotEnvelope, "something after it", agent+"\n", card1)
	f.bad(record.NotEnvelope, "cut short", agent[:len(agent)-1], card1)
	f.bad(record.NotEnvelope, "an escape in the type", f.changed("agent", `"t":"agent/1"`, `"t":"agent\/1"`), card1)
	f.bad(record.NotEnvelope, "padding", f.changed("agent", `","s"`, `=","s"`), card1)
	whole := f.payload["agent"] // groups of three bytes, so that a decoder that skips line ends misses nothing
	for pad := ""; len(whole)%3 != 0; pad += "x" {
		whole = fmt.Appendf(nil, `{"a":"%s",%s`, pad, f.payload["agent"][1:])
	}
	line := f.sign("agent/1", whole)
	f.bad(record.NotEnvelope, "a line end within base64url", line[:100]+"\n"+line[100:], card1)
	f.bad(record.NotEnvelope, "a carriage return within base64url", line[:100]+"\r"+line[100:], card1)
	f.bad(record.NotEnvelope, "standard base64", f.changed("agent", e.P[:9], e.P[:8]+"+"+e.P[8:9]), card1)
	f.bad(record.NotEnvelope, "unused bits of the signature", f.changed("agent", e.S, e.S[:85]+next(e.S[85])), card1)
	f.bad(record.NotEnvelope, "a signature of 63 bytes", f.changed("agent", e.S, e.S[:84]), card1)
	f.bad(record.NotEnvelope, "a signature of 65 bytes", f.changed("agent", e.S, e.S+"A"), card1)
	f.bad(record.NotEnvelope, "no key", f.changed("agent", e.K, ""), card1)
	f.bad(record.NotEnvelope, "a key id in upper case", f.changed("agent", e.K, strings.ToUpper(e.K)), card1)
	f.bad(record.Unknown, "a type of the next major version", f.sign("agent/2", f.payload["agent"]), card1)
	f.bad(record.Unknown, "no type", f.sign("", f.payload["agent"]), card1)
	f.bad(record.Unknown, "a contact that is no binary", f.sign("node/1", f.payload["agent"]), card1)
	f.bad(record.Unknown, "the type of an agent's own signature", f.sign("agent-consent/1", f.payload["agent"]), card1)
	f.bad(record.TooLarge, "longer than any record", `{"k":"`+strings.Repeat("a", record.MaxWire)+`"}`)
	f.bad(record.TooLarge, "an agent of 8 KiB and more", f.with("agent", map[string]any{"pad": strings.Repeat("x", 8<<10)}), card1)
	f.bad(record.TooLarge, "a head of 512 bytes and more", f.with("head", map[string]any{"pad": strings.Repeat("x", 200)}), card1)
	f.bad(record.TooLarge, "a provider of 400 bytes and more", f.with("provider", map[string]any{"pad": strings.Repeat("x", 200)}), card1)
	f.bad(record.TooLarge, "a fork proof of 2 KiB and more", f.with("fork proof", map[string]any{"pad": strings.Repeat("x", 1024)}), card1, card2)

	f.bad(record.NotJSON, "a payload that is empty", f.sign("agent/1", nil), card1)
	f.bad(record.NotJSON, "a payload that is a list", f.sign("agent/1", []byte("[]")), card1)
	f.bad(record.NotJSON, "a payload that is cut short", f.sign("agent/1", f.payload["agent"][:100]), card1)
	f.bad(record.NotJSON, "two objects", f.sign("agent/1", append(f.payload["agent"], "{}"...)), card1)
	f.bad(record.NotJSON, "a bare line end in a text", f.spliced("agent", "Answers ", "Answers\n"), card1)
	f.bad(record.NotCanonical, "white space in the payload", f.spliced("agent", `,"description"`, `, "description"`), card1)
	f.bad(record.NotCanonical, "members out of order", f.spliced("agent", `{"caps":["text/answer"],`, `{"description":"Answers questions.","caps":["text/answer"],`), card1)
	f.bad(record.NotCanonical, "an escape that is not needed", f.spliced("agent", "Answers", `\u0041nswers`), card1)
	f.bad(record.NotCanonical, "an escaped slash", f.spliced("agent", "text/answer", `text\/answer`), card1)
	f.bad(record.NotCanonical, "minus zero", f.spliced("agent", `{"caps"`, `{"a":-0,"caps"`), card1)
	f.bad(record.BadNumber, "a fraction", f.spliced("agent", `{"caps"`, `{"a":1.5,"caps"`), card1)
	f.bad(record.BadNumber, "an exponent", f.spliced("agent", `{"caps"`, `{"a":1e3,"caps"`), card1)
	f.bad(record.BadNumber, "an integer of 2^53", f.spliced("agent", `{"caps"`, `{"a":9007199254740992,"caps"`), card1)
	f.bad(record.BadText, "invalid UTF-8", f.spliced("agent", "Answers", "Answers\xff"), card1)
	f.bad(record.BadText, "a NUL", f.spliced("agent", "Answers", `Answers\u0000`), card1)
	f.bad(record.BadText, "half a surrogate pair in UTF-8", f.spliced("agent", "Answers", "\xed\xa0\x80"), card1)
	f.bad(record.BadName, "a member in another case", f.spliced("agent", `{"caps"`, `{"Name":"other","caps"`), card1)
	f.bad(record.BadName, "a member that folds to another", f.spliced("agent", `,"title"`, `,"ſkills":[],"title"`), card1)
	f.bad(record.Duplicate, "a member twice in the payload", f.spliced("agent", `{"caps"`, `{"caps":[],"caps"`), card1)
	f.bad(record.HasNull, "a null", f.spliced("agent", `{"caps"`, `{"a":null,"caps"`), card1)
	f.bad(record.TooDeep, "nine levels", f.spliced("agent", `{"caps"`, `{"a":[[[[[[[[]]]]]]]],"caps"`), card1)

	contact := f.wire("contact")
	f.bad(record.NotEnvelope, "a contact cut short", "", card1).binary(contact[:len(contact)-1])
	f.bad(record.NotEnvelope, "a contact with a byte more", "", card1).binary(contact + "x")
	f.bad(record.NotEnvelope, "a contact of one byte", "", card1).binary("\x01")
	f.bad(record.TooLarge, "a contact of 351 bytes", "", card1).binary(f.contact(func(b []byte) []byte {
		b[85] = 201
		return append(b[:86], strings.Repeat("a.", 98)+"examp"...)
	}))
	f.bad(record.BadNumber, "a contact with a seq of 2^53", "", card1).binary(f.contact(func(b []byte) []byte {
		copy(b[51:], "\x00\x20\x00\x00\x00\x00\x00\x00")
		return b
	}))
	f.bad(record.BadField, "a contact with a host in upper case", "", card1).binary(f.contact(func(b []byte) []byte {
		b[86] = 'O'
		return b
	}))
	f.bad(record.BadField, "a contact without a port", "", card1).binary(f.contact(func(b []byte) []byte {
		b[83], b[84] = 0, 0
		return b
	}))
	f.bad(record.BadSignature, "a contact with another port", "", card1).binary(contact[:84] + "x" + contact[85:])
}

func (v *vector) binary(b string) { v.Wire, v.Binary = "", b64.EncodeToString([]byte(b)) }

// contact returns the good contact with its body changed, signed anew.
func (f *forge) contact(change func([]byte) []byte) string {
	w := f.wire("contact")
	body := change([]byte(w[:len(w)-ed25519.SignatureSize]))
	return string(append(body, ed25519.Sign(f.one.Op, pae(recordtest.Network, "node/1", body))...))
}

// next returns the character after c in base64url.
func next(c byte) string {
	const abc = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return abc[(strings.IndexByte(abc, c)+1)%64:][:1]
}

func (f *forge) makeBadTimes() {
	now := f.one.Now
	f.bad(record.FromFuture, "issued more than five minutes from now", f.with("agent", map[string]any{"iss": now + 5*60_000 + 1}), card1)
	f.bad(record.Expired, "expired", f.with("agent", map[string]any{"iss": now - hour + 1, "exp": now}), card1)
	for _, c := range []struct {
		good string
		life int64
	}{{card1, 90 * day}, {"agent", 30 * day}, {"tombstone", 37 * day}, {"head", 48 * hour}, {"summary", 48 * hour}, {"provider", 36 * hour}, {"attestation", 180 * day}, {"words about own agents", 48 * hour}, {"fork proof", 365 * day}} {
		f.bad(record.TooLong, c.good+" that lives too long", f.with(c.good, map[string]any{"exp": now + c.life + 1}), card1, card2)
	}
	f.bad(record.TooLong, "contact that lives too long", "", card1).binary(f.contact(func(b []byte) []byte {
		b[71]++ // a third of a minute times 2^24
		return b
	}))
	v := f.bad(record.Expired, "a head two days later", f.wire("head"), card1)
	v.At = now + 48*hour
	v = f.bad(record.NoPortal, "an attestation when the card has expired", f.wire("attestation"), card1)
	v.At = now + 90*day
	f.bad(record.KeyTime, "an agent that outlives its key", f.late("agent", 60*day), card1).At = now + 60*day
	f.bad(record.KeyTime, "an attestation issued after its key's time", f.late("attestation", 81*day), card1).At = now + 81*day
}

// late returns a good record issued that much later, as long as it may be.
func (f *forge) late(good string, by int64) string {
	return f.with(good, map[string]any{"iss": f.one.Now + by, "exp": f.one.Now + by + 30*day})
}

func (f *forge) makeBadHistory() {
	f.bad(record.NoPortal, "an agent of a portal without a card", f.wire("agent"))
	f.bad(record.NoPortal, "an agent of another portal", envelope("agent/1", f.payload["agent"], f.two.Op), card2)
	f.bad(record.NoKey, "an agent signed by another portal", envelope("agent/1", f.payload["agent"], f.two.Op), card1, card2)
	f.bad(record.NoKey, "an agent signed by the root key", envelope("agent/1", f.payload["agent"], f.one.Root), card1)
	f.bad(record.NoKey, "a card signed by an operational key", envelope("portal/1", f.payload[card1], f.one.Op))
	f.bad(record.NoKey, "a card signed by another portal", envelope("portal/1", f.payload[card1], f.two.Root), card2)
	f.bad(record.NoKey, "a head when the card has no keys", f.wire("head of two"), "card without keys")
	f.bad(record.BadSignature, "a signature over another type", f.changed("agent", `"t":"agent/1"`, `"t":"attest/1"`), card1).reason(record.BadField)
	f.bad(record.BadSignature, "a signature for another network", envelopeIn("elsewhere", "agent/1", f.payload["agent"], f.one.Op), card1)
	f.bad(record.BadSignature, "the key id of a portal over another's signature", swapKey(envelope("agent/1", f.payload["agent"], f.two.Op), f.one), card1)
	f.bad(record.BadSignature, "the signature of another record", swapSig(f.wire("agent"), f.wire("tombstone")), card1)
	f.bad(record.BadSignature, "a signature with S above the group's order", aboveOrder(f.t, f.wire("agent")), card1)
	f.bad(record.BadSignature, "a portable agent changed by its portal", f.with("portable agent", map[string]any{"title": "Changed"}), card1)
	f.bad(record.BadSignature, "a portable agent that never signed", f.with("portable agent", map[string]any{"agent_sig": nil}), card1)
	f.bad(record.Stale, "an older card", f.wire(card1), "card with everything")
	f.bad(record.Stale, "an older head", f.wire("head of nothing"), card1, "head")
	f.bad(record.Stale, "an agent of an epoch that is over", f.with("agent", map[string]any{"epoch": f.one.Epoch - 1, "seq": 1000}), card1, "head")
	f.bad(record.Stale, "an agent older than its tombstone", f.with("agent", map[string]any{"id": "y", "seq": 1}), card1, "tombstone")
	f.bad(record.Equivocation, "another head of the same version", f.wire("another head of two, of the same version"), card2, "head of two")
	f.bad(record.Equivocation, "another agent of the same version", f.with("agent", map[string]any{"title": "Another"}), card1, "agent")
	f.bad(record.Equivocation, "another card of the same version", f.with(card1, map[string]any{"name": "Another"}), card1)
	f.bad(record.Quarantined, "a record of a portal that lied", f.wire("head of two"), card1, card2, "fork proof")

	own := [2]string{f.wire("head"), f.with("head", map[string]any{"prev": nil})}
	if f.hash(own[1]) < f.hash(own[0]) {
		own[0], own[1] = own[1], own[0]
	}
	agents := [2]string{}
	for i, title := range []string{"This", "That"} {
		payload := strings.ReplaceAll(string(f.payload["agent"]), string(f.one.ID), string(f.two.ID))
		agents[i] = envelope("agent/1", []byte(strings.Replace(payload, "Agent x", title, 1)), f.two.Op)
	}
	if f.hash(agents[1]) < f.hash(agents[0]) {
		agents[0], agents[1] = agents[1], agents[0]
	}
	a, b := json.RawMessage(f.wire("head of two")), json.RawMessage(f.wire("another head of two, of the same version"))
	for _, c := range []struct {
		name string
		set  map[string]any
	}{
		{"one head twice", map[string]any{"a": a, "b": a}},
		{"heads in the wrong order", map[string]any{"a": b, "b": a}},
		{"heads of two versions", map[string]any{"a": json.RawMessage(envelope("head/1", []byte(strings.Replace(string(f.payload["head of two"]), `"seq":`, `"seq":1`, 1)), f.two.Op))}},
		{"heads of another portal", map[string]any{"a": json.RawMessage(own[0]), "b": json.RawMessage(own[1])}},
		{"agents instead of heads", map[string]any{"a": json.RawMessage(agents[0]), "b": json.RawMessage(agents[1])}},
		{"heads that are text", map[string]any{"a": "x"}},
	} {
		f.bad(record.BadEvidence, "a fork proof with "+c.name, f.with("fork proof", c.set), card1, card2)
	}
	forged := envelope("head/1", f.payload["another head of two, of the same version"], f.one.Op)
	f.bad(record.NoKey, "a fork proof with a head that the accuser signed", f.with("fork proof", map[string]any{"b": json.RawMessage(forged)}), card1, card2)
	f.bad(record.BadEvidence, "a fork proof with a head that nobody signed", f.with("fork proof", map[string]any{"b": json.RawMessage(swapKey(forged, f.two))}), card1, card2)
	f.bad(record.NoPortal, "a fork proof against a portal without a card", f.wire("fork proof"), card1)
}

// hash returns the hash of a record as a text that sorts as its bytes do.
func (f *forge) hash(wire string) string {
	f.t.Helper()
	r, err := record.Open(recordtest.Network, []byte(wire))
	if err != nil {
		f.t.Fatal(err)
	}
	return string(r.Hash[:])
}

func (v *vector) reason(why record.Reason) { v.Reason = why }

func swapKey(wire string, p *recordtest.Portal) string {
	return wire[:6] + string(record.KeyIDOf(record.PublicOf(p.Op))) + wire[22:]
}

func swapSig(wire, from string) string {
	i, j := strings.Index(wire, `"s":"`)+5, strings.Index(from, `"s":"`)+5
	return wire[:i] + from[j:j+86] + wire[i+86:]
}

// aboveOrder returns a record whose signature is another spelling of the right
// one: S plus the order of the group.
func aboveOrder(t *testing.T, wire string) string {
	i := strings.Index(wire, `"s":"`) + 5
	sig, err := b64.DecodeString(wire[i : i+86])
	if err != nil {
		t.Fatal(err)
	}
	order := []byte{0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10}
	carry := 0
	for k := range order {
		n := int(sig[32+k]) + int(order[k]) + carry
		sig[32+k], carry = byte(n), n>>8
	}
	return wire[:i] + b64.EncodeToString(sig) + wire[i+86:]
}

func makeTrees(t *testing.T) []treeVector {
	var list []treeVector
	for _, n := range []int{0, 1, 2, 7} {
		var tree record.Tree
		v := treeVector{Leaves: []vectorLeaf{}}
		for i := range n {
			k := record.AgentKey(string(rune('a' + i)))
			tree.Set(k, record.Hash{byte(i)})
			v.Leaves = append(v.Leaves, vectorLeaf{k, record.Hash{byte(i)}})
		}
		v.Root = tree.Root()
		add := func(says string, p *record.Proof) {
			b, err := p.Encode()
			if err != nil {
				t.Fatal(err)
			}
			v.Proofs = append(v.Proofs, vectorProof{says, b})
		}
		for _, id := range []string{"a", "x", "y"} {
			k := record.AgentKey(id)
			p := tree.Prove(k)
			if _, ok := tree.Get(k); ok {
				add("included", p)
				add("nothing", &record.Proof{Key: k, Before: p.Leaf})
				p.Leaf.Hash[0] ^= 1
				add("nothing", p)
				continue
			}
			add("absent", p)
			add("nothing", &record.Proof{Key: record.AgentKey("a"), Before: p.Before, After: p.After})
			if p.Before != nil && p.After != nil {
				add("nothing", &record.Proof{Key: k, After: p.After})
				add("nothing", &record.Proof{Key: k, Before: p.Before})
			}
		}
		if n == 0 {
			v.Proofs = v.Proofs[:1]
		}
		list = append(list, v)
	}
	return list
}
