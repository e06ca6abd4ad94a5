package record_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

func TestValidOrigin(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"https://a.example", "https://a.example:8443", "https://192.0.2.1", "https://[2001:db8::1]:1", "http://localhost", "http://127.0.0.1:8080", "http://[::1]:8080", "http://x.localhost:1", "https://xn--bcher-kva.example", "https://a1"} {
		if !record.ValidOrigin(s) {
			t.Errorf("%q is refused", s)
		}
	}
	for _, s := range []string{"", "a.example", "//a.example", "https://", "https://a.example/", "https://a.example/x", "https://a.example?", "https://a.example?x", "https://a.example#", "https://A.example", "https://a.example:443",
		"https://a.example:", "https://a.example:0", "https://a.example:65536", "https://a.example:08443", "https://u@a.example", "https://u:p@a.example", "http://a.example", "http://localhost:80", "ftp://a.example", "HTTPS://a.example",
		"https://a..example", "https://.a", "https://a.", "https://-a.example", "https://a-.example", "https://a_b.example", "https://bücher.example", "https://a%2eexample", "https://a.example\\x", "https://a b", " https://a.example", "https://a.example\n",
		"https://127.1", "https://0x7f000001", "https://0177.0.0.1", "https://2130706433", "https://[::ffff:127.0.0.1]", "https://[fe80::1%25eth0]", "https://[2001:DB8::1]", "https://[2001:db8:0::1]", "https://1.2.3.4.5", "https://a.0x1",
		"https://" + strings.Repeat("a", 64) + ".example", "https://" + strings.Repeat("a.", 130) + "example", "javascript:alert(1)", "https:a.example"} {
		if record.ValidOrigin(s) {
			t.Errorf("%q is an origin", s)
		}
	}
}

func TestContact_HasAnOrigin(t *testing.T) {
	t.Parallel()
	p := recordtest.NewPortal("one")
	for want, c := range map[string]record.Contact{
		"https://a.example":        {Host: "a.example", Port: 443},
		"https://a.example:80":     {Host: "a.example", Port: 80},
		"https://[2001:db8::1]:85": {Host: "2001:db8::1", Port: 85},
		"http://127.0.0.1:443":     {Host: "127.0.0.1", Port: 443},
		"http://[::1]":             {Host: "::1", Port: 80},
	} {
		c.Header, c.CardSeq = p.Header(hour), 7
		r := p.Sign(t, &c)
		back, err := record.Open(recordtest.Network, r.Wire)
		if err != nil {
			t.Fatal(err)
		}
		got := back.Body.(*record.Contact)
		if *got != c || got.Origin() != want || !record.ValidOrigin(want) || len(r.Wire) > 350 {
			t.Errorf("%+v came back as %+v, %s", c, got, got.Origin())
		}
	}
	long := record.Contact{Header: p.Header(hour), CardSeq: 1, Host: strings.Repeat("a.", 97) + "example", Port: 1}
	if _, err := record.Sign(recordtest.Network, &long, p.Op); record.ReasonOf(err) != record.BadField {
		t.Errorf("a host of 201 bytes: %v", err)
	}
}

// What cannot be admitted anywhere is not signed either.
func TestSign_RefusesWhatOthersWould(t *testing.T) {
	t.Parallel()
	p := recordtest.NewPortal("one")
	for want, change := range map[record.Reason]func(a *record.Agent){
		record.TooLong:  func(a *record.Agent) { a.Expires = a.Issued + 31*day },
		record.BadField: func(a *record.Agent) { a.Title = "\xff" },
		record.TooLarge: func(a *record.Agent) {
			for i := range 32 {
				a.Skills = append(a.Skills, record.Skill{ID: fmt.Sprint(i), Name: "s", Description: strings.Repeat("x", 300)})
			}
		},
	} {
		a := p.Agent("x")
		change(a)
		if _, err := record.Sign(recordtest.Network, a, p.Op); record.ReasonOf(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := record.Sign("NO", p.Agent("x"), p.Op); err == nil {
		t.Error("signed for a network that has no name")
	}
	c := &record.Contact{Header: p.Header(49 * hour), CardSeq: 1, Host: "a.example", Port: 1}
	if _, err := record.Sign(recordtest.Network, c, p.Op); record.ReasonOf(err) != record.TooLong {
		t.Errorf("a contact for 49 hours: %v", err)
	}
}

func TestOpen_OwnsItsBytes(t *testing.T) {
	t.Parallel()
	p := recordtest.NewPortal("one")
	for _, body := range []record.Body{p.Agent("x"), &record.Contact{Header: p.Header(hour), CardSeq: 1, Host: "a.example", Port: 1}} {
		wire := p.Sign(t, body).Wire
		want := string(wire)
		r, err := record.Open(recordtest.Network, wire)
		if err != nil {
			t.Fatal(err)
		}
		clear(wire) // a reader's buffer is used again
		if string(r.Wire) != want {
			t.Errorf("%s changed with the buffer it came in", r.Type)
		}
	}
}

func TestBloom_NeverDeniesAndSeldomLies(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 100, 20_000} {
		b := record.NewBloom(n)
		var in []string
		for range n {
			in = append(in, fmt.Sprintf("Term %x", rnd.Uint64()))
			b.Add(in[len(in)-1])
		}
		for _, s := range in {
			if !b.Has(strings.ToUpper(s)) {
				t.Fatalf("%d terms: %q is denied", n, s)
			}
		}
		wrong := 0
		for range 10_000 {
			if b.Has(fmt.Sprintf("other %x", rnd.Uint64())) {
				wrong++
			}
		}
		if n > 1 && wrong > 150 || len(b) > record.MaxBloom {
			t.Errorf("%d terms in %d bytes: wrong %d times in 10,000", n, len(b), wrong)
		}
		text, err := b.MarshalText()
		var back record.Bloom
		if err != nil || back.UnmarshalText(text) != nil || string(back) != string(b) {
			t.Error("the filter does not come back")
		}
	}
	if (record.Bloom{}).Has("x") || len(record.NewBloom(1<<30)) != record.MaxBloom {
		t.Error("the smallest or the largest filter")
	}
}
