package registry_test

import (
	"testing"
	"time"

	"agentsite/internal/registry"
)

// The order of semver.org §11, and of what is no semantic version.
func TestNewerRelease_OrdersVersions(t *testing.T) {
	t.Parallel()
	order := []string{"nightly", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "v1.0.1", "1.9.0",
		"1.10.0", "2.0.0-99999999999999999999999", "2.0.0-100000000000000000000000", "2.0.0", "99999999999999999999999.0.0"}
	for i, a := range order {
		for j, b := range order {
			got := registry.NewerRelease(registry.Release{Version: a}, registry.Release{Version: b})
			if got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("%s and %s: %d", a, b, got)
			}
		}
	}
	if registry.NewerRelease(registry.Release{Version: "1.0.0+b"}, registry.Release{Version: "1.0.0+a"}) != 0 {
		t.Error("metadata of a build makes a version newer")
	}
	now := time.Now()
	for _, v := range []string{"1.0", "01.0.0", "1.0.0-", "1.0.0-01", "1.0.0+", "1.0.0-a_b", "2026-01-01", "", "1.0.0.0", "vv1.0.0", "1.0.0-ä"} {
		if registry.NewerRelease(registry.Release{Version: v, PublishedAt: now}, registry.Release{Version: "0.0.0-0"}) >= 0 {
			t.Errorf("%q is newer than a semantic version", v)
		}
		if registry.NewerRelease(registry.Release{Version: v, PublishedAt: now}, registry.Release{Version: "some", PublishedAt: now.Add(-time.Second)}) <= 0 {
			t.Errorf("%q is not newer than what was published before", v)
		}
	}
}

func TestNamespace(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{"agents.Example.org": "org.example.agents", "example.org:8443": "org.example", "127.0.0.1:8080": "1.0.0.127", "[::1]:80": "1", "::1": "1", "localhost": "localhost", "[2001:db8::5]": "2001-db8--5"} {
		if got := registry.Namespace(host); got != want {
			t.Errorf("%s is %q, want %q", host, got, want)
		}
	}
}
