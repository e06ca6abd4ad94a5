package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentsite/internal/fault"
)

// quiet is a door on a portal that others reach, as far as server.json goes.
func publicDoor() *Handler {
	return New(Config{Addresses: noPrivate{}})
}

const whole = `{"$schema":"https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json","name":"com.example/weather","title":"Weather","description":"Tells the weather","version":"1.2.0",
"websiteUrl":"https://example.com/?a=b%20c","repository":{"url":"https://gitlab.com/a/b/c","source":"gitlab","id":"1","subfolder":"src/x"},
"icons":[{"src":"https://example.com/i.png","mimeType":"image/png","sizes":["48x48","any"],"theme":"dark"}],
"packages":[{"registryType":"npm","registryBaseUrl":"https://registry.npmjs.org","identifier":"@example/weather","version":"1.2.0","runtimeHint":"npx",
"transport":{"type":"streamable-http","url":"http://127.0.0.1:{--port}/mcp"},
"runtimeArguments":[{"type":"positional","valueHint":"dir","isRepeated":true}],
"packageArguments":[{"type":"named","name":"--port","default":"8080","format":"number","variables":{"x":{"isSecret":true}}}],
"environmentVariables":[{"name":"KEY","isSecret":true,"isRequired":true,"choices":["a"]}]},
{"registryType":"mcpb","identifier":"https://example.com/a.mcpb","fileSha256":"fe333e598595000ae021bd27117db32ec69af6987f507ba7a63c90638ff633ce","transport":{"type":"stdio"}}],
"remotes":[{"type":"sse","url":"https://example.com/sse"},{"type":"streamable-http","url":"https://{tenant}.example.com/mcp","variables":{"tenant":{"default":"main"}}},
{"type":"streamable-http","url":"https://example.com/mcp","headers":[{"name":"X-Key","isSecret":true}]}],
"_meta":{"io.modelcontextprotocol.registry/publisher-provided":{"build":{"n":1}}}}`

func TestCheck_TakesAWholeOne(t *testing.T) {
	t.Parallel()
	var s serverJSON
	if err := decodeStrict([]byte(whole), &s); err != nil {
		t.Fatal(err)
	}
	if f := publicDoor().checkServer(&s); !f.Valid || len(f.Issues) != 0 {
		t.Errorf("%+v", f)
	}
	if got := s.endpoint(); got != "https://example.com/mcp" {
		t.Errorf("it is called at %q", got)
	}
}

// Each of these changes one thing of a whole one; the first part names the
// place that must be complained of.
func TestCheck_Finds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ path, before, after string }{
		{"schema", `"$schema":"https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",`, ``},
		{"schema", `2025-12-11`, `1999-01-01`},
		{"schema", `/server.schema.json`, ``},
		{"name", `com.example/weather`, `weather`},
		{"name", `com.example/weather`, `com.example/a/b`},
		{"name", `com.example/weather`, `-com.example/weather`},
		{"name", `com.example/weather`, `com.example/weather.`},
		{"name", `com.example/weather`, `com.exämple/weather`},
		{"name", `com.example/weather`, `com.example/` + strings.Repeat("a", 200)},
		{"description", `Tells the weather`, ``},
		{"description", `Tells the weather`, `  `},
		{"description", `Tells the weather`, strings.Repeat("é", 101)},
		{"title", `"Weather"`, `"` + strings.Repeat("a", 101) + `"`},
		{"title", `"Weather"`, `" "`},
		{"version", `"1.2.0",` + "\n" + `"web`, `"",` + "\n" + `"web`},
		{"version", `"1.2.0",` + "\n" + `"web`, `"latest",` + "\n" + `"web`},
		{"version", `"1.2.0",` + "\n" + `"web`, `"^1.2.0",` + "\n" + `"web`},
		{"version", `"1.2.0",` + "\n" + `"web`, `">= 1.2",` + "\n" + `"web`},
		{"version", `"1.2.0",` + "\n" + `"web`, `"1.2 - 2.0",` + "\n" + `"web`},
		{"version", `"1.2.0",` + "\n" + `"web`, `"1.2 || 1.3",` + "\n" + `"web`},
		{"version", `"1.2.0",` + "\n" + `"web`, `"1.*",` + "\n" + `"web`},
		{"version", `"1.2.0",` + "\n" + `"web`, `"1.\u202e2",` + "\n" + `"web`},
		{"websiteUrl", `https://example.com/?`, `http://example.com/?`},
		{"websiteUrl", `https://example.com/?`, `javascript:alert(1)//`},
		{"websiteUrl", `https://example.com/?`, `//example.com/`},
		{"websiteUrl", `https://example.com/?`, `https://example.com/\"onclick=`},
		{"websiteUrl", `https://example.com/?`, `https://u:p@example.com/?`},
		{"repository.url", `gitlab.com/a/b/c`, `gitlab.example/a/b`},
		{"repository.source", `"source":"gitlab",`, ``},
		{"repository.subfolder", `src/x`, `../x`},
		{"icons[0].src", `https://example.com/i.png`, `data:image/png;base64,AA`},
		{"icons[0].mimeType", `image/png`, `text/html`},
		{"icons[0].theme", `dark`, `pink`},
		{"icons[0].sizes", `48x48`, `big`},
		{"packages[0].identifier", `@example/weather`, `@example/ weather`},
		{"packages[0].registryType", `"npm"`, `""`},
		{"packages[0].registryBaseUrl", `https://registry.npmjs.org`, `ftp://registry`},
		{"packages[0].version", `"1.2.0","runtimeHint"`, `"~1.2","runtimeHint"`},
		{"packages[0].transport.type", `"type":"streamable-http","url":"http://127.0.0.1:{--port}/mcp"`, `"type":"carrier"`},
		{"packages[0].transport.url", `{--port}`, `{nothing}`},
		{"packages[1].transport.url", `"type":"stdio"`, `"type":"stdio","url":"https://x.example"`},
		{"packages[1].fileSha256", `fe333e`, `FE333E`},
		{"packages[0].runtimeArguments[0]", `"valueHint":"dir",`, ``},
		{"packages[0].runtimeArguments[0].type", `"positional"`, `"other"`},
		{"packages[0].packageArguments[0].name", `"name":"--port"`, `"name":"--port <n>"`},
		{"packages[0].packageArguments[0].default", `"8080"`, `"--port 8080"`},
		{"packages[0].packageArguments[0].format", `"number"`, `"date"`},
		{"packages[0].environmentVariables[0].name", `"name":"KEY",`, ``},
		{"packages[0].environmentVariables[0]", `"name":"KEY",`, `"name":"KEY","type":"named",`},
		{"remotes[0].type", `"sse"`, `"stdio"`},
		{"remotes[0].url", `https://example.com/sse`, `http://example.com/sse`},
		{"remotes[0].url", `https://example.com/sse`, `https://10.0.0.1/sse`},
		{"remotes[0].url", `https://example.com/sse`, ``},
		{"remotes[1].url", `{tenant}`, `{who}`},
		{"remotes[1].url", `{tenant}`, `{`},
		{"remotes[2].headers[0].name", `"name":"X-Key",`, ``},
		{"_meta.io.modelcontextprotocol.registry/publisher-provided", `{"n":1}`, `"` + strings.Repeat("a", 4<<10) + `"`},
	} {
		text := strings.Replace(whole, c.before, c.after, 1)
		if text == whole {
			t.Fatalf("%s is not in it", c.before)
		}
		var s serverJSON
		if err := decodeStrict([]byte(text), &s); err != nil {
			t.Fatalf("%s: %v", c.after, err)
		}
		f := publicDoor().checkServer(&s)
		if f.Valid || len(f.Issues) == 0 || f.Issues[0].Path != c.path || f.Issues[0].Reference == "" {
			t.Errorf("%s for %s: %+v", c.after, c.before, f)
		}
	}
	var s serverJSON
	if err := decodeStrict([]byte(strings.Replace(whole, "2025-12-11", "2025-10-17", 1)), &s); err != nil {
		t.Fatal(err)
	}
	if f := publicDoor().checkServer(&s); !f.Valid || len(f.Issues) != 1 || f.Issues[0].Severity != "warning" {
		t.Errorf("an earlier schema: %+v", f)
	}
}

func TestDecode_IsStrict(t *testing.T) {
	t.Parallel()
	for text, field := range map[string]string{
		`{"name":"a","name":"b"}`:                   "name",
		`{"Name":"a"}`:                              "Name",
		`{"owner":"a"}`:                             "owner",
		`{"remotes":[{"type":"sse","URL":"x"}]}`:    "remotes[0].URL",
		`{"remotes":[{"variables":{"a":{"b":1}}}]}`: "remotes[0].variables.a.b",
		`{"_meta":{"io.example/other":{}}}`:         "_meta.io.example/other",
		`{"title":"a\u0000b"}`:                      "title",
		`{"title":1}`:                               "title",
		`{"packages":{}}`:                           "packages",
		`{"title":"a"} {}`:                          "",
		`{"title":"a"`:                              "",
		"{\"title\":\"\xff\"}":                      "",
		`{"version":"1.0.0\ud800"}`:                 "",
		``:                                          "",
		`{"_meta":` + strings.Repeat(`{"a":`, 40) + `1` + "}":                                                                               "",
		`{"_meta":{"io.modelcontextprotocol.registry/publisher-provided":{"a":` + strings.Repeat(`[`, 40) + strings.Repeat(`]`, 40) + `}}}`: "?",
		`{"_meta":{"io.modelcontextprotocol.registry/publisher-provided":{"a":{"b":1,"b":2}}}}`:                                             "_meta.io.modelcontextprotocol.registry/publisher-provided.a.b",
	} {
		var s serverJSON
		err := decodeStrict([]byte(text), &s)
		f := fault.As(err)
		if f == nil || f.Kind != fault.Invalid {
			t.Errorf("%.60s: %v", text, err)
		} else if _, ok := f.Fields[field]; field != "" && field != "?" && !ok {
			t.Errorf("%.60s: %v, want %s", text, f.Fields, field)
		}
	}
}

// Whatever is taken is bounded, is read alike by a lenient reader, and can be
// shown again as part of an answer.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(`{"remotes":[{"type":"streamable-http","url":"https://{a}}{"}]}`))
	f.Add([]byte(`{"version":"1 - 2 || 3","packages":[{"transport":{"url":"{}{"}}]}`))
	if files, err := filepath.Glob("testdata/*.json"); err == nil {
		for _, name := range files {
			if b, err := os.ReadFile(name); err == nil {
				f.Add(b)
			}
		}
	}
	d := publicDoor()
	f.Fuzz(func(t *testing.T, raw []byte) {
		var s serverJSON
		if err := decodeStrict(raw, &s); err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Fatalf("%v", err)
			}
			return
		}
		var lenient map[string]any
		if err := json.Unmarshal(raw, &lenient); err != nil && string(raw) != "null" {
			t.Fatal(err)
		}
		if name, ok := lenient["name"].(string); ok && name != s.Name {
			t.Fatalf("%q is also %q", s.Name, name)
		}
		if found := d.checkServer(&s); found.Valid {
			if s.Name == "" || s.Version == "" || len(s.Name) > maxName || strings.Count(s.Name, "/") != 1 || strings.Contains(s.Name, ":") {
				t.Fatalf("taken: %q %q", s.Name, s.Version)
			}
			if e := s.endpoint(); e != "" && !strings.HasPrefix(e, "https://") {
				t.Fatalf("called at %q", e)
			}
		} else if len(found.Issues) == 0 || len(found.Issues) > maxIssues+1 {
			t.Fatal(fmt.Sprint(len(found.Issues), " issues"))
		}
		if _, err := json.Marshal(releaseJSON{Server: raw}); err != nil {
			t.Fatal(err)
		}
	})
}

// noPrivate allows every address but 10.0.0.1.
type noPrivate struct{}

func (noPrivate) CheckURL(address string) error {
	if strings.Contains(address, "10.0.0.1") {
		return errors.New("a private address")
	}
	return nil
}
