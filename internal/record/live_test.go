package record_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

func TestWords_ComeBackAsTheyWentIn(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 2, 300, record.MaxWords} {
		var list []record.Word
		for i := range n {
			w := record.Word{Agent: record.TagOf(fmt.Sprint("p1/", i)), Reach: record.Reach(1 + rnd.IntN(4)), Ago: time.Duration(rnd.IntN(2881)) * time.Minute, Called: rnd.IntN(2) == 0}
			if c := rnd.IntN(16); c > 0 {
				w.Within = time.Millisecond << c
			}
			list = append(list, w)
		}
		packed := record.PackWords(list)
		if packed.Len() != n {
			t.Fatalf("%d words became %d", n, packed.Len())
		}
		for _, w := range list {
			if got, ok := packed.Of(w.Agent); !ok || got != w {
				t.Fatalf("%+v came back as %+v, %v", w, got, ok)
			}
		}
		for range 100 {
			stranger := record.TagOf(fmt.Sprint("stranger", rnd.Uint64()))
			if w, ok := packed.Of(stranger); ok {
				t.Errorf("somebody spoke of a stranger: %+v", w)
			}
		}
	}
}

func TestPackWords_CutsToTheForm(t *testing.T) {
	t.Parallel()
	a := record.TagOf("a")
	for in, want := range map[record.Word]record.Word{
		{Agent: a, Reach: record.Alive, Ago: -time.Hour}:                              {Agent: a, Reach: record.Alive},
		{Agent: a, Reach: record.Alive, Ago: 90 * time.Second}:                        {Agent: a, Reach: record.Alive, Ago: time.Minute},
		{Agent: a, Reach: record.Alive, Ago: 1000 * time.Hour}:                        {Agent: a, Reach: record.Alive, Ago: record.MaxAgo},
		{Agent: a, Reach: record.Alive, Within: time.Microsecond}:                     {Agent: a, Reach: record.Alive, Within: 2 * time.Millisecond},
		{Agent: a, Reach: record.Alive, Within: 2 * time.Millisecond}:                 {Agent: a, Reach: record.Alive, Within: 2 * time.Millisecond},
		{Agent: a, Reach: record.Alive, Within: 2*time.Millisecond + 1}:               {Agent: a, Reach: record.Alive, Within: 4 * time.Millisecond},
		{Agent: a, Reach: record.Unreachable, Called: true, Within: 10 * time.Minute}: {Agent: a, Reach: record.Unreachable, Called: true, Within: time.Millisecond << 15},
	} {
		if got := record.PackWords([]record.Word{in}).At(0); got != want {
			t.Errorf("%+v became %+v, want %+v", in, got, want)
		}
	}
	twice := record.PackWords([]record.Word{{Agent: a, Reach: record.Alive}, {Agent: a, Reach: record.Unreachable}})
	if twice.Len() != 1 || twice.At(0).Reach != record.Unreachable {
		t.Errorf("of two words about one agent the first stayed: %+v", twice)
	}
}

func TestAgentTag_Shard(t *testing.T) {
	t.Parallel()
	tag := record.AgentTag{0x3f, 0xa1, 0x77}
	for digits, want := range []string{"", "3", "3f", "3fa"} {
		if got := tag.Shard(digits); got != want {
			t.Errorf("%d digits: %q, want %q", digits, got, want)
		}
	}
	key := record.AgentKey("p1/x")
	if tag := record.TagOf("p1/x"); !slices.Equal(tag[:], key[:len(tag)]) {
		t.Error("a tag is not how the key begins")
	}
}

func TestReach_Spelling(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"alive", "needs_auth", "wrong_protocol", "unreachable"} {
		if r := record.ReachOf(s); r == 0 || r.String() != s {
			t.Errorf("%s is %v", s, r)
		}
	}
	if record.ReachOf("unknown") != 0 || record.ReachOf("") != 0 || record.Reach(9).String() != "unknown" {
		t.Error("what is no state has a value")
	}
}

func TestGate_NewerWordsReplaceThoseOfTheirShardOnly(t *testing.T) {
	t.Parallel()
	p := recordtest.NewPortal("one")
	g, mem := recordtest.Gate(t, p)
	say := func(shard string, tag record.AgentTag) *record.Record {
		r := p.Sign(t, &record.Live{Header: p.Header(48 * hour), Subject: p.ID, Shard: shard, Words: record.PackWords([]record.Word{{Agent: tag, Reach: record.Alive}})})
		if _, fresh, err := g.Admit(t.Context(), r.Wire, time.UnixMilli(p.Now)); err != nil || !fresh {
			t.Fatal(fresh, err)
		}
		return r
	}
	first := say("1", record.AgentTag{0x10})
	other := say("2", record.AgentTag{0x20})
	second := say("1", record.AgentTag{0x11})
	if _, _, err := g.Admit(t.Context(), first.Wire, time.UnixMilli(p.Now)); record.ReasonOf(err) != record.Stale {
		t.Errorf("an older word: %v", err)
	}
	for _, r := range []*record.Record{other, second} {
		if held, _ := mem.Held(t.Context(), r.Slot()); string(held) != string(r.Wire) {
			t.Errorf("%s is not held", r.Slot().About)
		}
	}
}
