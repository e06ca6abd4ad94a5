package record_test

import (
	"strings"
	"testing"

	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

// A package is signed and read again, and each of its fields is checked.
func TestPackage_Fields(t *testing.T) {
	t.Parallel()
	p := recordtest.NewPortal("a")
	pack := func(change func(*record.Agent)) error {
		a := p.Agent("one")
		a.Kind, a.Endpoints, a.CardURL = record.KindPackage, nil, ""
		a.Package = &record.Package{Version: "1.0.0", Licence: "MIT", Entry: "run", Module: record.Hash{1}, Size: 4,
			Grants: []record.PackageGrant{{Name: "find", Why: "to look for others"}}, Readme: "# One\n\nText."}
		if change != nil {
			change(a)
		}
		r, err := record.Sign(recordtest.Network, a, p.Op)
		if err == nil {
			_, err = record.Open(recordtest.Network, r.Wire)
		}
		return err
	}
	if err := pack(nil); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*record.Agent){
		"kind":       func(a *record.Agent) { a.Kind = "wasm" },
		"version":    func(a *record.Agent) { a.Package.Version = "" },
		"licence":    func(a *record.Agent) { a.Package.Licence = " " },
		"entry":      func(a *record.Agent) { a.Package.Entry = "" },
		"module":     func(a *record.Agent) { a.Package.Module = record.Hash{} },
		"size":       func(a *record.Agent) { a.Package.Size = 65 << 20 },
		"grants":     func(a *record.Agent) { a.Package.Grants[0].Why = "" },
		"memory_mib": func(a *record.Agent) { a.Package.MemoryMiB = -1 },
		"seconds":    func(a *record.Agent) { a.Package.Seconds = 1 << 20 },
		"readme":     func(a *record.Agent) { a.Package.Readme = strings.Repeat("x", record.MaxReadme+1) },
		"state":      func(a *record.Agent) { a.Package.State = "gone" },
		"runs":       func(a *record.Agent) { a.Package = nil; a.Runs = &record.PackageRun{Name: "one", Version: "1"} },
		"both": func(a *record.Agent) {
			a.Runs = &record.PackageRun{Name: "one", Version: "1", Portal: a.Portal, Module: record.Hash{1}}
		},
		"deleted": func(a *record.Agent) {
			*a = record.Agent{Header: a.Header, ID: a.ID, Deleted: true, Package: a.Package}
		},
	} {
		if err := pack(change); err == nil {
			t.Errorf("%s: a wrong one is accepted", name)
		}
	}
}
