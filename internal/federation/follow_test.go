package federation_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

func following(how string) federation.RuleChange { return federation.RuleChange{Follow: &how} }

// says has a portal say what it thinks of another, as it arrives from anybody.
func (w *world) says(by *recordtest.Portal, of record.PortalID, verdict, reason string) {
	w.t.Helper()
	gate, err := record.NewGate(recordtest.Network, w.replica)
	if err != nil {
		w.t.Fatal(err)
	}
	by.Now = time.Now().UnixMilli()
	for _, r := range []*record.Record{by.Sign(w.t, by.Card()), by.Sign(w.t, &record.Attest{Header: by.Header(recordtest.Day), Subject: of, Verdict: verdict, Reason: reason})} {
		if _, _, err := gate.Admit(w.t.Context(), r.Wire, time.Now()); err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestFollow_ShutsOutWhomTheListBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		list, spam, friend, odd := w.learn("list"), w.learn("spam"), w.learn("friend"), w.learn("odd")
		w.rule(friend, stand(federation.Pin))
		for _, p := range []*recordtest.Portal{spam, friend} {
			w.says(list, p.ID, record.Block, "sends spam")
		}
		w.says(list, odd.ID, record.Warn, "odd")
		w.says(list, portalAt("home").ID, record.Block, "")
		stop := w.runs()
		time.Sleep(time.Minute)
		w.state(spam, federation.Active, "") // nobody is followed unasked

		w.rule(list, following(federation.FollowWarn))
		w.state(spam, federation.Active, "")
		if p, _ := w.peers.Portal(t.Context(), string(spam.ID)); len(p.Said) != 1 || p.Said[0] != (federation.Said{Host: "list.example", By: list.ID, Verdict: record.Block, Reason: "sends spam"}) {
			t.Errorf("%+v", p.Said)
		}

		w.rule(list, following(federation.FollowBlock))
		w.state(spam, federation.Denied, "It is on the list of list.example, which this portal follows: \"sends spam\". Allow it")
		if d := w.decide(spam); d.In || d.Show || d.Take || d.Call || d.Out || !d.Keep {
			t.Errorf("%+v", d)
		}
		w.state(friend, federation.Active, "")
		w.state(odd, federation.Active, "")
		if d := w.decide(portalAt("home")); !d.In || !d.Show {
			t.Error("it shuts this portal out of itself")
		}
		if p, err := w.peers.Profile(t.Context(), false, string(odd.ID)); err != nil || p.Said != nil {
			t.Errorf("everybody reads what lists say: %v %+v", err, p.Said)
		}
		if m := w.peers.Map(t.Context()); slices.ContainsFunc(m.Portals, func(p federation.Peer) bool { return p.ID == spam.ID }) {
			t.Error("it is on the map")
		}

		w.rule(spam, stand(federation.Allow))
		w.state(spam, federation.Active, "")
		w.rule(spam, stand(""))
		w.state(spam, federation.Denied, "list.example")
		w.says(list, spam.ID, record.Vouch, "it is clean now")
		time.Sleep(time.Minute)
		w.state(spam, federation.Active, "")
		w.says(list, spam.ID, record.Block, "")
		time.Sleep(time.Minute)
		w.state(spam, federation.Denied, "which this portal follows. Allow it")

		w.rule(list, following(""))
		w.state(spam, federation.Active, "")
		w.rule(list, following(federation.FollowBlock))
		w.rule(list, stand(federation.Deny)) // ends the subscription, for good
		w.state(spam, federation.Active, "")
		w.rule(list, stand(""))
		w.state(spam, federation.Active, "")
		w.says(list, spam.ID, record.Block, "") // what it said before was dropped
		w.rule(list, following(federation.FollowBlock))
		w.state(spam, federation.Denied, "list.example")
		time.Sleep(25 * time.Hour) // the word has ended
		if p, _ := w.peers.Portal(t.Context(), string(spam.ID)); p.State == federation.Denied || p.Said != nil {
			t.Errorf("a word that has ended counts: %s", p.Reason)
		}
		stop()
		var acts []string
		for _, d := range w.store.decided {
			acts = append(acts, d.Act)
		}
		for _, act := range []string{"peer.subscribe", "peer.unsubscribe"} {
			if !slices.Contains(acts, act) {
				t.Errorf("%s is not among the decisions %v", act, acts)
			}
		}
	})
}

// Lists that are followed do not decide about each other, and one that lied is
// not heard.
func TestFollow_ListsDoNotDenyEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		a, b, p := w.learn("a"), w.learn("b"), w.learn("p")
		w.says(a, b.ID, record.Block, "")
		w.says(b, a.ID, record.Block, "")
		w.says(b, p.ID, record.Block, "")
		w.rule(a, following(federation.FollowBlock))
		w.state(b, federation.Denied, "a.example")
		w.rule(b, following(federation.FollowBlock))
		w.state(a, federation.Active, "")
		w.state(b, federation.Active, "")
		w.state(p, federation.Denied, "b.example")
		if err := w.peers.Forget(t.Context(), root, string(b.ID), ""); err != nil {
			t.Fatal(err)
		}
		w.state(p, federation.Active, "")
	})
}

// Many who speak of a portal must not keep a followed list from being heard; nor
// are lists without number followed.
func TestFollow_IsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		list, p := w.learn("list"), w.learn("p")
		for i := range 201 {
			w.says(portalAt(fmt.Sprint("voice", i)), p.ID, record.Vouch, "")
		}
		w.says(list, p.ID, record.Block, "")
		w.rule(list, following(federation.FollowBlock))
		w.state(p, federation.Denied, "list.example")
		for i := range 15 {
			w.rule(w.learn(fmt.Sprint("l", i)), following(federation.FollowWarn))
		}
		more := federation.FollowWarn
		if _, err := w.peers.SetRule(t.Context(), root, string(w.learn("more").ID), federation.RuleChange{Follow: &more}); !fault.Is(err, fault.Conflict) {
			t.Errorf("a 17th list: %v", err)
		}
		w.rule(list, following(federation.FollowWarn)) // one that is followed may change
		more = "shout"
		if _, err := w.peers.SetRule(t.Context(), root, string(list.ID), federation.RuleChange{Follow: &more}); !fault.Is(err, fault.Invalid) {
			t.Errorf("a word that means nothing: %v", err)
		}
		w.peers.Heard("https://nobody.example", "")
		more = federation.FollowBlock
		if _, err := w.peers.SetRule(t.Context(), root, "nobody.example", federation.RuleChange{Follow: &more}); !fault.Is(err, fault.Conflict) {
			t.Errorf("an address: %v", err)
		}
	})
}
