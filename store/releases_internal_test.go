package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
)

func change(server hub.Server, version string, remotes ...string) hub.ReleaseChange {
	now := clock.Now()
	return hub.ReleaseChange{Server: server, At: now, Latest: version,
		Add: &hub.Release{Version: version, Status: hub.ReleaseActive, PublishedAt: now, Title: "T", Description: "D", Document: []byte("{}"), Remotes: remotes}}
}

func server(t *testing.T, d *DB, name string) hub.Server {
	t.Helper()
	s, err := d.Server(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSaveRelease_IsWholeOrNot(t *testing.T) {
	t.Parallel()
	d := openTest(t, t.TempDir())
	one := hub.Server{Name: "example.a/one", Site: "domain:a.example"}
	if err := d.SaveRelease(t.Context(), change(one, "1.0.0", "https://a.example/mcp")); err != nil {
		t.Fatal(err)
	}
	if err := d.SaveRelease(t.Context(), change(one, "2.0.0")); !errors.Is(err, hub.ErrStale) {
		t.Errorf("a server that is there already: %v", err)
	}
	now := server(t, d, one.Name)
	if err := d.SaveRelease(t.Context(), change(now, "2.0.0", "https://a.example/mcp", "https://a.example/mcp")); err != nil {
		t.Errorf("its own address again: %v", err)
	}
	if err := d.SaveRelease(t.Context(), change(now, "3.0.0")); !errors.Is(err, hub.ErrStale) {
		t.Errorf("read before another change: %v", err)
	}
	two := hub.Server{Name: "example.b/two", Site: "domain:b.example"}
	if err := d.SaveRelease(t.Context(), change(two, "1.0.0", "https://b.example", "https://a.example/mcp")); !fault.Is(err, fault.Invalid) {
		t.Errorf("the address of another: %v", err)
	}
	if _, err := d.Server(t.Context(), two.Name); !fault.Is(err, fault.NotFound) {
		t.Errorf("left behind: %v", err)
	}
	list, err := d.Releases(t.Context(), hub.ReleaseFilter{Limit: 10})
	if err != nil || len(list) != 2 || list[0].Latest || !list[1].Latest || list[1].Version != "2.0.0" || !list[0].UpdatedAt.After(list[0].PublishedAt) {
		t.Errorf("%+v %v", list, err)
	}
	// What is deleted gives its addresses free, until it comes back.
	gone := hub.ReleaseChange{Server: server(t, d, one.Name), Set: []string{"1.0.0", "2.0.0"}, Status: hub.ReleaseDeleted, Latest: "2.0.0", At: clock.Now()}
	if err := errors.Join(d.SaveRelease(t.Context(), gone), d.SaveRelease(t.Context(), change(two, "1.0.0", "https://a.example/mcp"))); err != nil {
		t.Fatal(err)
	}
	gone.Server, gone.Status = server(t, d, one.Name), hub.ReleaseActive
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
	d := openTest(t, t.TempDir())
	for i := range 300 {
		if err := d.SaveRelease(t.Context(), change(hub.Server{Name: fmt.Sprintf("example.a/s%03d", i), Site: "s"}, "1.0.0")); err != nil {
			t.Fatal(err)
		}
	}
	plan := func(f hub.ReleaseFilter) string {
		t.Helper()
		var out strings.Builder
		for _, q := range []func(hub.ReleaseFilter) (string, []any){publishedQuery, registeredQuery} {
			query, args := q(f)
			s, err := d.Statement(t.Context(), "EXPLAIN QUERY PLAN "+query)
			if err != nil {
				t.Fatal(err)
			}
			rows, err := s.Queryx(args...)
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
	list := plan(hub.ReleaseFilter{Limit: 30, Namespace: "example.home", AfterName: "example.a/s100", AfterVersion: "1.0.0"})
	if !strings.Contains(list, "SEARCH r USING INDEX releases_order") || !strings.Contains(list, "agents_mcp") || strings.Contains(list, "TEMP B-TREE") || strings.Contains(list, "SCAN r\n") {
		t.Errorf("a page:\n%s", list)
	}
	if since := plan(hub.ReleaseFilter{Limit: 30, Namespace: "example.home", Deleted: true, UpdatedSince: time.Now()}); !strings.Contains(since, "releases_updated") || !strings.Contains(since, "agents_mcp_updated") {
		t.Errorf("what changed:\n%s", since)
	}
	if of := plan(hub.ReleaseFilter{Limit: 1, Namespace: "example.home", Agent: "weather", Latest: true}); strings.Contains(of, "SCAN") {
		t.Errorf("of one agent:\n%s", of)
	}
}
