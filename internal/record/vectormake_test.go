package record_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gowebpki/jcs"

	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

var b64 = base64.RawURLEncoding

// pae and envelope write the format a second time, so that the package is not
// only tested against itself.
func pae(network, typ string, payload []byte) []byte {
	return fmt.Appendf(nil, "agentsite/1 %d %s %d %s %d %s", len(network), network, len(typ), typ, len(payload), payload)
}

func envelope(typ string, payload []byte, key ed25519.PrivateKey) string {
	return envelopeIn(recordtest.Network, typ, payload, key)
}

func envelopeIn(network, typ string, payload []byte, key ed25519.PrivateKey) string {
	sig := ed25519.Sign(key, pae(network, typ, payload))
	return fmt.Sprintf(`{"k":"%s","p":"%s","s":"%s","t":"%s"}`, record.KeyIDOf(record.PublicOf(key)), b64.EncodeToString(payload), b64.EncodeToString(sig), typ)
}

// forge makes records that Sign would not.
type forge struct {
	t       *testing.T
	one     *recordtest.Portal
	two     *recordtest.Portal
	file    vectors
	payload map[string][]byte // of the good records
	typ     map[string]string
}

func (f *forge) good(name string, r *record.Record, after ...string) *record.Record {
	v := vector{Name: name, After: after, Type: r.Type, Hash: r.Hash.String(), About: r.Slot().About}
	if r.Type == record.TypeContact {
		v.Binary = b64.EncodeToString(r.Wire)
	} else {
		v.Wire = string(r.Wire)
		var e struct{ P string }
		if err := json.Unmarshal(r.Wire, &e); err != nil {
			f.t.Fatal(err)
		}
		p, err := b64.DecodeString(e.P)
		if err != nil {
			f.t.Fatal(err)
		}
		v.Payload = string(p)
		f.payload[name], f.typ[name] = p, string(r.Type)
	}
	f.file.Good = append(f.file.Good, v)
	return r
}

func (f *forge) bad(why record.Reason, name, wire string, after ...string) *vector {
	v := vector{Name: name, Wire: wire, Reason: why, After: after}
	for _, c := range wire {
		if c == 0xfffd || c < ' ' {
			v.Wire, v.Binary = "", b64.EncodeToString([]byte(wire))
			break
		}
	}
	f.file.Bad = append(f.file.Bad, v)
	return &f.file.Bad[len(f.file.Bad)-1]
}

// with returns a good record's payload with some members set, or dropped when
// nil, properly signed anew.
func (f *forge) with(good string, set map[string]any) string {
	f.t.Helper()
	d := json.NewDecoder(strings.NewReader(string(f.payload[good])))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		f.t.Fatalf("%s: %v", good, err)
	}
	for k, v := range set {
		if v == nil {
			delete(m, k)
		} else {
			m[k] = v
		}
	}
	b, err := json.Marshal(m)
	if err == nil {
		b, err = jcs.Transform(b)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return f.sign(f.typ[good], b)
}

// sign signs a payload with the key of portal one that belongs to the type.
func (f *forge) sign(typ string, payload []byte) string {
	key := f.one.Op
	if typ == string(record.TypeCard) {
		key = f.one.Root
	}
	return envelope(typ, payload, key)
}

// spliced returns a good record's payload with a text replaced, signed anew.
func (f *forge) spliced(good, old, with string) string {
	f.t.Helper()
	s := string(f.payload[good])
	if !strings.Contains(s, old) {
		f.t.Fatalf("%s has no %s", good, old)
	}
	return f.sign(f.typ[good], []byte(strings.Replace(s, old, with, 1)))
}

const (
	card1 = "card of one"
	card2 = "card of two"
)

func makeVectors(t *testing.T) vectors {
	f := &forge{t: t, one: recordtest.NewPortal("one"), two: recordtest.NewPortal("two"), payload: map[string][]byte{}, typ: map[string]string{}}
	f.file = vectors{Network: recordtest.Network, Now: recordtest.Start.UnixMilli(), Keys: makeKeys()}
	f.makeGood()
	f.makeBadForm()
	f.makeBadFields()
	f.makeBadTimes()
	f.makeBadHistory()
	f.file.Trees = makeTrees(t)
	return f.file
}

func (f *forge) makeGood() {
	t, one, two := f.t, f.one, f.two
	f.good(card1, one.Sign(t, one.Card()))
	f.good(card2, two.Sign(t, two.Card()))
	bare := two.Card()
	bare.Keys, bare.Roles, bare.Policy = nil, nil, ""
	f.good("card without keys", two.Sign(t, bare))
	full := one.Card()
	full.PrevOrigins, full.Operator, full.Contact = []string{"https://before.example:8443", "http://127.0.0.1:8080"}, "Ada & Söhne <ops>", "ops@one.example"
	full.Limits = map[string]int64{"body_bytes": 262144, "search_per_second": 5}
	f.good("card with everything", one.Sign(t, full))

	f.good("agent", one.Sign(t, one.Agent("x")), card1)
	rich := one.Agent("01jd0000000000000000000000")
	rich.Description = "Übersetzt \"Texte\" – zeilenweise.\n\tÀ bientôt \u2014 再见 😀 / <b> & \\"
	rich.Caps = []string{"nlp", "nlp/translation", "nlp/translation/de"}
	rich.Languages = []string{"de", "fr", "zh-hans"}
	rich.Skills = []record.Skill{{ID: "t", Name: "Translate", Description: "Any text.", Tags: []string{"Übersetzung", "text"}}, {ID: "s", Name: "Sum up"}}
	rich.Endpoints = append(rich.Endpoints, record.Endpoint{URL: "https://[2001:db8::1]:8443/mcp?x=1", Protocol: "mcp"})
	rich.CardURL, rich.CardSHA256 = "https://one.example/agents/x/card.json", record.Hash{1, 2, 3}
	rich.Kind, rich.Inputs, rich.Outputs = "a2a", []string{"image/png", "text/plain"}, []string{"application/json", "text/plain;charset=utf-8"}
	rich.Skills[0].Examples = []string{"Translate \"hello\" into German", "再见?"}
	rich.Created, rich.Updated = 1, one.Now
	rich.Status, rich.StatusNote = record.StatusDeprecated, "Use\ntranslate-2."
	rich.Owner, rich.Publisher = "ada", "words.example:8443"
	rich.Proof = &record.AgentProof{Way: "token", Origin: "https://words.example", At: one.Now - day}
	rich.Pricing, rich.Terms = "free", "https://one.example/terms"
	f.good("agent with everything", one.Sign(t, rich), card1)
	f.good("tombstone", one.Sign(t, one.Gone("y")), card1)
	portable := one.Agent("z")
	portable.ID = record.PortableID(record.PublicOf(recordtest.Key("agent")))
	portable.AgentPub = record.PublicOf(recordtest.Key("agent"))
	if err := portable.Cosign(recordtest.Network, recordtest.Key("agent")); err != nil {
		t.Fatal(err)
	}
	f.good("portable agent", one.Sign(t, portable), card1)
	f.payload["future"], f.typ["future"] = f.payload["agent"], "agent/1"
	later := f.with("future", map[string]any{"zone": map[string]any{"deep": []any{"unknown", 1, true}}})
	r, err := record.Open(recordtest.Network, []byte(later))
	if err != nil {
		t.Fatal(err)
	}
	f.good("agent with a field of a later version", r, card1)

	hosted := one.Agent("h")
	hosted.Kind, hosted.Proof = "prompt", &record.AgentProof{Way: "hosted"}
	f.good("hosted agent", one.Sign(t, hosted), card1)

	var tree record.Tree
	f.good("head of nothing", one.Sign(t, one.Head(&tree)), card1)
	tree.Set(record.AgentKey(record.AgentID(one.ID, "x")), record.Hash{7})
	head := one.Head(&tree)
	head.Summary, head.Prev = record.Hash{8}, record.Hash{9}
	f.good("head", one.Sign(t, head), card1)
	f.good("contact", one.Sign(t, &record.Contact{Header: one.Header(48 * hour), CardSeq: 1, Host: "one.example", Port: 443}), card1)
	f.good("contact on loopback", one.Sign(t, &record.Contact{Header: one.Header(48 * hour), CardSeq: 1, Host: "::1", Port: 8080}), card1)
	f.good("contact of full length", one.Sign(t, &record.Contact{Header: one.Header(48 * hour), CardSeq: 1, Host: strings.Repeat("a.", 97) + "exampl", Port: 443}), card1)
	words := record.NewBloom(20)
	for _, w := range []string{"Weather", "translation", "über"} {
		words.Add(w)
	}
	f.good("summary", one.Sign(t, &record.Summary{Header: one.Header(48 * hour), Caps: []record.CapCount{{Cap: "nlp", Count: 2}, {Cap: "nlp/translation", Count: 1}}, Languages: []string{"de", "en"}, Terms: words}), card1)
	f.good("provider", one.Sign(t, &record.Provider{Header: one.Header(36 * hour), Kind: record.ProvidesCap, Key: record.CapKeys("NLP/Translation")[0], HeadSeq: head.Seq, Count: 1}), card1)
	f.good("attestation", one.Sign(t, &record.Attest{Header: one.Header(180 * day), Subject: two.ID, Verdict: record.Warn, Reason: "It was away for a week.", Evidence: record.Hash{5}}), card1)

	own, others := wordsOf(one.ID), wordsOf(two.ID)
	f.good("words about own agents", one.Sign(t, &record.Live{Header: one.Header(48 * hour), Subject: one.ID, Words: record.PackWords(own)}), card1)
	f.good("words about another's agents", one.Sign(t, &record.Live{Header: one.Header(48 * hour), Subject: two.ID, Shard: others[0].Agent.Shard(3), Words: record.PackWords(others[:1])}), card1)
	full500 := make([]record.Word, record.MaxWords)
	for i := range full500 {
		full500[i] = record.Word{Agent: record.AgentTag{byte(i >> 8), byte(i)}, Reach: record.Alive, Ago: record.MaxAgo}
	}
	f.good("words about as many agents as fit", one.Sign(t, &record.Live{Header: one.Header(48 * hour), Subject: one.ID, Words: record.PackWords(full500)}), card1)

	var none record.Tree
	a := two.Sign(t, two.Head(&none))
	two.Seq--
	h := two.Head(&none)
	h.Prev = record.Hash{1}
	b := two.Sign(t, h)
	if strings.Compare(string(b.Hash[:]), string(a.Hash[:])) < 0 {
		a, b = b, a
	}
	f.good("head of two", a, card2)
	f.good("another head of two, of the same version", b, card2)
	f.good("fork proof", one.Sign(t, &record.Fork{Header: one.Header(365 * day), Subject: two.ID, A: a.Wire, B: b.Wire}), card1, card2)
}

// wordsOf are words about agents of a portal, one of each kind.
func wordsOf(id record.PortalID) []record.Word {
	var list []record.Word
	for i, w := range []record.Word{
		{Reach: record.Alive, Within: 3 * time.Millisecond},
		{Reach: record.NeedsAuth, Ago: time.Minute},
		{Reach: record.WrongProtocol, Ago: record.MaxAgo, Within: time.Hour},
		{Reach: record.Unreachable, Ago: 7 * time.Hour, Called: true},
	} {
		w.Agent = record.TagOf(record.AgentID(id, fmt.Sprint(i)))
		list = append(list, w)
	}
	return list
}
