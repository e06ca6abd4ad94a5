package answer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"agentsite/internal/federation"
	"agentsite/internal/federation/archive"
	"agentsite/internal/hub"
	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
	"agentsite/peering/answer"
)

// answering is a portal that holds others, and answers for them.
type answering struct {
	*net
	self *portal
	*answer.Answerer
}

func newAnswering(t *testing.T) *answering {
	n := newNet(t)
	n.tier = record.TierIndex
	self := n.join("self", true)
	self.list("nothing") // of which its own directory knows nothing
	trees := archive.NewTrees(n.replica)
	return &answering{n, self, &answer.Answerer{Self: self.ID, Host: "self.example", Network: recordtest.Network, Replica: n.replica,
		Publisher: self, Directory: n.hub, Tiers: n, Archive: archive.New(recordtest.Network, self.ID, n.replica, n.registry, trees)}}
}

// Prove implements answer.Publisher.
func (p *portal) Prove(_ context.Context, _ record.PortalID, key record.Hash) *record.Proof {
	return p.tree.Prove(key)
}

// ask returns how many agents of each portal are in an answer, and that answer.
// Each must be covered by the head that the answer has of its portal.
func (a *answering) ask(asker record.PortalID, q federation.SearchQuestion) (map[string]int, *federation.SearchAnswer) {
	a.Helper()
	made, err := a.Answer(a.Context(), asker, q)
	if err != nil {
		a.Fatal(err)
	}
	got, err := federation.ParseSearchAnswer(made.Append(nil))
	if err != nil {
		a.Fatal(err)
	}
	heads := make(map[record.PortalID]*record.Head)
	for _, t := range append([]federation.Told{{Head: got.Head}}, got.Heads...) {
		r, err := record.Open(recordtest.Network, t.Head)
		if err != nil {
			a.Fatal(err)
		}
		if heads[r.Portal] != nil {
			a.Error("a head comes twice")
		}
		heads[r.Portal] = r.Body.(*record.Head)
		if r.Portal != a.self.ID {
			if c, err := record.Open(recordtest.Network, t.Card); err != nil || c.Portal != r.Portal || c.Type != record.TypeCard {
				a.Error("not with its card:", err)
			}
		}
	}
	per := make(map[string]int)
	for _, h := range got.Results {
		r, err := record.Open(recordtest.Network, h.Record)
		if err != nil {
			a.Fatal(err)
		}
		p, err := record.ParseProof(h.Proof)
		if err != nil || heads[r.Portal] == nil || !heads[r.Portal].Covers(r, p) || h.Score <= 0 {
			a.Errorf("an agent of %s is not shown to be listed: %v", r.Portal, err)
		}
		name := string(r.Portal)
		for _, p := range a.registry.Portals(a.Context()) {
			if p.ID == r.Portal {
				name = strings.TrimSuffix(p.Host(), ".example")
			}
		}
		per[name]++
	}
	return per, got
}

func TestAnswerer_AnIndexAnswersForOthers(t *testing.T) {
	a := newAnswering(t)
	many := a.join("many", true)
	many.list(numbered("many-", 30)...)
	few, denied, asker := a.join("few", true), a.join("denied", true), a.join("asker", true)
	for _, name := range []string{"few-0", "few-1"} { // less is found in more words
		x := few.Agent(name)
		x.Name, x.Title, x.Description = name, "Title of "+name, "translates words, among much else that nobody looks for and that goes on for a while"
		few.sign(x)
	}
	few.list()
	few.net.Clear(few.ID)
	denied.list("denied-0")
	asker.list(numbered("asker-", 12)...)
	is := func(what string, got map[string]int, want string) {
		t.Helper()
		if fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", what, got, want)
		}
	}
	all := federation.SearchQuestion{Text: "translates", Of: federation.OfAll}
	got, answer := a.ask(asker.ID, all)
	// What nobody else fills is filled by those who have more than their share.
	is("all", got, "map[denied:1 few:2 many:17]")
	if answer.Total < 40 {
		t.Error("in all", answer.Total)
	}
	for i := 1; i < len(answer.Results); i++ {
		if answer.Results[i].Score > answer.Results[i-1].Score {
			t.Error("not the best first")
		}
	}
	// Of many that have something, each gets its share.
	for i := range 6 {
		a.join(fmt.Sprintf("p%d", i), true).list(numbered(fmt.Sprintf("p%d-", i), 6)...)
	}
	got, _ = a.ask(asker.ID, all)
	total := 0
	for name, n := range got {
		if total += n; n > 4 {
			t.Errorf("%d of %s", n, name)
		}
	}
	if total != federation.MaxFound {
		t.Error(total, "results")
	}
	all.Limit = 5
	got, _ = a.ask(asker.ID, all)
	is("of five each one", map[string]int{"n": len(got)}, "map[n:5]")
	all.Limit, all.Portals = 0, []string{"many.example"}
	got, _ = a.ask(asker.ID, all)
	is("of one portal", got, "map[many:20]")
	all.Portals = []string{"denied.example", "few.example"}
	a.registry.Say(denied.ID, federation.Decision{State: federation.Denied})
	got, _ = a.ask(asker.ID, all)
	is("with one denied", got, "map[few:2]")
	a.index.Put(hub.Agent{ID: "nothing", Name: "nothing", Title: "Title of nothing", Description: "translates words", Kind: hub.Link, Visibility: hub.Public})
	all.Portals = []string{"self.example"}
	got, _ = a.ask(asker.ID, all)
	is("of its own", got, "map[self:1]")
	all.Portals = []string{"denied.example", "few.example"}
	// While what a newer head covers is not here yet, nothing can be shown.
	few.keep(few.Sign(t, few.Head(&few.tree)))
	got, answer = a.ask(asker.ID, all)
	is("between two heads", got, "map[]")
	if len(answer.Heads) != 0 {
		t.Error("heads of which there is nothing")
	}
	few.list("few-2")
	got, _ = a.ask(asker.ID, all)
	is("after it", got, "map[few:3]")
	// Only an index answers for others.
	a.tier = record.TierReplica
	got, _ = a.ask(asker.ID, federation.SearchQuestion{Text: "translates", Of: federation.OfAll})
	is("a replica", got, "map[self:1]")
	for _, bad := range []federation.SearchQuestion{{Of: "some"}, {Portals: numbered("p", federation.MaxWanted+1)}} {
		if _, err := a.Answer(t.Context(), asker.ID, bad); err == nil {
			t.Errorf("%+v is answered", bad)
		}
	}
}

// TestAnswerer_AnIndexKeepsWithinTheSize answers with what fits, so that it is
// read at all.
func TestAnswerer_AnIndexKeepsWithinTheSize(t *testing.T) {
	a := newAnswering(t)
	p := a.join("long", true)
	for _, name := range numbered("long-", 20) {
		x := p.Agent(name)
		x.Name, x.Title, x.Description = name, "Title of "+name, "translates words"
		x.Skills = []record.Skill{{ID: "x", Name: "Skill"}}
		for range record.MaxExamples {
			x.Skills[0].Examples = append(x.Skills[0].Examples, strings.Repeat("x", record.MaxExample))
		}
		x.StatusNote, x.Status = strings.Repeat("y", record.MaxStatusNote), record.StatusDeprecated
		p.sign(x)
	}
	p.list("one")
	a.Clear(p.ID)
	a.Reconcile(t.Context())
	_, answer := a.ask("", federation.SearchQuestion{Text: "translates", Of: federation.OfAll})
	if n := len(answer.Append(nil)); n > federation.MaxIndexed+4096 || n < federation.MaxIndexed*9/10 || answer.Total < len(answer.Results)+2 {
		t.Errorf("%d results of %d in %d bytes", len(answer.Results), answer.Total, n)
	}
}

// numbered returns n names that begin with a prefix.
func numbered(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s%d", prefix, i)
	}
	return list
}
