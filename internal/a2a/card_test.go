package a2a

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/team/aware"
)

func mustParse(t *testing.T, card, address string) (Card, hub.Described) {
	t.Helper()
	c, d, ok, err := parseCard([]byte(card), address)
	if !ok || err != nil {
		t.Fatalf("ok %v, %v", ok, err)
	}
	return c, d
}

func TestParseCard_TakesBothVersions(t *testing.T) {
	_, d := mustParse(t, `{
		"name": "Weather\u202e \u0007Bot", "description": "Knows\r\nthe  sky.", "version": "1.2", "future": {"x": 1},
		"supportedInterfaces": [
			{"url": "https://a.example/grpc", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
			{"url": "https://a.example/old", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
			{"url": "https://a.example/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
			{"url": "https://a.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0", "tenant": "t1"}],
		"capabilities": {"streaming": true, "extensions": null},
		"securitySchemes": {"k": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}}},
		"defaultInputModes": ["text", "text/plain", 7, "<script>"], "defaultOutputModes": null,
		"skills": [{"id": "f", "name": "Forecast", "description": "d", "tags": ["rain", "rain", "", 3], "examples": ["Will it rain?"]}, null, "x"]
	}`, "https://a.example/.well-known/agent-card.json")
	want := hub.Described{
		Name: "weather-bot", Title: "Weather Bot", Description: "Knows\nthe  sky.", Kind: hub.A2A, Endpoint: "https://a.example/rpc",
		InputModes: []string{"text/plain", "text/plain"},
		Skills:     []hub.Skill{{ID: "f", Name: "Forecast", Description: "d", Tags: []string{"rain", "3"}, Examples: []string{"Will it rain?"}}},
		Config:     json.RawMessage(`{"card_url":"https://a.example/.well-known/agent-card.json","binding":"JSONRPC","version":"1.0","tenant":"t1","streaming":true,"auth_header":"X-Key"}`),
	}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Error(diff)
	}

	c, _ := mustParse(t, `{"name":"Old","url":"http://b.example:9/a","protocolVersion":"0.3.0","skills":[],
		"additionalInterfaces":[{"url":"http://b.example:9/rest","transport":"HTTP+JSON"}],"preferredTransport":"HTTP+JSON",
		"security":[{"k":[]}],"securitySchemes":{"k":{"type":"apiKey","in":"header","name":"X-Old"}}}`, "http://b.example:9/")
	if c.Interface != (Interface{"http://b.example:9/a", BindingREST, Version03, ""}) || !c.NeedsAuth || c.AuthHeader != "X-Old" {
		t.Errorf("%+v", c)
	}
}

func TestParseCard_ChoosesOnlyWhatMayBeCalled(t *testing.T) {
	for _, tt := range []struct{ card, iface, want, why string }{
		{"https://a.example/", "https://b.example/x", "https://b.example/x", ""},
		{"https://a.example/", "http://a.example/x", "", "unencrypted"},
		{"https://a.example/", "http://b.example/x", "", "unencrypted"},
		{"http://a.example/", "https://b.example/x", "", "another host, b.example"},
		{"http://a.example/", "http://b.example/x", "", "another host"},
		{"http://a.example:1/", "http://A.example:2/x", "http://A.example:2/x", ""},
		{"http://127.0.0.1:9/", "http://localhost:9/x", "http://127.0.0.1:9/x", ""},
		{"http://[::1]:9/", "http://0.0.0.0:8/", "http://[::1]:8/", ""},
		{"http://a.example/", "http://127.0.0.1:9/", "", "another host"},
		{"http://a.example/", "http://u:p@a.example/", "", "not http or https"},
		{"http://a.example/", "javascript:alert(1)", "", "not http or https"},
		{"http://a.example/", "/relative", "http://a.example/relative", ""},
		{"https://a.example/x/card.json", "rpc", "https://a.example/x/rpc", ""},
		{"https://a.example/x/card.json", "./rpc?a=1", "https://a.example/x/rpc?a=1", ""},
		{"https://a.example/x/card.json", "../rpc.php", "https://a.example/rpc.php", ""},
		{"https://a.example/card.json", "//a.example/rpc", "https://a.example/rpc", ""},
		{"https://a.example/card.json", "a.example/rpc", "https://a.example/rpc", ""},
		{"https://a.example/card.json", "a.example:444/rpc", "https://a.example:444/rpc", ""},
		{"https://a.example/card.json", "api.b.example/rpc", "https://api.b.example/rpc", ""},
		{"http://127.0.0.1:9/card.json", "localhost:9/rpc", "http://127.0.0.1:9/rpc", ""},
		{"http://127.0.0.1:9/card.json", "127.0.0.1:9", "http://127.0.0.1:9", ""},
		{"http://127.0.0.1:9/card.json", "rpc.json", "http://127.0.0.1:9/rpc.json", ""},
		{"http://a.example/", " /rpc ", "http://a.example/rpc", ""},
		{"http://a.example/", "b.example/rpc", "", "another host"},
		{"http://a.example/", "grpc://a.example", "", "not http or https"},
	} {
		b, _ := json.Marshal(map[string]any{"name": "n", "supportedInterfaces": []any{map[string]string{"url": tt.iface, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}}})
		c, _, ok, err := parseCard(b, tt.card)
		if !ok || c.Interface.URL != tt.want || (err == nil) != (tt.why == "") || err != nil && !strings.Contains(Reason(err), tt.why) {
			t.Errorf("%s from %s: %q %v", tt.iface, tt.card, c.Interface.URL, err)
		}
	}
	_, _, ok, err := parseCard([]byte(`{"name":"n","supportedInterfaces":[{"url":"https://a.example","protocolBinding":"GRPC","protocolVersion":"1.0"}]}`), "https://a.example/")
	if !ok || !strings.Contains(Reason(err), "speaks only GRPC 1.0") {
		t.Errorf("%v", err)
	}
}

func TestParseCard_BoundsEverything(t *testing.T) {
	long := strings.Repeat("ä ", 3000)
	skill := map[string]any{"id": long, "name": long, "description": long, "tags": make([]string, 0), "examples": []string{long, long + "1", "3", "4", "5", "6"}}
	for i := range 12 {
		skill["tags"] = append(skill["tags"].([]string), fmt.Sprint(i, long))
	}
	var skills []any
	for range 40 {
		skills = append(skills, skill)
	}
	b, _ := json.Marshal(map[string]any{"name": long, "description": long, "url": "https://a.example/", "skills": skills, "defaultInputModes": []string{long}})
	_, d := mustParse(t, string(b), "https://a.example/")
	runes := utf8.RuneCountInString
	if runes(d.Title) > 100 || runes(d.Description) > 4000 || len(d.Skills) != 32 || len(d.InputModes) > 16 {
		t.Errorf("title %d, description %d, %d skills", runes(d.Title), runes(d.Description), len(d.Skills))
	}
	s := d.Skills[0]
	if len(s.Tags) > 10 || len(s.Examples) > 5 || runes(s.Name) > 100 || runes(s.ID) > 64 {
		t.Errorf("skill: %d tags, %d examples", len(s.Tags), len(s.Examples))
	}
	for _, tag := range s.Tags {
		if runes(tag) > 32 {
			t.Errorf("tag of %d runes", runes(tag))
		}
	}
	for _, e := range s.Examples {
		if runes(e) > 300 {
			t.Errorf("example of %d runes", runes(e))
		}
	}
}

func TestKeyHeader(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":{"type":"apiKey","in":"header","name":"X-B"},"b":{"type":"apiKey","in":"header","name":"X-A"}}`: "X-A",
		`{"a":{"type":"apiKey","in":"header","name":"X-A"},"b":{"type":"http","scheme":"bearer"}}`:            "",
		`{"a":{"httpAuthSecurityScheme":{"scheme":"Bearer"}}}`:                                                "",
		`{"a":{"type":"apiKey","in":"query","name":"key"}}`:                                                   "",
		`{"a":{"type":"apiKey","in":"header","name":"Host"}}`:                                                 "",
		`{"a":{"type":"apiKey","in":"header","name":"X\r\nEvil: 1"}}`:                                         "",
		`{"a":{"type":"apiKey","in":"header","name":"authorization"}}`:                                        "",
		`[]`: "", `{"a":7}`: "",
	} {
		if got := keyHeader(json.RawMessage(in)); got != want {
			t.Errorf("%s: %q", in, got)
		}
	}
}

func TestReadCard_LooksWhereCardsAre(t *testing.T) {
	const card = `{"name":"Found","url":"%s/rpc","skills":[]}`
	for _, tt := range []struct{ at, ask string }{
		{"/.well-known/agent-card.json", ""}, {"/.well-known/agent-card.json", "/"}, {"/.well-known/agent.json", "/"},
		{"/agents/x/.well-known/agent-card.json", "/agents/x"}, {"/agents/x/.well-known/agent-card.json", "/agents/x/a2a"},
		{"/agents/x", "/agents/x"}, {"/.well-known/agent.json", "/a/b/c"}, {"/cards/x.json", "/cards/x.json"},
	} {
		var base string
		asked := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			if r.URL.Path != tt.at {
				http.NotFound(w, r)
				return
			}
			fmt.Fprintf(w, card, base)
		}))
		base = s.URL
		c, d, err := ReadCard(t.Context(), http.DefaultTransport, s.URL+tt.ask)
		if err != nil || d.Title != "Found" || c.URL != s.URL+tt.at || c.Interface.URL != s.URL+"/rpc" {
			t.Errorf("%s for %s: %+v %v", tt.at, tt.ask, c, err)
		}
		if asked > 8 {
			t.Errorf("%d requests", asked)
		}
		s.Close()
	}
}

func TestReadCard_FindsTheCardInOtherJSON(t *testing.T) {
	const card = `{"name":"Found","url":"/rpc","skills":[]}`
	for _, in := range []string{card + "<!-- 3 ms -->", card + "\n" + card, "[" + card + "]", `{"agentCard":` + card + "}", `{"card":` + card + `,"ok":true}`,
		`{"data":` + card + "}", "\xef\xbb\xbf[" + card + "]", `{"success":true,"result":` + card + "}", `{"root":` + card + "}"} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, in) }))
		_, d, err := ReadCard(t.Context(), http.DefaultTransport, s.URL)
		if err != nil || d.Title != "Found" || d.Endpoint != s.URL+"/rpc" {
			t.Errorf("%s: %+v %v", in, d, err)
		}
		s.Close()
	}
}

func TestReadCard_SaysWhatItFound(t *testing.T) {
	for _, tt := range []struct {
		status int
		body   string
		noCard bool
		want   string
	}{
		{200, "<html>", true, "No agent card was found at 127.0.0.1:"},
		{200, "<html>", true, "a web page"},
		{404, "", true, "it answered with HTTP 404"},
		{200, `{"hello":1}`, true, "JSON that is not an agent card"},
		{200, `{"name":"n","skills":[{}]}`, false, "There is an agent card, but cannot be called: its card names no interface"},
		{200, `{"name":"n","url":"","skills":[{}]}`, false, "its card names no interface"},
		{200, `{"name":"n","url":null,"skills":[{}]}`, false, "its card names no interface"},
		{200, `[` + `{"name":"n"},{"name":"m"}]`, true, "JSON"},
		{401, "", false, "it asks for credentials"},
		{200, `{"name":"` + strings.Repeat("x", 300<<10) + `"}`, true, "larger than 256 KiB"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(tt.status)
			io.WriteString(w, tt.body)
		}))
		_, _, err := ReadCard(t.Context(), http.DefaultTransport, s.URL)
		s.Close()
		f := fault.As(err)
		if f.Kind != fault.Invalid || !strings.Contains(f.Safe, tt.want) || f.Fields["endpoint"] != f.Safe || errors.Is(err, ErrNoCard) != tt.noCard {
			t.Errorf("%d %.30q: %v", tt.status, tt.body, err)
		}
	}
}

func TestLine_ShowsWhatIsThere(t *testing.T) {
	for in, want := range map[string]string{
		"a\u202eb\u2066c\x00\x1b[31m": "abc[31m", "a\r\n\tb": "a b", "\ufeffx\u200b": "x", "👩‍👩‍👧": "👩‍👩‍👧", "\xff": "", "e\u00adx": "ex",
	} {
		if got := Line(in, 100); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
	if got := Line("äöüß", 3); got != "äö…" {
		t.Errorf("%q", got)
	}
	if got := Line("äöü", 3); got != "äöü" {
		t.Errorf("%q", got)
	}
}

func FuzzParseCard(f *testing.F) {
	f.Add(`{"name":"n","url":"https://a.example/","skills":[{"id":"x"}]}`)
	f.Add(`{"name":"n","supportedInterfaces":[{"url":"https://a.example","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`)
	f.Add(`{"name":"n","url":7,"skills":{},"capabilities":[],"provider":null}`)
	f.Fuzz(func(t *testing.T, s string) {
		c, d, ok, err := parseCard([]byte(s), "https://a.example/x")
		if !ok || err != nil {
			return
		}
		if ident.CheckName(d.Name) != nil || d.Title == "" || !strings.HasPrefix(c.Interface.URL, "https://") || len(d.Skills) > maxSkills {
			t.Errorf("%+v", d)
		}
	})
}

// An agent that declares the extension for teams takes its documents, and so does each agent with such a card.
func TestCards_DeclareTheExtensionForTeams(t *testing.T) {
	for modes, want := range map[string][]string{`["text/plain","image/png"]`: {"text/plain", "image/png", aware.MediaType},
		`[]`: {"text/plain", aware.MediaType}, `["` + aware.MediaType + `"]`: {aware.MediaType}} {
		card := `{"name":"N","url":"/rpc","preferredTransport":"JSONRPC","protocolVersion":"0.3.0","defaultInputModes":` + modes +
			`,"capabilities":{"extensions":[{"uri":"` + aware.Extension + `"}]}}`
		_, d, ok, err := parseCard([]byte(card), "https://a.example/card.json")
		if !ok || err != nil || !slices.Equal(d.InputModes, want) {
			t.Errorf("%s: %v %v", modes, d.InputModes, err)
		}
	}
	for _, modes := range [][]string{nil, {"text/plain", aware.MediaType}} {
		c := MakeCard(hub.Agent{Name: "n", InputModes: modes}, Face{})
		has := slices.ContainsFunc(c.Capabilities.Extensions, func(e CardExtension) bool { return e.URI == aware.Extension })
		if has != (modes != nil) {
			t.Errorf("%v: %+v", modes, c.Capabilities.Extensions)
		}
	}
}

func TestParseCard_TakesOtherForms(t *testing.T) {
	for name, more := range map[string]string{
		"capabilities list": `"capabilities":[]`, "capabilities null": `"capabilities":null`, "capabilities text": `"capabilities":"none"`,
		"streaming text": `"capabilities":{"streaming":"true","extensions":{}}`, "provider text": `"provider":"Acme"`,
		"provider list": `"provider":[]`, "provider null": `"provider":null`, "provider name": `"provider":{"name":"Acme","url":7}`,
		"version number": `"version":1.2`, "description list": `"description":["a","b"]`, "description null": `"description":null`,
		"skills null": `"skills":null`, "skills object": `"skills":{"0":{"id":"a"}}`, "one odd skill": `"skills":[7,null,{"id":1,"name":["x"],"tags":"t"}]`,
		"one skill": `"skills":{"id":"a","name":"A"}`, "tags text": `"skills":[{"id":"a","tags":"t","examples":null}]`,
		"modes text": `"defaultInputModes":"text"`, "modes null": `"defaultOutputModes":null`, "schemes list": `"securitySchemes":[]`,
		"security null": `"security":null`, "additional object": `"additionalInterfaces":{}`, "interfaces null": `"supportedInterfaces":null`,
		"signatures text": `"signatures":"x","iconUrl":[],"documentationUrl":7`,
	} {
		for mark, text := range map[string]string{"": "", " with a mark": "\xef\xbb\xbf"} {
			_, d, ok, err := parseCard([]byte(text+`{"name":"N","url":"/rpc","preferredTransport":"JSONRPC","protocolVersion":"0.3.0",`+more+`}`), "https://a.example/card.json")
			if !ok || err != nil || d.Endpoint != "https://a.example/rpc" || d.Name != "n-agent" {
				t.Errorf("%s%s: %+v %v %v", name, mark, d, ok, err)
			}
		}
	}
}
