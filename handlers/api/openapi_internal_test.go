package api

import (
	"encoding/json"
	"testing"

	"agentsite/handlers/address"
)

func TestOpenAPI_IsDeclaredWithoutMistakes(t *testing.T) {
	b, err := describe(address.Portal{URL: "http://portal.test"}, "").Document()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Servers []struct{ URL string }
		Paths   map[string]any
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Servers) != 1 || doc.Servers[0].URL != "http://portal.test/api/v1" || len(doc.Paths) < 50 {
		t.Errorf("at %v with %d paths", doc.Servers, len(doc.Paths))
	}
}
