package record

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentsite/internal/record/canonical"
)

const page = "../../docs/design/records.md"

func readPage(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func has(t *testing.T, doc, want string) {
	t.Helper()
	if !strings.Contains(doc, want) {
		t.Errorf("%s does not say: %s", page, want)
	}
}

func bodies() map[Type]Body {
	m := make(map[Type]Body)
	for _, b := range []Body{new(Card), new(Contact), new(Agent), new(Head), new(Summary), new(Provider), new(Attest), new(Fork), new(Live)} {
		m[b.recordType()] = b
	}
	return m
}

func TestPage_HasTypesWithTheirBounds(t *testing.T) {
	t.Parallel()
	doc := readPage(t)
	rows := regexp.MustCompile("(?m)^\\| `([a-z]+/1)` \\| (\\d+) \\| (\\d+) (h|d) \\|").FindAllStringSubmatch(doc, -1)
	if len(rows) != len(bodies()) {
		t.Fatalf("%d types in the table, %d in the code", len(rows), len(bodies()))
	}
	for _, row := range rows {
		rule, ok := ruleOf(Type(row[1]))
		unit := map[string]int64{"h": hour, "d": day}[row[4]]
		if got := fmt.Sprint(rule.max, " ", rule.life/unit); !ok || got != row[2]+" "+row[3] || rule.life%unit != 0 {
			t.Errorf("%s: the page says %s bytes and %s %s, the code %s", row[1], row[2], row[3], row[4], got)
		}
		if body, ok := newBody(Type(row[1])); ok && body.recordType() != Type(row[1]) {
			t.Errorf("%s is read as %s", row[1], body.recordType())
		}
	}
	has(t, doc, fmt.Sprintf("may live %d d", (30*day+grace)/day))
	has(t, doc, fmt.Sprintf("at most %d bytes. A type", MaxWire))
	has(t, doc, fmt.Sprintf("at most %d minutes from now", maxSkew/minute))
	has(t, doc, fmt.Sprintf("nested at most %d deep", canonical.MaxDepth))
	has(t, doc, fmt.Sprintf("members are 1 to %d of", canonical.MaxMember))
	has(t, doc, fmt.Sprintf("at most %d, each as `l`", maxPath))
	has(t, doc, fmt.Sprintf("at most %d bytes. The paths", MaxProof))
	has(t, doc, fmt.Sprintf("at most %d bytes |", MaxBloom))
	has(t, doc, fmt.Sprintf("sets or asks for %d bits", bloomHashes))
	has(t, doc, fmt.Sprintf("number of agents, at most %d", MaxAgents))
	has(t, doc, fmt.Sprintf("length of the host, at most %d", maxHost))
	has(t, doc, fmt.Sprintf("1 to %d entries of %d bytes", MaxWords, wordLen))
	has(t, doc, fmt.Sprintf("minutes before `iss`, at most %d", MaxAgo/time.Minute))
	has(t, doc, fmt.Sprintf("0 to %d hexadecimal digits", MaxShard))
}

func TestPage_HasEveryMember(t *testing.T) {
	t.Parallel()
	doc := readPage(t)
	for typ, body := range bodies() {
		if typ == TypeContact {
			continue // has none
		}
		_, section, ok := strings.Cut(doc, "### "+string(typ)+"\n")
		if !ok {
			t.Errorf("%s has no section", typ)
			continue
		}
		section, _, _ = strings.Cut(section, "\n##")
		var members func(reflect.Type)
		members = func(s reflect.Type) {
			for f := range s.Fields() {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				if name == "" { // Header, which the page has once
					continue
				}
				has(t, section, "`"+name+"`")
				elem := f.Type
				if elem.Kind() == reflect.Slice || elem.Kind() == reflect.Pointer {
					elem = elem.Elem()
				}
				if elem.Kind() == reflect.Struct {
					members(elem)
				}
			}
		}
		members(reflect.TypeOf(body).Elem())
	}
	for f := range reflect.TypeFor[Header]().Fields() {
		has(t, doc, "| `"+f.Tag.Get("json")+"` |")
	}
}

func TestPage_HasEveryReason(t *testing.T) {
	t.Parallel()
	doc := readPage(t)
	src, err := os.ReadFile("refused.go")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, m := range regexp.MustCompile(`Reason\s+= "(\w+)"\s+// (.*)`).FindAllStringSubmatch(string(src), -1) {
		rows = append(rows, fmt.Sprintf("| `%s` | %s |\n", m[1], m[2]))
	}
	if len(rows) < 20 {
		t.Fatalf("only %d reasons found", len(rows))
	}
	has(t, doc, "|---|---|\n"+strings.Join(rows, ""))
}

func TestPage_ExampleIsInTheVectors(t *testing.T) {
	t.Parallel()
	doc := readPage(t)
	b, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Network string
		Good    []struct{ Name, Wire, Payload, Hash string }
	}
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	for _, v := range file.Good {
		if v.Name == "tombstone" {
			has(t, doc, "```json\n"+v.Wire+"\n```")
			has(t, doc, "```text\n"+string(PAE(file.Network, TypeAgent, []byte(v.Payload)))+"\n```")
			has(t, doc, "Its hash is `"+v.Hash+"`.")
			return
		}
	}
	t.Error("the example is gone")
}
