package ard

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"agentsite/internal/hub"
)

func TestEntry_IsBounded(t *testing.T) {
	d, _ := newDoor(0)
	a := made(1)
	a.Description = strings.Repeat("é", 5000)
	a.Skills = nil
	for i := range 200 {
		a.Skills = append(a.Skills, hub.Skill{ID: fmt.Sprint("skill-", i), Tags: []string{fmt.Sprint("t", i)}, Examples: []string{strings.Repeat("q", 1000), " "}})
	}
	e := d.entryOf(&a, "")
	if n := utf8.RuneCountInString(e.Description); n != maxDescriptionRunes || !strings.HasSuffix(e.Description, "é…") {
		t.Errorf("a description of %d characters", n)
	}
	if len(e.Tags) != maxTags || len(e.Capabilities) != maxCapabilities || len(e.Queries) != maxQueries || len(e.Queries[0]) > maxQueryRunes+len("…") {
		t.Errorf("%d tags, %d capabilities, %d queries of %d bytes", len(e.Tags), len(e.Capabilities), len(e.Queries), len(e.Queries[0]))
	}
	if e.Capabilities[0] != "skill-0" {
		t.Errorf("a skill without a name is called %q", e.Capabilities[0])
	}
}

func TestEntry_LeavesOutWhatItHasNot(t *testing.T) {
	d, _ := newDoor(0)
	for _, examples := range [][]string{nil, {"just one"}} {
		a := hub.Agent{Name: "bare", Version: 3, Skills: []hub.Skill{{ID: "x", Examples: examples}}}
		if examples == nil {
			a.Skills = nil
		}
		body, err := encodeJSON(d.entryOf(&a, ""))
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		for _, absent := range []string{"tags", "representativeQueries", "updatedAt", "description", "data", "trustManifest", "mediaType"} {
			if _, ok := got[absent]; ok {
				t.Errorf("%v: %s is there: %s", examples, absent, body)
			}
		}
		if got["identifier"] != "urn:air:portal.example:agents:bare" || got["displayName"] != "bare" || got["version"] != "3" ||
			got["url"] != "https://portal.example/agents/bare/.well-known/agent-card.json" || got["type"] != cardType {
			t.Errorf("%s", body)
		}
		if m := got["metadata"].(map[string]any); m["handle"] != "bare@portal.example" || m["liveness"] != "unknown" || m["proof"] != "unproven" {
			t.Errorf("metadata %v", m)
		}
	}
}

func TestCatalog_HoldsASmallPortalWhole(t *testing.T) {
	d, _ := newDoor(5)
	ard, ai, err := d.catalogs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var a, b catalogJSON
	if err := json.Unmarshal(ard, &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(ai, &b); err != nil {
		t.Fatal(err)
	}
	if len(a.Entries) != 11 || len(b.Entries) != 11 || a.SpecVersion != "1.0" || a.Host.DisplayName != "Test" {
		t.Fatalf("%s", ard)
	}
	if r := a.Entries[0]; r.Type != registryType || r.URL != "https://portal.example/ard" || r.MediaType != "" {
		t.Errorf("the registry is %+v", r)
	}
	for _, e := range b.Entries {
		if e.MediaType != e.Type {
			t.Errorf("%s has the types %q and %q", e.Identifier, e.Type, e.MediaType)
		}
	}
}

// A large portal's catalog is as long as a smaller one's, and none of its
// agents is one that does not answer.
func TestCatalog_IsBounded(t *testing.T) {
	d, dir := newDoor(1000)
	w := d.get("/.well-known/ard.json")
	var doc catalogJSON
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Entries) != 2*catalogAgents+1 {
		t.Fatalf("%d entries", len(doc.Entries))
	}
	for i, e := range doc.Entries[1:] {
		if e.Metadata.Liveness != "alive" {
			t.Errorf("%s is %s", e.Identifier, e.Metadata.Liveness)
		}
		if i > 0 && e.UpdatedAt > doc.Entries[i].UpdatedAt {
			t.Errorf("%s is newer than the one before it", e.Identifier)
		}
	}
	if doc.Entries[1].Identifier != "urn:air:portal.example:agents:agent-00998" { // 999 does not answer
		t.Errorf("the first is %s", doc.Entries[1].Identifier)
	}

	// It is made once until something changes.
	asked := len(dir.asked)
	again := d.get("/.well-known/ard.json")
	d.get("/.well-known/ai-catalog.json")
	if len(dir.asked) != asked || again.Header().Get("ETag") != w.Header().Get("ETag") {
		t.Errorf("%d searches for the same catalog", len(dir.asked)-asked)
	}
	dir.Put(made(1001))
	if changed := d.get("/.well-known/ard.json"); changed.Header().Get("ETag") == w.Header().Get("ETag") {
		t.Error("a new agent does not change the catalog")
	}
}
