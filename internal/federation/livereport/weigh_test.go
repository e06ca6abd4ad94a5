package livereport_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentsite/internal/federation"
	"agentsite/internal/federation/livereport"
	"agentsite/internal/record"
)

var weighed = time.Date(2026, time.November, 22, 12, 0, 0, 0, time.UTC)

// voice is what the portal of that name says, so many minutes ago.
func voice(name string, r record.Reach, minutes int, weight string) livereport.Report {
	v := livereport.Report{Portal: record.PortalID("p1" + name), Host: name + ".example", Reach: r, At: weighed.Add(-time.Duration(minutes) * time.Minute)}
	for w := range strings.FieldsSeq(weight) {
		switch w {
		case "own":
			v.Own = true
		case "home":
			v.Home = true
		case "pinned":
			v.Pinned = true
		case "proved":
			v.Proved = true
		}
	}
	return v
}

const (
	alive  = record.Alive
	needs  = record.NeedsAuth
	gone   = record.Unreachable
	strict = record.WrongProtocol
)

func TestWeigh(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		voices   []livereport.Report
		want     record.Reach
		reason   string
		disputed bool
	}{
		"nobody":                  {nil, 0, "No trusted portal has reached it recently.", false},
		"only who does not count": {[]livereport.Report{voice("a", alive, 0, ""), voice("b", alive, 0, "")}, 0, "No trusted portal has reached it recently.", false},
		"its portal":              {[]livereport.Report{voice("home", alive, 600, "home")}, alive, "Its portal says that it is alive.", false},
		"who was there against all": {[]livereport.Report{voice("me", gone, 9, "own"), voice("home", alive, 0, "home proved"), voice("a", alive, 0, "pinned"), voice("b", alive, 0, "proved")},
			gone, "This portal could not reach it; its portal says that it is alive; 1 of 1 others reached it.", true},
		"who was there long ago": {[]livereport.Report{voice("me", gone, 61, "own"), voice("home", alive, 300, "home")}, alive, "Its portal says that it is alive.", false},
		"a pinned portal before its own": {[]livereport.Report{voice("pin", gone, 20, "pinned"), voice("home", alive, 1, "home")},
			gone, "pin.example, which this portal trusts, could not reach it; its portal says that it is alive.", true},
		"a pinned portal long ago": {[]livereport.Report{voice("pin", gone, 120, "pinned"), voice("home", alive, 1, "home")}, alive, "Its portal says that it is alive.", false},
		"its portal and others against it": {[]livereport.Report{voice("home", alive, 1, "home"), voice("a", gone, 5, "proved"), voice("b", gone, 5, "proved"), voice("c", alive, 5, "proved")},
			alive, "Its portal says that it is alive; 2 of 3 others could not reach it.", true},
		"others before nobody": {[]livereport.Report{voice("a", gone, 5, "proved"), voice("b", alive, 5, "proved"), voice("c", alive, 5, "proved")},
			alive, "2 of 3 other portals reached it.", true},
		"half of the others":   {[]livereport.Report{voice("a", gone, 5, "proved"), voice("b", alive, 50, "proved")}, alive, "1 of 2 other portals reached it.", true},
		"one other":            {[]livereport.Report{voice("a", needs, 5, "proved")}, needs, "a.example was asked for a credential.", false},
		"others of long ago":   {[]livereport.Report{voice("a", strict, 900, "proved")}, strict, "a.example got an answer in another protocol.", false},
		"from the future":      {[]livereport.Report{voice("home", gone, -6, "home"), voice("a", alive, 1, "proved")}, alive, "a.example reached it.", false},
		"a clock that is fast": {[]livereport.Report{voice("home", gone, -4, "home")}, gone, "Its portal says that it cannot be reached.", false},
		"no state at all":      {[]livereport.Report{voice("home", 0, 1, "home"), voice("b", 9, 1, "home")}, 0, "No trusted portal has reached it recently.", false},
		"of two words of one portal the newer": {[]livereport.Report{voice("home", gone, 1, "home"), voice("home", alive, 2, "home")},
			gone, "Its portal says that it cannot be reached.", false},
	} {
		got := livereport.Weigh(c.voices, weighed)
		if got.Reach != c.want || got.Reason != c.reason || got.Disputed != c.disputed {
			t.Errorf("%s: %v, %q, disputed %v; want %v, %q, %v", name, got.Reach, got.Reason, got.Disputed, c.want, c.reason, c.disputed)
		}
		if got.Reach != 0 && (got.At.IsZero() || got.At.After(weighed)) {
			t.Errorf("%s: decided at %v", name, got.At)
		}
	}
}

func TestWeigh_OneSiteHasOneVoice(t *testing.T) {
	t.Parallel()
	honest := []livereport.Report{voice("a", alive, 5, "proved"), voice("b", alive, 5, "proved")}
	for name, hosts := range map[string]func(i int) string{
		"names below one domain":  func(i int) string { return fmt.Sprintf("x%d.liar.co.uk", i) },
		"ports of one host":       func(i int) string { return fmt.Sprintf("liar.net:%d", 1000+i) },
		"addresses of one net":    func(i int) string { return fmt.Sprintf("203.0.113.%d", i) },
		"addresses of one net 6":  func(i int) string { return fmt.Sprintf("[2001:db8::%x]:8443", i) },
		"names below the portals": func(i int) string { return fmt.Sprintf("x%d.home.example", i) },
	} {
		list := append(slices.Clone(honest), voice("x", 0, 0, ""))
		for i := range 50 {
			v := voice(fmt.Sprint("liar", i), gone, 0, "proved")
			v.Host = hosts(i)
			list = append(list, v)
		}
		if got := livereport.Weigh(list, weighed); got.Reach != alive {
			t.Errorf("%s outweigh two portals: %s", name, got.Reason)
		}
	}
	// Those of the agent's own portal are no others at all.
	v := voice("sock", alive, 0, "proved")
	v.Host = "sock.home.example"
	got := livereport.Weigh([]livereport.Report{voice("home", alive, 1, "home"), v, voice("a", gone, 5, "proved")}, weighed)
	if !strings.Contains(got.Reason, "could not reach it") || strings.Contains(got.Reason, "of 2") && !strings.Contains(got.Reason, "example") {
		t.Error(got.Reason)
	}
}

func TestSiteOf(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"a.example.com": "example.com", "example.com:8443": "example.com", "a.b.example.co.uk": "example.co.uk", "ada.github.io": "ada.github.io",
		"192.0.2.7:80": "192.0.2.0/24", "[2001:db8:1:2::3]:9": "2001:db8:1::/48", "127.0.0.1:8080": "127.0.0.1:8080", "[::1]:81": "::1:81",
		"localhost:1": "localhost:1", "x.localhost": "x.localhost:", "intranet": "intranet", "": "",
	} {
		if got := federation.SiteOf(host); got != want {
			t.Errorf("%s is of %s, want %s", host, got, want)
		}
	}
}

// drawVoices are voices of distinct portals with any weight but own and home,
// of which there is one each at most.
func drawVoices(t *rapid.T) []livereport.Report {
	n := rapid.IntRange(0, 12).Draw(t, "n")
	var list []livereport.Report
	for i := range n {
		weight := rapid.SampledFrom([]string{"", "proved", "proved", "pinned", "pinned proved"}).Draw(t, "weight")
		list = append(list, voice(fmt.Sprint("v", i), drawReach(t), rapid.IntRange(0, 120).Draw(t, "minutes"), weight))
	}
	if rapid.Bool().Draw(t, "home") {
		list = append(list, voice("home", drawReach(t), rapid.IntRange(0, 900).Draw(t, "minutes"), "home"))
	}
	if rapid.Bool().Draw(t, "own") {
		list = append(list, voice("me", drawReach(t), rapid.IntRange(0, 90).Draw(t, "minutes"), "own"))
	}
	return list
}

func drawReach(t *rapid.T) record.Reach {
	return record.Reach(rapid.IntRange(1, 4).Draw(t, "reach"))
}

func TestWeigh_NewcomersChangeNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := drawVoices(t)
		before := livereport.Weigh(list, weighed)
		for i := range rapid.IntRange(1, 300).Draw(t, "liars") {
			list = append(list, voice(fmt.Sprint("new", i), drawReach(t), 0, ""))
		}
		after := livereport.Weigh(list, weighed)
		if before.Reach != after.Reach || before.Reason != after.Reason || before.At != after.At || before.Disputed != after.Disputed {
			t.Fatalf("%q became %q", before.Reason, after.Reason)
		}
	})
}

func TestWeigh_OrderChangesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := drawVoices(t)
		for i := range list { // the same portal says several things too
			if rapid.Bool().Draw(t, "again") {
				v := list[i]
				v.Reach = drawReach(t)
				list = append(list, v)
			}
		}
		before := livereport.Weigh(list, weighed)
		rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		after := livereport.Weigh(list, weighed)
		if before.Reach != after.Reach || before.Reason != after.Reason || !slices.Equal(before.Reports, after.Reports) {
			t.Fatalf("%+v became %+v", before, after)
		}
	})
}

func TestWeigh_OwnFreshWordDecides(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := slices.DeleteFunc(drawVoices(t), func(v livereport.Report) bool { return v.Own })
		mine := voice("me", drawReach(t), rapid.IntRange(0, 10).Draw(t, "ago"), "own")
		if got := livereport.Weigh(append(list, mine), weighed); got.Reach != mine.Reach || !got.At.Equal(mine.At) {
			t.Fatalf("%v of %s", got.Reach, got.Reason)
		}
	})
}

// A better word never makes the verdict worse: nobody can be talked down by
// being spoken well of.
func TestWeigh_IsMonotone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := drawVoices(t)
		if len(list) == 0 {
			return
		}
		before := livereport.Weigh(list, weighed)
		i := rapid.IntRange(0, len(list)-1).Draw(t, "who")
		list[i].Reach = record.Reach(rapid.IntRange(1, int(list[i].Reach)).Draw(t, "better"))
		if after := livereport.Weigh(list, weighed); after.Reach > before.Reach {
			t.Fatalf("%s became %s", before.Reason, after.Reason)
		}
	})
}

// Fewer than half of the sites that count cannot turn the others' word, when
// the honest agree and nobody above them has spoken.
func TestWeigh_MinorityOfLiarsFails(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		truth := drawReach(t)
		honest := rapid.IntRange(1, 8).Draw(t, "honest")
		var list []livereport.Report
		for i := range honest {
			list = append(list, voice(fmt.Sprint("h", i), truth, rapid.IntRange(0, 60).Draw(t, "ago"), "proved"))
		}
		for i := range rapid.IntRange(0, honest-1).Draw(t, "liars") {
			list = append(list, voice(fmt.Sprint("l", i), drawReach(t), 0, "proved"))
		}
		if got := livereport.Weigh(list, weighed); got.Reach != truth {
			t.Fatalf("%v: %s", got.Reach, got.Reason)
		}
	})
}

func TestWeigh_LeavesItsInputAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := drawVoices(t)
		was := slices.Clone(list)
		livereport.Weigh(list, weighed)
		if !slices.Equal(list, was) {
			t.Fatal("the voices were changed")
		}
	})
}
