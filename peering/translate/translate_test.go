package translate_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
	"agentsite/peering/translate"
)

const origin = "https://one.example"

func agent() hub.Agent {
	return hub.Agent{
		ID: "01JD0000000000000000000000", Name: "words", Title: "Words", Description: "Translates.\n\nAny text.", Kind: hub.A2A,
		Endpoint: "https://inside.example/secret-path", Config: json.RawMessage(`{"model":"hidden"}`), HasSecret: true,
		Skills:     []hub.Skill{{ID: "t", Name: "Translate", Description: "Any text.", Tags: []string{"nlp/translation", "deutsch", "C#", "über uns"}, Examples: []string{"Translate \"hello\""}}},
		Visibility: hub.Public, OwnerID: "01JOWNER", OwnerName: "ada", CoOwnerIDs: []string{"01JCOOWNER"}, Version: 3,
		InputModes: []string{"text/plain", "image/png"}, OutputModes: []string{"text/plain"}, Languages: []string{"fr", "de"},
		Publisher: "words.example", Limits: hub.Limits{Callers: hub.ListedCallers, Listed: []string{"grace"}}, EmbedOrigins: []string{"https://embeds.example"},
		Proof:  hub.Proof{State: hub.Proved, Method: hub.ProofToken, Origin: "https://inside.example", At: recordtest.Start.Add(-time.Hour)},
		Status: hub.Status{State: hub.Deprecated, Message: "Use words-2."}, Liveness: hub.Liveness{State: hub.Alive},
		CreatedAt: recordtest.Start.Add(-48 * time.Hour), UpdatedAt: recordtest.Start.Add(-24 * time.Hour),
	}
}

// signed is what other portals get of an agent: its record as they read it.
func signed(t testing.TB, a hub.Agent) (*record.Card, *record.Record, []string) {
	t.Helper()
	p := recordtest.NewPortal("one")
	r, cut := translate.Record(a, origin, recordtest.Start)
	r.Header = p.Header(30 * recordtest.Day)
	s, err := record.Sign(recordtest.Network, r, p.Op)
	if err != nil {
		t.Fatalf("%v\n%+v", err, r)
	}
	opened, err := record.Open(recordtest.Network, s.Wire)
	if err != nil {
		t.Fatal(err)
	}
	return p.Card(), opened, cut
}

func TestRecord_ComesBackAsTheAgent(t *testing.T) {
	t.Parallel()
	card, r, cut := signed(t, agent())
	got, err := translate.Agent(card, r.Body.(*record.Agent))
	if err != nil || cut != nil {
		t.Fatal(err, cut)
	}
	want := agent()
	want.ID, want.Portal = string(card.Portal)+"/01jd0000000000000000000000", "one.example"
	want.Endpoint, want.Config, want.HasSecret, want.OwnerID, want.CoOwnerIDs, want.Limits, want.EmbedOrigins = origin+"/agents/words/a2a", nil, false, "", nil, hub.Limits{}, nil
	want.OwnerName, want.Publisher, want.Version = "ada@one.example", "", int(r.Seq)
	want.InputModes, want.Languages = []string{"image/png", "text/plain"}, []string{"de", "fr"}
	want.Skills[0].Tags = []string{"nlp/translation", "deutsch", "c#", "über uns"}
	want.Proof.State, want.Proof.Publisher = hub.Claimed, "words.example"
	want.Liveness = hub.Liveness{State: hub.Unknown}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if caps := r.Body.(*record.Agent).Caps; !reflect.DeepEqual(caps, []string{"deutsch", "nlp/translation", "uber-uns"}) {
		t.Errorf("capabilities %q", caps)
	}
}

func TestRecord_TellsNothingPrivate(t *testing.T) {
	t.Parallel()
	a := agent()
	a.Proof = hub.Proof{State: hub.Unproven}
	_, r, _ := signed(t, a)
	payload, err := json.Marshal(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, private := range []string{"inside.example", "hidden", "01JOWNER", "01JCOOWNER", "grace", "embeds.example", "alive"} {
		if strings.Contains(string(payload), private) {
			t.Errorf("%s is in %s", private, payload)
		}
	}
}

func TestRecord_IsTheSameEachTime(t *testing.T) {
	t.Parallel()
	a, cutA := translate.Record(large(), origin, recordtest.Start)
	b, cutB := translate.Record(large(), origin, recordtest.Start.Add(time.Hour))
	if !reflect.DeepEqual(a, b) || !reflect.DeepEqual(cutA, cutB) {
		t.Error("an hour later the agent says something else")
	}
}

// large says as much as an agent may.
func large() hub.Agent {
	a := agent()
	a.Description = strings.Repeat("Many words make no sense. ", 160)[:4000]
	a.Skills = nil
	for i := range 32 {
		a.Skills = append(a.Skills, hub.Skill{ID: fmt.Sprint("skill-", i), Name: fmt.Sprint("Skill ", i), Description: strings.Repeat("It does this. ", 70), Tags: []string{fmt.Sprint("tag-", i)}, Examples: []string{"Do this, please"}})
	}
	return a
}

func TestRecord_SharesTheRoomAmongSkills(t *testing.T) {
	t.Parallel()
	_, rec, cut := signed(t, large())
	r := rec.Body.(*record.Agent)
	if len(r.Skills) != 32 || !strings.HasSuffix(r.Description, ". Many…") || len(r.Description) > 1024 || len(r.Description) < 980 {
		t.Errorf("%d skills, description %q", len(r.Skills), r.Description)
	}
	for _, s := range r.Skills {
		if len(s.Description) < 60 || !strings.HasSuffix(s.Description, "…") || len(s.Examples) > 0 {
			t.Errorf("a skill says %q, %q", s.Description, s.Examples)
		}
	}
	if text := strings.Join(cut, "; "); text != "the description is cut to 1024 bytes; examples of its skills are left out; descriptions of its skills are cut to "+fmt.Sprint(cutTo(cut))+" bytes" {
		t.Error(text)
	}
}

func TestRecord_SaysOnlyOfWhatIsThereThatItIsCut(t *testing.T) {
	t.Parallel()
	a := large()
	a.Description = "Short."
	for i := range a.Skills {
		a.Skills[i].Examples = nil
	}
	if _, cut := translate.Record(a, origin, recordtest.Start); len(cut) != 1 || cutTo(cut) == 0 {
		t.Errorf("%q", cut)
	}
}

func cutTo(cut []string) (n int) {
	fmt.Sscanf(cut[len(cut)-1], "descriptions of its skills are cut to %d bytes", &n)
	return n
}

// anyAgent draws an agent as the directory may hold one, at its worst.
func anyAgent(t *rapid.T) hub.Agent {
	text := func(most int) string {
		s := rapid.SampledFrom([]string{"a", `"`, "\\", "😀", "word ", "é", "e\u0301", "👩‍👩‍👧", "\n", "\u202e", "\u2028", "\xff", "🇩🇪", "\x01", "語"}).Draw(t, "text")
		r := []rune(strings.Repeat(s, rapid.SampledFrom([]int{0, 1, most / 3, most}).Draw(t, "times")))
		return strings.ToValidUTF8(string(r[:min(len(r), most)]), "?")
	}
	list := func(most int, one func(i int) string) []string {
		var out []string
		for i := range rapid.SampledFrom([]int{0, 1, most}).Draw(t, "many") {
			out = append(out, one(i))
		}
		return out
	}
	a := agent()
	a.Name = rapid.StringMatching(`[a-z][a-z0-9-]{1,39}`).Draw(t, "name")
	a.Title, a.Description = text(100), text(4000)
	a.Status.Message = text(300)
	a.InputModes = list(20, func(i int) string { return fmt.Sprintf("text/%02d", i) + strings.Repeat("x", 90) })
	a.OutputModes = list(20, func(i int) string { return fmt.Sprintf("image/%02d", i) + text(20) })
	a.Languages = list(20, func(i int) string { return fmt.Sprintf("de-x-%02d", i) })
	a.Publisher = text(255)
	a.Skills = nil
	for i := range rapid.SampledFrom([]int{0, 1, 7, 32}).Draw(t, "skills") {
		a.Skills = append(a.Skills, hub.Skill{ID: fmt.Sprint(text(95), i), Name: text(100), Description: text(1000),
			Tags:     list(10, func(j int) string { return fmt.Sprint(text(28), i, j) }),
			Examples: list(5, func(j int) string { return fmt.Sprint(text(298), j) })})
	}
	return a
}

func TestRecord_OfAnyAgentIsAdmitted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		a := anyAgent(rt)
		card, rec, _ := signed(t, a)
		r := rec.Body.(*record.Agent)
		if r.Name != a.Name || len(a.Skills) > 0 && len(r.Skills) == 0 || a.Description != "" && utf8.RuneCountInString(a.Description) > 3 && strings.HasPrefix(a.Description, "word") && r.Description == "" {
			rt.Errorf("lost: %+v", r)
		}
		ids := make(map[string]bool)
		for _, s := range r.Skills {
			if ids[s.ID] {
				rt.Errorf("the id %q is there twice", s.ID)
			}
			ids[s.ID] = true
		}
		back, err := translate.Agent(card, r)
		if err != nil {
			rt.Fatal(err)
		}
		bounded(rt, back)
	})
}

// bounded fails unless an agent is within what a registration may say.
func bounded(t interface{ Errorf(string, ...any) }, a hub.Agent) {
	runes := func(what, s string, least, most int) {
		if n := utf8.RuneCountInString(s); n < least || n > most || !utf8.ValidString(s) || strings.ContainsAny(s, "\x00\x01\u202e\u2066\r") {
			t.Errorf("%s is %q", what, s)
		}
	}
	runes("title", a.Title, 1, 100)
	runes("description", a.Description, 1, 4000)
	runes("note", a.Status.Message, 0, 300)
	if a.Visibility != hub.Public || a.Liveness.State != hub.Unknown || !a.Listable() || a.Publisher != "" || a.Proof.State == hub.Proved || a.Proof.State == hub.Hosted || a.OwnerID != "" || a.Icon != "" || a.HasSecret ||
		a.Endpoint != "" && a.Endpoint != origin+"/agents/"+a.Name+"/a2a" || a.Portal != "one.example" || a.OwnerName != "" && !strings.HasSuffix(a.OwnerName, "@one.example") {
		t.Errorf("%+v", a)
	}
	if len(a.Skills) > 32 || len(a.InputModes) > 20 || len(a.OutputModes) > 20 || len(a.Languages) > 20 {
		t.Errorf("%d skills, %d and %d media types, %d languages", len(a.Skills), len(a.InputModes), len(a.OutputModes), len(a.Languages))
	}
	ids := make(map[string]bool)
	for _, s := range a.Skills {
		runes("skill", s.Name, 1, 100)
		runes("skill's id", s.ID, 1, 100)
		runes("skill's text", s.Description, 0, 1000)
		if len(s.Tags) > 10 || len(s.Examples) > 5 || ids[s.ID] {
			t.Errorf("%+v", s)
		}
		ids[s.ID] = true
		for _, tag := range s.Tags {
			runes("tag", tag, 1, 32)
		}
		for _, e := range s.Examples {
			runes("example", e, 1, 300)
		}
	}
	if a.CreatedAt.IsZero() || a.UpdatedAt.Before(a.CreatedAt) || a.UpdatedAt.After(recordtest.Start) || a.Proof.At.After(recordtest.Start) {
		t.Errorf("registered %v, changed %v, proved %v", a.CreatedAt, a.UpdatedAt, a.Proof.At)
	}
}

func TestAgent_BelievesNothing(t *testing.T) {
	t.Parallel()
	p := recordtest.NewPortal("one")
	card := p.Card()
	for name, change := range map[string]func(r *record.Agent){
		"a door elsewhere":          func(r *record.Agent) { r.Endpoints[0].URL = "https://victim.example/agents/agent-x/a2a" },
		"another agent's door":      func(r *record.Agent) { r.Endpoints[0].URL = origin + "/agents/other/a2a" },
		"a kind of its own":         func(r *record.Agent) { r.Kind = "king" },
		"a proof of its own":        func(r *record.Agent) { r.Proof = &record.AgentProof{Way: "proved"} },
		"no title":                  func(r *record.Agent) { r.Title, r.Description = "", "" },
		"a title nobody sees":       func(r *record.Agent) { r.Title = "\u200b\u2060" },
		"orders nobody sees":        func(r *record.Agent) { r.Description = "a\U000e0041\U000e0042" },
		"registered long ago":       func(r *record.Agent) { r.Created, r.Updated = 1, 1 },
		"changed before registered": func(r *record.Agent) { r.Created, r.Updated = p.Now, p.Now-recordtest.Day },
		"a skill's id again":        func(r *record.Agent) { r.Skills = []record.Skill{{ID: "a", Name: "b"}, {ID: "a", Name: "c"}} },
		"a skill nobody sees":       func(r *record.Agent) { r.Skills = []record.Skill{{ID: "\u200b", Name: "\u200b"}} },
		"long ids that begin alike": func(r *record.Agent) {
			s := strings.Repeat("i", 120)
			r.Skills = []record.Skill{{ID: s + "a", Name: "b"}, {ID: s + "c", Name: "d"}}
		},
		"languages nobody speaks":   func(r *record.Agent) { r.Languages = []string{"a/b", "zz-zz-zz-zz"} },
		"300 characters of a title": func(r *record.Agent) { r.Title = strings.Repeat("x", 400) },
		"tags of 128 bytes": func(r *record.Agent) {
			r.Skills = []record.Skill{{ID: "a", Name: "b", Tags: []string{strings.Repeat("t", 128), "ok"}}}
		},
		"examples of 1200 bytes": func(r *record.Agent) {
			r.Skills = []record.Skill{{ID: "a", Name: "b", Examples: []string{strings.Repeat("e", 1200), "ok"}}}
		},
		"a note with a hidden order": func(r *record.Agent) {
			r.Status, r.StatusNote = record.StatusDeprecated, "x\u200b"+strings.Repeat("y", 1000)
		},
	} {
		r := p.Agent("x")
		change(r)
		p.Sign(t, r) // only what a gate lets in gets here
		got, err := translate.Agent(card, r)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		bounded(t, got)
		if strings.Contains(name, "door") && got.Endpoint != "" {
			t.Errorf("%s: it would be called at %s", name, got.Endpoint)
		}
	}
	builtin := p.Agent("x")
	builtin.Kind = "builtin"
	for name, r := range map[string]*record.Agent{"a tombstone": p.Gone("x"), "another portal": recordtest.NewPortal("two").Agent("x"), "a built-in agent": builtin} {
		if _, err := translate.Agent(card, r); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestExportable(t *testing.T) {
	t.Parallel()
	for want, list := range map[bool][]func(a *hub.Agent){
		true: {func(*hub.Agent) {}, func(a *hub.Agent) { a.Limits.Callers = hub.AccountCallers }},
		false: {func(a *hub.Agent) { a.Visibility = hub.Unlisted }, func(a *hub.Agent) { a.Visibility = hub.Private }, func(a *hub.Agent) { a.Status.State = hub.StatusDraft },
			func(a *hub.Agent) { a.Status.State = hub.Withdrawn }, func(a *hub.Agent) { a.Status.Held = true }, func(a *hub.Agent) { a.Portal = "two.example" }, func(a *hub.Agent) { a.Kind = hub.Peer },
			func(a *hub.Agent) { a.Kind = hub.Builtin }},
	} {
		for i, change := range list {
			a := agent()
			if change(&a); translate.Exportable(a) != want {
				t.Errorf("%v %d: %+v", want, i, a)
			}
		}
	}
}

func TestCap(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"Translation": "translation", "über uns": "uber-uns", "NLP / Translation": "nlp/translation", "c++": "c++", "node.js": "node.js", "Crème  brûlée": "creme-brulee",
		"c#": "", "翻译": "", "": "", "a//b": "", ".net": "", "a&b": "", "x\x00y": "", strings.Repeat("a", 65): "", "ﬁle": "file",
	} {
		got, ok := translate.Cap(typed)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%q is %q, %v; want %q", typed, got, ok, want)
		}
	}
}

// FuzzAgent reads whatever a record may say: nothing of it leaves the bounds
// of agents registered here.
func FuzzAgent(f *testing.F) {
	p := recordtest.NewPortal("one")
	card := p.Card()
	r := p.Agent("x")
	seed, err := json.Marshal(r)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	rich, _ := translate.Record(agent(), origin, recordtest.Start)
	rich.Header = p.Header(recordtest.Day)
	if seed, err = json.Marshal(rich); err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, payload []byte) {
		a := new(record.Agent)
		if json.Unmarshal(payload, a) != nil {
			return
		}
		if a.Portal != card.Portal || a.Issued > p.Now {
			return
		}
		if _, err := record.Sign(recordtest.Network, a, p.Op); err != nil || a.Deleted {
			return
		}
		got, err := translate.Agent(card, a)
		if err != nil {
			t.Fatal(err)
		}
		bounded(t, got)
	})
}
