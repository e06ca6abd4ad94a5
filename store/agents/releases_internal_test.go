package agents

import (
	"agentsite/internal/testing/plantest"
	"agentsite/store/hooks"
	"agentsite/store/quotas"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/registry"
)

func change(server registry.Server, version string, remotes ...string) registry.Change {
	now := clock.Now()
	return registry.Change{Server: server, At: now, Latest: version,
		Add: &registry.Release{Version: version, Status: registry.ReleaseActive, PublishedAt: now, Title: "T", Description: "D", Document: []byte("{}"), Remotes: remotes}}
}

func server(t *testing.T, d *Registry, name string) registry.Server {
	t.Helper()
	s, err := d.Server(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSaveRelease_IsWholeOrNot(t *testing.T) {
	t.Parallel()
	d := openRegistry(t)
	one := registry.Server{Name: "example.a/one", Site: "domain:a.example"}
	if err := d.SaveRelease(t.Context(), change(one, "1.0.0", "https://a.example/mcp")); err != nil {
		t.Fatal(err)
	}
	if err := d.SaveRelease(t.Context(), change(one, "2.0.0")); !errors.Is(err, registry.ErrStale) {
		t.Errorf("a server that is there already: %v", err)
	}
	now := server(t, d, one.Name)
	if err := d.SaveRelease(t.Context(), change(now, "2.0.0", "https://a.example/mcp", "https://a.example/mcp")); err != nil {
		t.Errorf("its own address again: %v", err)
	}
	if err := d.SaveRelease(t.Context(), change(now, "3.0.0")); !errors.Is(err, registry.ErrStale) {
		t.Errorf("read before another change: %v", err)
	}
	two := registry.Server{Name: "example.b/two", Site: "domain:b.example"}
	if err := d.SaveRelease(t.Context(), change(two, "1.0.0", "https://b.example", "https://a.example/mcp")); !fault.Is(err, fault.Invalid) {
		t.Errorf("the address of another: %v", err)
	}
	if _, err := d.Server(t.Context(), two.Name); !fault.Is(err, fault.NotFound) {
		t.Errorf("left behind: %v", err)
	}
	list, err := d.Releases(t.Context(), registry.Filter{Limit: 10})
	if err != nil || len(list) != 2 || list[0].Latest || !list[1].Latest || list[1].Version != "2.0.0" || !list[0].UpdatedAt.After(list[0].PublishedAt) {
		t.Errorf("%+v %v", list, err)
	}
	// What is deleted gives its addresses free, until it comes back.
	gone := registry.Change{Server: server(t, d, one.Name), Set: []string{"1.0.0", "2.0.0"}, Status: registry.ReleaseDeleted, Latest: "2.0.0", At: clock.Now()}
	if err := errors.Join(d.SaveRelease(t.Context(), gone), d.SaveRelease(t.Context(), change(two, "1.0.0", "https://a.example/mcp"))); err != nil {
		t.Fatal(err)
	}
	gone.Server, gone.Status = server(t, d, one.Name), registry.ReleaseActive
	if err := d.SaveRelease(t.Context(), gone); !fault.Is(err, fault.Invalid) {
		t.Errorf("back on an address that another has now: %v", err)
	}
	if n, err := d.CountServers(t.Context(), "domain:a.example"); n != 1 || err != nil {
		t.Error(n, err)
	}
}

// Lists are read in the order of an index, and what changed since by another.
func TestReleases_ReadsIndexes(t *testing.T) {
	t.Parallel()
	d := openRegistry(t)
	for i := range 300 {
		if err := d.SaveRelease(t.Context(), change(registry.Server{Name: fmt.Sprintf("example.a/s%03d", i), Site: "s"}, "1.0.0")); err != nil {
			t.Fatal(err)
		}
	}
	plan := func(f registry.Filter) string {
		t.Helper()
		var out strings.Builder
		for _, q := range []func(registry.Filter) (string, []any){publishedQuery, registeredQuery} {
			query, args := q(f)
			rows, err := d.db.Rows(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
			if err != nil {
				t.Fatal(err)
			}
			for rows.Next() {
				c, err := rows.SliceScan()
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintln(&out, c[3])
			}
			rows.Close()
		}
		return out.String()
	}
	list := plan(registry.Filter{Limit: 30, Namespace: "example.home", AfterName: "example.a/s100", AfterVersion: "1.0.0"})
	if !strings.Contains(list, "SEARCH r USING INDEX releases_order") || !strings.Contains(list, "agents_mcp") || strings.Contains(list, "TEMP B-TREE") || strings.Contains(list, "SCAN r\n") {
		t.Errorf("a page:\n%s", list)
	}
	if since := plan(registry.Filter{Limit: 30, Namespace: "example.home", Deleted: true, UpdatedSince: time.Now()}); !strings.Contains(since, "releases_updated") || !strings.Contains(since, "agents_mcp_updated") {
		t.Errorf("what changed:\n%s", since)
	}
	if of := plan(registry.Filter{Limit: 1, Namespace: "example.home", Agent: "weather", Latest: true}); strings.Contains(of, "SCAN") {
		t.Errorf("of one agent:\n%s", of)
	}
}

func openRegistry(t *testing.T) *Registry {
	t.Helper()
	db := plantest.Open(t, t.TempDir())
	return NewRegistry(db, New(db, hooks.New(db, quotas.New(db, nil, nil)), quotas.New(db, nil, nil), nil))
}
