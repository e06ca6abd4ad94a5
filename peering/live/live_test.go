package live_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/internal/record"
	"agentsite/peering/live"
)

// Two steps of everybody, and what they send each other.
const soon = 21 * time.Second

func wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestRun_TheWordOfAnAgentsPortalReachesAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newNet(t)
		a, b, c := w.start("a"), w.start("b"), w.start("c")
		a.lists("x", "y")
		run(t, a, b, c)
		wait(soon)
		for _, n := range []*node{b, c} {
			v := n.believes(a, "x")
			if v.Reach != record.Alive || v.Reason != "Its portal says that it is alive." || len(v.Reports) != 1 || !v.Reports[0].Home {
				t.Errorf("%s believes %+v", n.Name, v)
			}
			if v := n.believes(a, "z"); v.Reach != 0 {
				t.Errorf("%s believes something of an agent that is not there: %+v", n.Name, v)
			}
		}
		a.sees(a, "x", record.Unreachable)
		wait(11 * time.Second) // a step: all are told at once
		for _, n := range []*node{b, c} {
			if v := n.believes(a, "x"); v.Reach != record.Unreachable {
				t.Errorf("%s still believes %q", n.Name, v.Reason)
			}
			if v := n.believes(a, "y"); v.Reach != record.Alive {
				t.Errorf("%s believes of the other agent %q", n.Name, v.Reason)
			}
		}
		wait(soon)
		if len(b.changed[a.ID]) == 0 {
			t.Error("nobody was told that the agents changed")
		}
		if len(a.changed[a.ID]) != 0 {
			t.Error("a portal was told that its own agents changed")
		}
	})
}

func TestRun_SaysNothingNewForHours(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newNet(t)
		a, b := w.start("a"), w.start("b")
		a.lists("x")
		run(t, a, b)
		wait(soon)
		said := a.spoken(a.ID)
		if len(said) != 1 || said[0].Seq != 1 {
			t.Fatalf("%d records", len(said))
		}
		posts := w.posts()
		wait(11 * time.Hour)
		if again := a.spoken(a.ID); again[0].Hash != said[0].Hash {
			t.Errorf("it was said anew as %d though nothing changed", again[0].Seq)
		}
		if w.posts() != posts {
			t.Errorf("%d requests though nothing changed", w.posts()-posts)
		}
		wait(2 * time.Hour)
		if again := a.spoken(a.ID); again[0].Hash == said[0].Hash {
			t.Error("it was not renewed")
		}
		wait(60 * time.Hour)
		if v := b.believes(a, "x"); v.Reach != record.Alive {
			t.Errorf("days later: %+v", v)
		}
	})
}

func TestRun_ChangesThatNobodyWaitsForAreBatched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newNet(t)
		a, b := w.start("a"), w.start("b")
		a.lists("x")
		a.own[0].Reach = record.NeedsAuth
		run(t, a, b)
		wait(soon)
		before := a.spoken(a.ID)
		a.sees(a, "x", record.WrongProtocol)
		wait(9 * time.Minute)
		if said := a.spoken(a.ID); said[0].Hash != before[0].Hash {
			t.Error("said anew within 9 minutes")
		}
		wait(3 * time.Minute)
		if v := b.believes(a, "x"); v.Reach != record.WrongProtocol {
			t.Errorf("after 12 minutes: %+v", v)
		}
	})
}

func TestRun_AnAgentThatComesAndGoesIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newNet(t)
		a, b := w.start("a"), w.start("b")
		a.lists("x")
		run(t, a, b)
		wait(soon)
		before, n := a.spoken(a.ID)[0].Hash, 0
		for i := range 60 { // half an hour
			a.sees(a, "x", []record.Reach{record.Unreachable, record.Alive}[i%2])
			wait(30 * time.Second)
			if now := a.spoken(a.ID)[0].Hash; now != before {
				before = now
				n++
			}
		}
		if n > 15 || n < 3 {
			t.Errorf("said %d times in half an hour", n)
		}
		wait(11 * time.Minute)
		if v := b.believes(a, "x"); v.Reach != record.Alive {
			t.Errorf("in the end: %+v", v)
		}
	})
}

func TestRun_ThousandsOfAgentsAreSaidInShards(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newNet(t)
		a, b := w.start("a"), w.start("b")
		var ids []string
		for i := range 10_000 {
			ids = append(ids, fmt.Sprint("agent", i))
		}
		a.lists(ids...)
		run(t, a, b)
		wait(2 * soon)
		said := a.spoken(a.ID)
		size := 0
		for _, r := range said {
			size += len(r.Wire)
		}
		if len(said) < 16 || len(said) > 256 || size > 10_000*26+len(said)*600 {
			t.Errorf("%d records, %d bytes", len(said), size)
		}
		for _, id := range ids {
			if v := b.believes(a, id); v.Reach != record.Alive {
				t.Fatalf("%s: %+v", id, v)
			}
		}
		a.sees(a, "agent77", record.Unreachable)
		wait(soon)
		before := map[record.Hash]bool{}
		for _, r := range said {
			before[r.Hash] = true
		}
		fresh := 0
		for _, r := range a.spoken(a.ID) {
			if !before[r.Hash] {
				fresh++
			}
		}
		if fresh != 1 || b.believes(a, "agent77").Reach != record.Unreachable {
			t.Errorf("%d records for one change: %+v", fresh, b.believes(a, "agent77"))
		}
	})
}

func TestRun_TakesBackWhatIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newNet(t)
		a, b := w.start("a"), w.start("b")
		a.lists("x", "y")
		run(t, a, b)
		wait(soon)
		a.lists("y")
		wait(25 * time.Minute)
		if v := b.believes(a, "x"); v.Reach != 0 {
			t.Errorf("an agent that is gone: %+v", v)
		}
		if v := b.believes(a, "y"); v.Reach != record.Alive {
			t.Errorf("one that is not: %+v", v)
		}
	})
}

func TestRun_RestartForgetsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newNet(t)
		a, b := w.start("a"), w.start("b")
		a.lists("x")
		b.lists("z")
		a.Observe(live.Seen{Subject: b.ID, Agent: record.AgentID(b.ID, "z"), Reach: record.Unreachable, At: time.Now(), Called: true})
		run(t, a)
		wait(soon)
		if n := len(a.spoken(a.ID)); n != 2 {
			t.Fatalf("%d records", n)
		}
		before := map[record.Hash]bool{}
		for _, r := range a.spoken(a.ID) {
			before[r.Hash] = true
		}
		a.open()
		run(t, a)
		wait(5 * time.Minute)
		for _, r := range a.spoken(a.ID) {
			if !before[r.Hash] {
				t.Errorf("%s was said again as %d", r.Slot().About, r.Seq)
			}
		}
		if v := a.believes(b, "z"); v.Reach != record.Unreachable || len(v.Reports) == 0 || !v.Reports[0].Own || !v.Reports[0].Called {
			t.Errorf("what it saw before: %+v", v)
		}
	})
}

func TestRun_CallsElsewhereAreSaidAndDisputed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newNet(t)
		a, b, c := w.start("a"), w.start("b"), w.start("c")
		a.lists("x")
		run(t, a, b, c)
		wait(soon)
		b.sees(a, "x", record.Unreachable)
		if v := b.believes(a, "x"); v.Reach != record.Unreachable || v.Reason != "This portal could not reach it; its portal says that it is alive." {
			t.Errorf("who was there: %+v", v)
		}
		// The report of b is not urgent: a and c pull it from a random portal about once a minute.
		for range 60 {
			if c.believes(a, "x").Disputed && len(a.believes(a, "x").Reports) == 2 {
				break
			}
			wait(time.Minute)
		}
		v := c.believes(a, "x")
		if v.Reach != record.Alive || !v.Disputed || v.Reason != "Its portal says that it is alive; 1 of 1 others could not reach it." {
			t.Errorf("who was not: %+v", v)
		}
		if v := a.believes(a, "x"); len(v.Reports) != 2 || !has(v.Reason, "1 of 1 others could not reach it") {
			t.Errorf("the agent's own portal: %+v", v)
		}
		wait(10 * time.Minute)
		if v := b.believes(a, "x"); v.Reach != record.Unreachable {
			t.Errorf("within the hour it is believed at home: %+v", v)
		}
		wait(50 * time.Minute)
		if v := b.believes(a, "x"); v.Reach != record.Alive {
			t.Errorf("past it is not: %+v", v)
		}
		if n := len(b.changed[a.ID]); n == 0 {
			t.Error("nobody was told")
		}
	})
}

func TestRun_WordsAreHandedOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newNet(t)
		a, b := w.start("a"), w.start("b")
		a.lists("x")
		run(t, a, b)
		wait(soon)
		w.away(a, true)
		c := w.start("c")
		c.meet(a) // its card, but nobody reaches it
		run(t, c)
		wait(5 * time.Minute)
		if v := c.believes(a, "x"); v.Reach != record.Alive {
			t.Errorf("%+v", v)
		}
	})
}

func TestRun_ReadsAnewWhoLostItsReplica(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newNet(t)
		a, b := w.start("a"), w.start("b")
		a.lists("x")
		for i := range 20 { // so that numbers are high
			a.Observe(live.Seen{Subject: b.ID, Agent: record.AgentID(b.ID, fmt.Sprint(i)), Reach: record.Alive, At: time.Now()})
		}
		var tree record.Tree
		head := func() {
			r := a.Sign(t, a.Head(&tree))
			a.admit(r.Wire)
			b.admit(r.Wire)
			b.registry.Synced(a.ID, headRow(r), 0, false, time.Time{})
		}
		head()
		w.deaf = true
		run(t, b)
		ctx, stop := within(t)
		done := make(chan error)
		go func() { done <- a.Run(ctx, nil) }()
		wait(10 * time.Minute)
		stop()
		<-done
		a.replica = newReplica()
		a.registry.replica = a.replica
		a.Portal.Now = time.Now().UnixMilli()
		a.Portal.Epoch, a.Portal.Seq = a.Portal.Now, 0
		a.admit2(a.card)
		a.admit2(b.card)
		a.own[0].Reach, a.own[0].At = record.NeedsAuth, time.Now() // others are told of it in their own time
		a.open()
		head()
		run(t, a)
		wait(10 * time.Minute)
		if v := b.believes(a, "x"); v.Reach != record.NeedsAuth {
			t.Errorf("%+v", v)
		}
	})
}

func TestRun_ABackupThatIsRestoredConvictsNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newNet(t)
		a, b := w.start("a"), w.start("b")
		a.lists("x")
		ctx, stop := within(t)
		done := make(chan error, 1)
		go func() { done <- a.Run(ctx, nil) }()
		run(t, b)
		wait(soon)
		backup := a.spoken(a.ID)
		if len(backup) != 1 {
			t.Fatalf("%d records before the backup", len(backup))
		}
		for _, r := range []record.Reach{record.Unreachable, record.NeedsAuth, record.WrongProtocol} { // told after the backup
			wait(12 * time.Minute)
			a.sees(a, "x", r)
		}
		wait(12 * time.Minute)
		if v := b.believes(a, "x"); v.Reach != record.WrongProtocol {
			t.Fatalf("before: %+v", v)
		}
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		// The replica is what it was at the time of the backup.
		a.replica = newReplica()
		a.admit2(a.card)
		a.admit2(b.card)
		a.admit2(backup[0].Wire)
		a.lists("x")
		a.open()
		run(t, a)
		for _, r := range []record.Reach{record.Unreachable, record.Alive, record.NeedsAuth} {
			wait(12 * time.Minute)
			a.sees(a, "x", r)
		}
		wait(12 * time.Minute)
		if c, _ := b.replica.Quarantined(t.Context(), a.ID); c != nil {
			t.Errorf("it signed two records of version %d.%d in %s", c.Epoch, c.Seq, c.Slot.About)
		}
		if v := b.believes(a, "x"); v.Reach != record.NeedsAuth {
			t.Errorf("after: %+v", v)
		}
	})
}
