package hub_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

// raw is a config of one setting.
func raw(key, json string) map[string][]byte { return map[string][]byte{key: []byte(json)} }

// with puts settings over a draft's config.
func with(settings map[string][]byte) func(*hub.Draft) {
	return func(d *hub.Draft) {
		for k, v := range settings {
			d.Config[k] = json.RawMessage(v)
		}
	}
}

// a2a makes a draft one of an A2A agent.
func a2a(d *hub.Draft) {
	d.Kind = ptr(hub.A2A)
	d.Config = map[string]json.RawMessage{"binding": json.RawMessage(`"JSONRPC"`)}
}

func skills(list ...hub.Skill) func(*hub.Draft) { return func(d *hub.Draft) { d.Skills = &list } }

func TestPublish_NamesTheFieldThatIsWrong(t *testing.T) {
	t.Parallel()
	w := open(t)
	long := func(n int) string { return strings.Repeat("é", n) }
	quoted := func(s string) []byte { b, _ := json.Marshal(s); return b }
	for i, c := range []struct {
		field string
		edit  []func(*hub.Draft)
	}{
		{"name", []func(*hub.Draft){func(d *hub.Draft) { d.Name = ptr("admin") }}},
		{"name", []func(*hub.Draft){func(d *hub.Draft) { d.Name = ptr("hеlper") }}}, // Cyrillic е
		{"name", []func(*hub.Draft){func(d *hub.Draft) { d.Name = ptr("") }}},
		{"title", []func(*hub.Draft){func(d *hub.Draft) { d.Title = ptr(long(101)) }}},
		{"description", []func(*hub.Draft){func(d *hub.Draft) { d.Description = ptr(" \u202e\x00 ") }}},
		{"description", []func(*hub.Draft){func(d *hub.Draft) { d.Description = nil }}},
		{"description", []func(*hub.Draft){func(d *hub.Draft) { d.Description = ptr(long(4001)) }}},
		{"kind", []func(*hub.Draft){func(d *hub.Draft) { d.Kind = ptr(hub.Kind("wasm")) }}},
		{"kind", []func(*hub.Draft){func(d *hub.Draft) { d.Kind = ptr(hub.Builtin) }}},
		{"kind", []func(*hub.Draft){func(d *hub.Draft) { d.Kind = ptr(hub.Kind("")) }}},
		{"visibility", []func(*hub.Draft){func(d *hub.Draft) { d.Visibility = ptr(hub.Visibility("secret")) }}},
		{"status", []func(*hub.Draft){func(d *hub.Draft) { d.Status = &hub.Status{State: "asleep"} }}},
		{"status", []func(*hub.Draft){func(d *hub.Draft) { d.Status = &hub.Status{State: hub.Withdrawn, Message: long(301)} }}},
		{"endpoint", []func(*hub.Draft){func(d *hub.Draft) { d.Endpoint = nil }}},
		{"endpoint", []func(*hub.Draft){func(d *hub.Draft) { d.Endpoint = ptr("https://10.0.0.1/") }}},
		{"endpoint", []func(*hub.Draft){func(d *hub.Draft) { d.Endpoint = ptr("javascript:alert(1)") }}},
		{"endpoint", []func(*hub.Draft){func(d *hub.Draft) { d.Endpoint = ptr("https://x.example/" + strings.Repeat("x", 500)) }}},
		{"endpoint", []func(*hub.Draft){a2a, func(d *hub.Draft) { d.Endpoint = ptr("http://x.example/") }}},
		{"config.model", []func(*hub.Draft){with(raw("model", `""`))}},
		{"config.model", []func(*hub.Draft){with(raw("model", `null`))}},
		{"config.model", []func(*hub.Draft){with(raw("model", `"a\nb"`))}},
		{"config.model", []func(*hub.Draft){with(raw("model", `"a\u202eb"`))}},
		{"config.model", []func(*hub.Draft){with(raw("model", string(quoted(strings.Repeat("m", 201)))))}},
		{"config.model", []func(*hub.Draft){with(raw("model", `7`))}},
		{"config.streaming", []func(*hub.Draft){a2a, with(raw("streaming", `"yes"`))}},
		{"config.instructions", []func(*hub.Draft){with(raw("instructions", string(quoted(long(8001)))))}},
		{"config.auth_header", []func(*hub.Draft){a2a, with(raw("auth_header", `"X-Key: x"`))}},
		{"config.auth_header", []func(*hub.Draft){a2a, with(raw("auth_header", `"X\r\nY"`))}},
		{"config.auth_header", []func(*hub.Draft){a2a, with(raw("auth_header", `"HOST"`))}},
		{"config.auth_header", []func(*hub.Draft){a2a, with(raw("auth_header", string(quoted(strings.Repeat("x", 101)))))}},
		{"config.binding", []func(*hub.Draft){a2a, with(raw("binding", `"SOAP"`))}},
		{"config.version", []func(*hub.Draft){a2a, with(raw("version", `"9"`))}},
		{"config.tenant", []func(*hub.Draft){a2a, with(raw("tenant", string(quoted(strings.Repeat("x", 201)))))}},
		{"config.tenant", []func(*hub.Draft){a2a, with(raw("tenant", `"a\nb"`))}},
		{"config.card_url", []func(*hub.Draft){a2a, with(raw("card_url", string(quoted(strings.Repeat("x", 501)))))}},
		{"config.key", []func(*hub.Draft){func(d *hub.Draft) { d.Secret = ptr(strings.Repeat("k", 4001)) }}},
		{"config.key", []func(*hub.Draft){func(d *hub.Draft) { d.Secret = ptr("k\nX-Other: y") }}},
		{"skills", []func(*hub.Draft){func(d *hub.Draft) {
			var many []hub.Skill
			for i := range 33 {
				many = append(many, hub.Skill{Name: fmt.Sprint("s", i)})
			}
			d.Skills = &many
		}}},
		{"skills[0].name", []func(*hub.Draft){skills(hub.Skill{Description: "nameless"})}},
		{"skills[0].name", []func(*hub.Draft){skills(hub.Skill{Name: long(101)})}},
		{"skills[0].id", []func(*hub.Draft){skills(hub.Skill{ID: long(101), Name: "x"})}},
		{"skills[1].id", []func(*hub.Draft){skills(hub.Skill{ID: "x", Name: "a"}, hub.Skill{ID: " x ", Name: "b"})}},
		{"skills[0].description", []func(*hub.Draft){skills(hub.Skill{Name: "x", Description: long(1001)})}},
		{"skills[0].tags", []func(*hub.Draft){skills(hub.Skill{Name: "x", Tags: []string{long(33)}})}},
		{"skills[0].tags", []func(*hub.Draft){skills(hub.Skill{Name: "x", Tags: strings.Split("abcdefghijk", "")})}},
		{"skills[0].examples", []func(*hub.Draft){skills(hub.Skill{Name: "x", Examples: []string{long(301)}})}},
		{"skills[0].examples", []func(*hub.Draft){skills(hub.Skill{Name: "x", Examples: strings.Split("abcdef", "")})}},
	} {
		_, err := w.Publish(t.Context(), w.ada, draft(fmt.Sprint("agent-", i), c.edit...))
		f := fault.As(err)
		if f == nil || f.Kind != fault.Invalid || f.Fields[c.field] == "" || len(f.Fields) != 1 {
			t.Errorf("%d %s: %v", i, c.field, err)
		}
	}
	if w.Count() != 0 {
		t.Errorf("%s were registered", w.found())
	}
}

func TestPublish_NamesEveryFaultAtOnce(t *testing.T) {
	t.Parallel()
	w := open(t)
	_, err := w.Publish(t.Context(), w.ada, hub.Draft{Name: ptr("X"), Kind: ptr(hub.OpenAI), Visibility: ptr(hub.Visibility("?"))})
	f := fault.As(err)
	for _, name := range []string{"name", "description", "visibility", "endpoint", "config.model"} {
		if f.Fields[name] == "" {
			t.Errorf("%s is not named: %v", name, err)
		}
	}
}

func TestPublish_TakesWhatIsAtTheBounds(t *testing.T) {
	t.Parallel()
	w := open(t)
	full := hub.Skill{ID: strings.Repeat("é", 100), Name: strings.Repeat("é", 100), Description: strings.Repeat("é", 1000)}
	for i := range 10 {
		full.Tags = append(full.Tags, fmt.Sprint(i)+strings.Repeat("é", 31))
	}
	for i := range 5 {
		full.Examples = append(full.Examples, fmt.Sprint(i)+strings.Repeat("é", 299))
	}
	list := make([]hub.Skill, 32)
	for i := range list {
		list[i] = full
		list[i].ID = ""
	}
	a := w.publish(w.ada, draft("helper", func(d *hub.Draft) {
		d.Title, d.Description = ptr(strings.Repeat("é", 100)), ptr(strings.Repeat("é", 4000))
		d.Skills = ptr(list[:8])
		d.Config["instructions"] = json.RawMessage(`"` + strings.Repeat("é", 8000) + `"`)
		d.Secret = ptr(strings.Repeat("k", 4000))
	}))
	if got, err := w.Get(t.Context(), w.bob, "helper"); err != nil || len(got.Skills) != 8 || got.Description != a.Description || !got.HasSecret {
		t.Error(err)
	}
	// 32 skills of the longest kind, which JSON makes longer still, fit too.
	for i := range list {
		list[i].Description = strings.Repeat("<", 1000)
	}
	w.publish(w.ada, draft("giant", func(d *hub.Draft) { d.Skills = &list }))
}

func TestPublish_CleansTextAndKeepsMarkup(t *testing.T) {
	t.Parallel()
	w := open(t)
	a := w.publish(w.ada, draft("@Helper", func(d *hub.Draft) {
		d.Title = ptr(" <b>Bold</b>\n & \u202eevil\u202c\u061c\u2028line\x00\x1b[31m ")
		d.Description = ptr("<script>alert(1)</script>\nsecond\u2066\ufeff line\xff [x](javascript:1)")
		d.Endpoint = ptr(" https://models.example/v1/ ")
		d.Skills = ptr([]hub.Skill{
			{}, {Name: " ", Tags: []string{"orphan"}},
			{Name: "C++"}, {Name: "C#"}, {Name: "!!!"}, {ID: "only-id"}, {Name: "翻译 <i>"},
			{Name: "Tags", Tags: []string{" A ", "a", "", "B\nc"}, Examples: []string{"x", "x", " "}},
		})
	}))
	if a.Name != "helper" || a.Title != "<b>Bold</b> & evil line[31m" {
		t.Errorf("%q %q", a.Name, a.Title)
	}
	if a.Description != "<script>alert(1)</script>\nsecond line\ufffd [x](javascript:1)" {
		t.Errorf("%q", a.Description)
	}
	if a.Endpoint != "https://models.example/v1" {
		t.Errorf("%q", a.Endpoint)
	}
	var got []string
	for _, s := range a.Skills {
		got = append(got, s.ID+"="+s.Name+"/"+strings.Join(s.Tags, ",")+"/"+strings.Join(s.Examples, ","))
	}
	if want := "c=C++// c-2=C#// skill=!!!// only-id=only-id// 翻译--i=翻译 <i>// tags=Tags/a,b c/x"; strings.Join(got, " ") != want {
		t.Errorf("%s\nwant %s", strings.Join(got, " "), want)
	}
	if a.Visibility != hub.Public || a.Status.State != hub.Active || a.Version != 1 {
		t.Errorf("%+v", a)
	}
	if p := w.publish(w.ada, draft("plain")); p.Title != "plain" {
		t.Errorf("an empty title became %q", p.Title)
	}
}

// A setting that no agent of the kind has is refused by name, and the answer
// says which there are.
func TestPublish_RefusesUnknownSettings(t *testing.T) {
	t.Parallel()
	w := open(t)
	one := func(k, v string) map[string]json.RawMessage {
		return map[string]json.RawMessage{k: json.RawMessage(v)}
	}
	for k, has := range map[hub.Kind]string{
		hub.A2A:    "card_url, binding, version, tenant, streaming, auth_header, takes_tools, tools, token",
		hub.OpenAI: "model, instructions, key",
		hub.MCP:    "version, server, instructions, tools, auth_header, token",
		hub.Prompt: "instructions, model, examples, tools, unasked, temperature, max_tokens, output, key",
		hub.Link:   "client, tools",
	} {
		d := draft("helper-" + string(k))
		d.Kind, d.Config = &k, one("memory", "true")
		_, err := w.Publish(t.Context(), w.ada, d)
		f, ok := errors.AsType[*fault.Error](err)
		if want := "is no setting of an agent of kind " + string(k) + "; it has " + has; !ok || f.Kind != fault.Invalid || f.Fields["config.memory"] != want {
			t.Errorf("%s: %v, want %q", k, err, want)
		}
	}
	w.publish(w.ada, draft("helper"))
	for name, config := range map[string]map[string]json.RawMessage{
		"config.tools": one("tools", `["calc"]`), "config.Model": one("Model", `"m-2"`), "config.colour": one("colour", "null"),
	} {
		_, err := w.Update(t.Context(), w.ada, "helper", hub.Draft{Config: config})
		if f, ok := errors.AsType[*fault.Error](err); !ok || f.Kind != fault.Invalid || f.Fields[name] == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	prompt := draft("poet")
	k := hub.Prompt
	prompt.Kind, prompt.Config = &k, map[string]json.RawMessage{"instructions": json.RawMessage(`"Rhyme."`), "model": json.RawMessage(`"m-1"`),
		"examples": json.RawMessage(`[{"user":"u","agnet":"a"}]`)}
	_, err := w.Publish(t.Context(), w.ada, prompt)
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Fields["config.examples[0].agnet"] != "is not a field here; did you mean agent?" {
		t.Errorf("inside an example: %v", err)
	}
}

// Unknown settings that an earlier release stored are dropped by an edit.
func TestUpdate_DropsUnknownSettingsThatAreStored(t *testing.T) {
	t.Parallel()
	w := open(t)
	a := w.publish(w.ada, draft("helper"))
	base := a.Version
	a.Config, a.Version = json.RawMessage(`{"model":"m-1","colour":"red"}`), base+1
	if err := w.db.UpdateAgent(t.Context(), a, base, nil, w.ada); err != nil {
		t.Fatal(err)
	}
	a, err := w.Update(t.Context(), w.ada, "helper", hub.Draft{Config: map[string]json.RawMessage{"instructions": json.RawMessage(`"Be brief."`)}})
	if err != nil || string(a.Config) != `{"model":"m-1","instructions":"Be brief."}` {
		t.Errorf("%s %v", a.Config, err)
	}
}

func TestPublish_OnlyPeopleWithTheScope(t *testing.T) {
	t.Parallel()
	w := open(t)
	for who, c := range map[string]struct {
		actor ident.Actor
		want  fault.Kind
	}{
		"nobody": {ident.Actor{}, fault.Unauthenticated}, "a guest": {ident.Actor{Kind: ident.Guest, ID: ident.NewID()}, fault.Unauthenticated},
		"an agent": {ident.Actor{Kind: ident.AgentBot, ID: ident.NewID()}, fault.Unauthenticated}, "a reader": {narrowed(w.ada, ident.AgentsRead), fault.Forbidden},
	} {
		_, err := w.Publish(t.Context(), c.actor, draft("helper"))
		kind(t, who, err, c.want)
		_, err = w.Read(t.Context(), c.actor, "", hub.Target{Endpoint: "https://x.example"})
		kind(t, who+" reads a card", err, c.want)
	}
	w.publish(narrowed(w.ada, ident.AgentsWrite), draft("helper"))
}

func TestPublish_FillsFromTheCardAndTheDraftWins(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.reader.says = hub.Described{Name: "from-card", Title: "Card title", Description: "Card text.", Kind: hub.A2A, Endpoint: "https://agent.example/rpc",
		Config: json.RawMessage(`{"binding":"JSONRPC","version":"1.0","streaming":true}`), Skills: []hub.Skill{{ID: "s", Name: "S"}}}
	a := w.publish(w.ada, hub.Draft{Endpoint: ptr(" https://agent.example ")})
	if a.Name != "from-card" || a.Title != "Card title" || a.Description != "Card text." || a.Kind != hub.A2A || a.Endpoint != "https://agent.example/rpc" ||
		len(a.Skills) != 1 || !strings.Contains(string(a.Config), `"streaming":true`) {
		t.Errorf("%+v", a)
	}
	if len(w.reader.read) != 1 || w.reader.read[0] != "https://agent.example" {
		t.Errorf("read %v", w.reader.read)
	}
	w.reader.says.Name = "another"
	a = w.publish(w.ada, hub.Draft{Endpoint: ptr("https://agent.example"), Title: ptr("Mine"), Skills: &[]hub.Skill{}, Visibility: ptr(hub.Private),
		Config: map[string]json.RawMessage{"version": json.RawMessage(`"0.3"`)}})
	if a.Title != "Mine" || a.Description != "Card text." || len(a.Skills) != 0 || a.Visibility != hub.Private || !strings.Contains(string(a.Config), `"version":"0.3"`) ||
		!strings.Contains(string(a.Config), `"binding":"JSONRPC"`) {
		t.Errorf("%+v %s", a, a.Config)
	}
	// The card does not lead to where calls are not allowed.
	w.reader.says.Name, w.reader.says.Endpoint = "third", "https://10.0.0.1/"
	_, err := w.Publish(t.Context(), w.ada, hub.Draft{Endpoint: ptr("https://agent.example")})
	if fault.As(err).Fields["endpoint"] == "" {
		t.Error(err)
	}
	w.reader.err = fault.New(fault.Invalid, "There is no card.")
	_, err = w.Publish(t.Context(), w.ada, hub.Draft{Endpoint: ptr("https://agent.example")})
	kind(t, "no card", err, fault.Invalid)
	// The reason is that of the card, also if the draft has all but what the card was to say.
	for _, err := range []error{w.reader.err, fault.Limited(time.Second, "Too many.")} {
		w.reader.err = err
		_, got := w.Publish(t.Context(), w.ada, hub.Draft{Endpoint: ptr("https://agent.example"), Name: ptr("fourth"), Kind: ptr(hub.A2A)})
		if got == nil || fault.As(got).Safe != fault.As(err).Safe {
			t.Errorf("%v instead of %v", got, err)
		}
	}
	w.reader.err = fault.New(fault.Invalid, "There is no card.")
	reads := len(w.reader.read)
	_, err = w.Publish(t.Context(), w.ada, hub.Draft{Endpoint: ptr("https://10.0.0.1/")})
	kind(t, "an address that may not be called", err, fault.Invalid)
	if len(w.reader.read) != reads {
		t.Error("it was read all the same")
	}
}

// The stored credential of an agent goes to the origin it was given for, for its owner alone.
func TestRead_SendsTheStoredCredentialToItsOrigin(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.publish(w.ada, draft("helper", func(d *hub.Draft) { d.Secret = ptr("sk-1") }))
	a, err := w.Get(t.Context(), w.ada, "helper")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		actor                 ident.Actor
		name, endpoint, typed string
		want                  string
	}{
		{w.ada, "helper", a.Endpoint, "", "sk-1"},
		{w.ada, "helper", a.Endpoint, "sk-2", "sk-2"},
		{w.ada, "helper", "https://elsewhere.example/v1", "", ""},
		{w.ada, "", a.Endpoint, "", ""},
	} {
		w.reader.as = nil
		if _, err := w.Read(t.Context(), c.actor, c.name, hub.Target{Kind: hub.OpenAI, Endpoint: c.endpoint,
			Secret: c.typed}); err != nil {
			t.Fatal(err)
		}
		if len(w.reader.as) != 1 || w.reader.as[0].Secret != c.want {
			t.Errorf("%+v: %+v", c, w.reader.as)
		}
	}
	w.reader.as = nil
	if _, err := w.Read(t.Context(), w.bob, "helper", hub.Target{Kind: hub.OpenAI, Endpoint: a.Endpoint}); err == nil ||
		len(w.reader.as) != 0 {
		t.Errorf("somebody else: %v, %+v", err, w.reader.as)
	}
}

func TestRead_LimitedByPerson(t *testing.T) {
	t.Parallel()
	w := open(t)
	var limited bool
	for range 25 {
		_, err := w.Read(t.Context(), w.ada, "", hub.Target{Endpoint: "https://x.example"})
		limited = limited || fault.Is(err, fault.RateLimited)
	}
	if _, err := w.Read(t.Context(), w.bob, "", hub.Target{Endpoint: "https://x.example"}); !limited || err != nil {
		t.Error(limited, err)
	}
}

// TestPublish_SendsTheCredentialWhereTheAddressAnswered gives addresses without a scheme together with a credential.
func TestPublish_SendsTheCredentialWhereTheAddressAnswered(t *testing.T) {
	t.Parallel()
	for typed, own := range map[string]bool{"agent.example": true, " agent.example/card ": true, "other.example": false} {
		w := open(t)
		w.reader.says = hub.Described{Name: "helper", Title: "Helper", Description: "Helps.", Kind: hub.A2A,
			Endpoint: "https://agent.example/rpc", Config: json.RawMessage(`{"binding":"JSONRPC","version":"1.0"}`)}
		a, err := w.Publish(t.Context(), w.ada, hub.Draft{Endpoint: ptr(typed), Secret: ptr("sk-1")})
		if own && (err != nil || !a.HasSecret || a.Endpoint != "https://agent.example/rpc") {
			t.Errorf("%q: %+v, %v", typed, a, err)
		}
		if !own && !strings.Contains(fault.As(err).Fields["endpoint"], "its card names https://agent.example/rpc") {
			t.Errorf("%q: %v", typed, err)
		}
	}
}
