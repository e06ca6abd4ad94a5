package live_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

// says signs a word of a portal as anybody may make it.
func (n *node) says(subject record.PortalID, shard string, words ...record.Word) *record.Record {
	n.Portal.Now = time.Now().UnixMilli()
	return n.Sign(n.net.t, &record.Live{Header: n.Header(48 * recordtest.Hour), Subject: subject, Shard: shard, Words: record.PackWords(words)})
}

func about(o *node, id string, r record.Reach) record.Word {
	return record.Word{Agent: record.TagOf(record.AgentID(o.ID, id)), Reach: r}
}

func (n *node) takes(from *node, wires ...[]byte) []federation.Unfit {
	n.net.t.Helper()
	refused, err := n.Take(n.net.t.Context(), from.ID, wires)
	if err != nil {
		n.net.t.Fatal(err)
	}
	synctest.Wait()
	return refused
}

func TestTake_RefusesWhatIsNotWanted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newNet(t)
		a, b, evil, out := w.start("a"), w.start("b"), w.start("evil"), w.start("out")
		a.lists("x")
		run(t, b)
		wait(time.Second)
		b.registry.Say(out.ID, federation.Decision{State: federation.Denied})
		stranger := &node{Portal: recordtest.NewPortal("stranger"), net: w}
		stranger.Portal.Epoch = evil.Epoch
		good := evil.says(a.ID, "", about(a, "x", record.Unreachable))
		forged := bytes.Replace(good.Wire, []byte(`"s":"`), []byte(`"s":"AAAA`), 1)
		swapped := recordtest.Bent(good.Wire)
		old := evil.says(a.ID, "", about(a, "x", record.Alive))
		newer := evil.says(a.ID, "", about(a, "x", record.Unreachable))
		late := recordtest.NewPortal("evil")
		late.Now, late.Epoch, late.Seq = time.Now().Add(-50*time.Hour).UnixMilli(), evil.Epoch-100*recordtest.Hour, 5
		expired := late.Sign(t, &record.Live{Header: late.Header(48 * recordtest.Hour), Subject: a.ID, Words: record.PackWords([]record.Word{about(a, "x", record.Unreachable)})})
		for name, c := range map[string]struct {
			wire   []byte
			reason string
			fault  bool
		}{
			"nothing":                     {nil, "envelope", true},
			"no record":                   {[]byte(`{"a":1}`), "envelope", true},
			"a longer signature":          {forged, "envelope", true},
			"a signature that is another": {swapped, "signature", true},
			"an agent":                    {evil.Sign(t, evil.Agent("y")).Wire, "type", false},
			"a card":                      {evil.Sign(t, evil.Card()).Wire, "type", false},
			"a portal nobody knows":       {stranger.says(a.ID, "", about(a, "x", record.Unreachable)).Wire, "portal", false},
			"a portal that is denied":     {out.says(a.ID, "", about(a, "x", record.Unreachable)).Wire, "denied", false},
			"about one that is denied":    {evil.says(out.ID, "", about(out, "x", record.Unreachable)).Wire, "denied", false},
			"expired":                     {expired.Wire, "expired", false},
			"too long":                    {bytes.Repeat([]byte("x"), record.MaxWire+1), "size", true},
		} {
			before := sum(b.registry.faults(t, evil.ID))
			refused := b.takes(evil, c.wire)
			if len(refused) != 1 || refused[0] != (federation.Unfit{N: 0, Reason: c.reason}) {
				t.Errorf("%s: %v, want %s", name, refused, c.reason)
			}
			if faulty := sum(b.registry.faults(t, evil.ID)) > before; faulty != c.fault {
				t.Errorf("%s: held against who sent it %v", name, faulty)
			}
		}
		if v := b.believes(a, "x"); len(v.Reports) != 0 {
			t.Errorf("something got in: %+v", v)
		}
		// One that is refused does not spoil the rest.
		refused := b.takes(evil, old.Wire, []byte("{}"), newer.Wire, old.Wire)
		if len(refused) != 2 || refused[0].N != 1 || refused[1] != (federation.Unfit{N: 3, Reason: "stale"}) {
			t.Errorf("%v", refused)
		}
		if v := b.believes(a, "x"); len(v.Reports) != 1 || v.Reports[0].Reach != record.Unreachable {
			t.Errorf("%+v", v)
		}
	})
}

func sum(m map[string]int) (n int) {
	for _, c := range m {
		n += c
	}
	return n
}

func TestTake_NobodySpeaksForThisPortal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newNet(t)
		a, b := w.start("a"), w.start("b")
		a.lists("x")
		run(t, a)
		wait(time.Second)
		own := a.spoken(a.ID)[0]
		stolen := a.says(a.ID, "", about(a, "x", record.Unreachable)) // by a thief of the key
		if refused := a.takes(b, own.Wire, stolen.Wire); len(refused) != 0 {
			t.Errorf("%v", refused)
		}
		if again := a.spoken(a.ID); len(again) != 1 || again[0].Hash != own.Hash || a.believes(a, "x").Reach != record.Alive {
			t.Error("it took its own words from another")
		}
	})
}

func TestTake_QuotasOfNewcomersAreSmall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newNet(t)
		b, a, known := w.start("b"), w.start("a"), w.start("known")
		unproved := w.start("newcomer")
		b.registry.Registry = unlearned(t, a, known) // the newcomer is let in, and no more
		r, _ := record.Open(recordtest.Network, unproved.card)
		b.registry.Learned(r.Body.(*record.Card), false)
		run(t, b)
		wait(time.Second)
		flood := func(n *node) (taken int) {
			for i := range 4096 {
				shard := fmt.Sprintf("%03x", i)
				tag := record.AgentTag{byte(i >> 4), byte(i<<4) | 1}
				if refused := b.takes(n, n.says(a.ID, shard, record.Word{Agent: tag, Reach: record.Unreachable}).Wire); len(refused) == 0 {
					taken++
				} else if refused[0].Reason != "limit" {
					t.Fatal(refused)
				}
				if i > 600 {
					break
				}
			}
			return taken
		}
		if n := flood(unproved); n != 51 {
			t.Errorf("%d records of a newcomer", n)
		}
		if n := flood(known); n != 512 {
			t.Errorf("%d records of a proved portal", n)
		}
		// What replaces something is taken even then.
		if refused := b.takes(unproved, unproved.says(a.ID, "000", record.Word{Agent: record.AgentTag{0, 1}, Reach: record.Alive}).Wire); len(refused) != 0 {
			t.Errorf("a newer version: %v", refused)
		}
		vouch := func(i int) []byte {
			unproved.Portal.Now = time.Now().UnixMilli()
			s := recordtest.NewPortal(fmt.Sprint("subject", i))
			return unproved.Sign(t, &record.Attest{Header: unproved.Header(180 * recordtest.Day), Subject: s.ID, Verdict: record.Vouch}).Wire
		}
		taken := 0
		for i := range 80 {
			if len(b.takes(unproved, vouch(i))) == 0 {
				taken++
			}
		}
		if taken != 50 {
			t.Errorf("%d attestations of a newcomer", taken)
		}
	})
}

func TestTake_NewcomersDoNotCrowdOutOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newNet(t)
		b, a := w.start("b"), w.start("a")
		var wires [][]byte
		for i := range 100 {
			n := w.start(fmt.Sprint("newcomer", i))
			wires = append(wires, n.says(a.ID, "", about(a, "x", record.Unreachable)).Wire)
		}
		honest := w.start("honest")
		b.registry.Registry = unlearned(t, a, honest)
		w.mu.Lock()
		for name, n := range w.at {
			if strings.Contains(name, "newcomer") {
				r, _ := record.Open(recordtest.Network, n.card)
				b.registry.Learned(r.Body.(*record.Card), false)
			}
		}
		w.mu.Unlock()
		run(t, b)
		wait(soon)
		for _, wire := range wires {
			b.takes(honest, wire)
		}
		b.takes(honest, honest.says(a.ID, "", about(a, "x", record.Alive)).Wire, a.says(a.ID, "", about(a, "x", record.Alive)).Wire)
		v := b.believes(a, "x")
		if v.Reach != record.Alive || v.Disputed || len(v.Reports) > 64 || len(v.Reports) < 3 {
			t.Errorf("%d voices: %q", len(v.Reports), v.Reason)
		}
	})
}

func TestTake_AForkProofConvicts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newNet(t)
		a, b, c, evil := w.start("a"), w.start("b"), w.start("c"), w.start("evil")
		evil.lists("x")
		run(t, a, b, c, evil)
		wait(soon)
		var none record.Tree
		one := evil.Sign(t, evil.Head(&none))
		evil.Seq--
		h := evil.Head(&none)
		h.Prev = record.Hash{1}
		two := evil.Sign(t, h)
		b.admit(one.Wire) // b sees one, c the other, a both
		c.admit(two.Wire)
		a.admit(one.Wire)
		if _, _, err := a.gate.Admit(t.Context(), two.Wire, time.Now()); record.ReasonOf(err) != record.Equivocation {
			t.Fatal(err)
		}
		wait(2 * soon)
		for _, n := range []*node{a, b, c} {
			got, err := n.replica.Quarantined(t.Context(), evil.ID)
			if err != nil || got == nil {
				t.Errorf("%s: %v, %v", n.Name, got, err)
				continue
			}
			// The same state as seeing both heads.
			want, _ := a.replica.Quarantined(t.Context(), evil.ID)
			if !bytes.Equal(got.Lower, want.Lower) || !bytes.Equal(got.Higher, want.Higher) || got.Slot != want.Slot || got.Version != want.Version {
				t.Errorf("%s has another proof", n.Name)
			}
			if v := n.believes(evil, "x"); v.Reach != 0 || len(v.Reports) != 0 {
				t.Errorf("%s listens to who lied: %+v", n.Name, v)
			}
			if refused := n.takes(a, evil.says(evil.ID, "", about(evil, "x", record.Alive)).Wire); len(refused) != 1 || refused[0].Reason != "quarantined" {
				t.Errorf("%s takes what it signs: %v", n.Name, refused)
			}
		}
		for _, n := range []*node{b, c} {
			if n.registry.faults(t, evil.ID)["fork"] == 0 {
				t.Errorf("the registry of %s was not told", n.Name)
			}
		}
		// It is told once, not for ever.
		posts := w.posts()
		wait(10 * time.Minute)
		if n := w.posts() - posts; n > 3 {
			t.Errorf("%d more requests", n)
		}
	})
}

func TestTake_AFalseProofConvictsNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newNet(t)
		a, b, evil := w.start("a"), w.start("b"), w.start("evil")
		run(t, b)
		wait(time.Second)
		var none record.Tree
		one, two := a.Sign(t, a.Head(&none)), a.Sign(t, a.Head(&none)) // of two versions
		forged := func(key *recordtest.Portal) (out [2]*record.Record) {
			a.Seq++
			for i := range out {
				h := a.Head(&none)
				h.Seq, h.Prev = a.Seq, record.Hash{byte(i)}
				a.Seq--
				r, err := record.Sign(recordtest.Network, h, key.Op)
				if err != nil {
					t.Fatal(err)
				}
				out[i] = r
			}
			if bytes.Compare(out[0].Hash[:], out[1].Hash[:]) > 0 {
				out[0], out[1] = out[1], out[0]
			}
			return out
		}
		by := forged(evil.Portal)
		for name, p := range map[string][2]*record.Record{"two versions": {one, two}, "the same": {one, one}, "signed by another": by} {
			f := &record.Fork{Header: evil.Header(365 * recordtest.Day), Subject: a.ID, A: p[0].Wire, B: p[1].Wire}
			refused := b.takes(evil, evil.Sign(t, f).Wire)
			if len(refused) != 1 || refused[0].Reason == "known" || b.believes(a, "x").Reach != 0 {
				t.Errorf("%s: %v", name, refused)
			}
			if c, _ := b.replica.Quarantined(t.Context(), a.ID); c != nil {
				t.Fatalf("%s convicted", name)
			}
		}
		// A true one of this very portal: it says so and goes on working.
		own := [2]*record.Record{}
		b.Seq++
		for i := range own {
			h := b.Head(&none)
			h.Seq, h.Prev = b.Seq, record.Hash{byte(i)}
			b.Seq--
			own[i] = b.Sign(t, h)
		}
		if bytes.Compare(own[0].Hash[:], own[1].Hash[:]) > 0 {
			own[0], own[1] = own[1], own[0]
		}
		b.takes(evil, evil.Sign(t, &record.Fork{Header: evil.Header(365 * recordtest.Day), Subject: b.ID, A: own[0].Wire, B: own[1].Wire}).Wire)
		if c, _ := b.replica.Quarantined(t.Context(), b.ID); c != nil {
			t.Error("a portal shut itself out")
		}
	})
}

func TestAfter_HandsOnWhatIsShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newNet(t)
		a, b, out := w.start("a"), w.start("b"), w.start("out")
		run(t, b)
		wait(time.Second)
		for i := range 30 {
			b.takes(a, a.says(a.ID, fmt.Sprintf("%02x", i), record.Word{Agent: record.AgentTag{byte(i)}, Reach: record.Alive}).Wire)
		}
		b.takes(out, out.says(out.ID, "", about(out, "y", record.Alive)).Wire, out.says(a.ID, "", about(a, "x", record.Alive)).Wire)
		b.takes(a, a.says(out.ID, "", about(out, "y", record.Alive)).Wire)
		b.registry.Say(out.ID, federation.Decision{State: federation.Denied})
		read := func(after int64, limit int) (wires []string, last int64, more bool) {
			body, more, err := b.After(t.Context(), after, limit)
			if err != nil {
				t.Fatal(err)
			}
			for l := range bytes.Lines(body) {
				var x struct {
					N      int64
					Record json.RawMessage
				}
				if err := json.Unmarshal(l, &x); err != nil || x.N <= last {
					t.Fatal(err, string(l))
				}
				last = x.N
				wires = append(wires, string(x.Record))
			}
			return wires, last, more
		}
		all, last, more := read(0, 1000)
		if len(all) != 30 || more {
			t.Errorf("%d records, more %v", len(all), more)
		}
		var pieces []string
		for after, more := int64(0), true; more; {
			var page []string
			page, after, more = read(after, 7)
			if len(page) > 7 || more && len(page) == 0 {
				t.Fatalf("a page of %d", len(page))
			}
			pieces = append(pieces, page...)
		}
		if fmt.Sprint(pieces) != fmt.Sprint(all) {
			t.Errorf("%d records in pieces", len(pieces))
		}
		if rest, _, more := read(last, 1000); len(rest) != 0 || more {
			t.Errorf("after the last: %d, %v", len(rest), more)
		}
		time.Sleep(49 * time.Hour)
		if old, _, _ := read(0, 1000); len(old) != 0 {
			t.Errorf("%d that have expired", len(old))
		}
	})
}

func TestRun_SurvivesWhatAnEvilPortalAnswers(t *testing.T) {
	t.Parallel()
	junk := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 3000))
	for name, body := range map[string]string{
		"nothing": "", "a page": "<html>", "an object": "{}", "a list": "[[[[[[", "no record": `{"n":5}`, "null": `{"n":5,"record":null}`,
		"backwards": "{\"n\":5,\"record\":{}}\n{\"n\":4,\"record\":{}}", "below": `{"n":-1,"record":{}}`, "the last number": `{"n":9223372036854775807,"record":{}}`,
		"a number that is none": `{"n":1e99,"record":{}}`, "junk": `{"n":1,"record":{"k":"` + junk + `"}}`, "many": strings.Repeat("{\"n\":1,\"record\":{}}\n", 5000),
		"too long": strings.Repeat("x", 5<<20), "only line ends": strings.Repeat("\n", 100_000), "binary": "\x00\x01\xff",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newNet(t)
				a, b, evil := w.start("a"), w.start("b"), w.start("evil")
				a.lists("x")
				w.tamper["https://evil.example"] = func(ans *federation.Answer) {
					ans.Body = []byte(body)
					ans.Header.Set("Agentsite-More", "true")
				}
				run(t, a, b)
				wait(10 * time.Minute)
				if v := b.believes(a, "x"); v.Reach != record.Alive {
					t.Errorf("%+v", v)
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				if n := w.asked["https://evil.example"]; n > 40 {
					t.Errorf("asked %d times in ten minutes", n)
				}
				_ = evil
			})
		})
	}
}
