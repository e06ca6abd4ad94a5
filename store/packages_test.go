package store_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentsite/internal/clock"
	"agentsite/internal/packages"
	"agentsite/internal/testing/storetest"
)

// Each portal has one notice for a hash; a later one replaces it, and a removed one is gone.
func TestPackages_KeepNoticesByPortalAndHash(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	notice := func(portal, hash, reason string) packages.Notice {
		return packages.Notice{Kill: packages.Kill{Hash: strings.Repeat(hash, 64), Reason: reason, CreatedAt: clock.Now()},
			Portal: portal + ".example", PortalID: portal, Package: "one/1.0.0"}
	}
	first, other, same := notice("p1", "a", "It lies."), notice("p1", "b", "Spam."), notice("p2", "a", "Slow.")
	later := notice("p1", "a", "It lies about all.")
	for _, x := range []struct{ put, removed, want []packages.Notice }{
		{want: []packages.Notice{}},
		{put: []packages.Notice{first, other, same}, want: []packages.Notice{first, other, same}},
		{put: []packages.Notice{later}, removed: []packages.Notice{other}, want: []packages.Notice{later, same}},
		{removed: []packages.Notice{other, later}, want: []packages.Notice{same}},
	} {
		if err := db.Packages.SaveNotices(t.Context(), x.put, x.removed); err != nil {
			t.Fatal(err)
		}
		got, err := db.Packages.Notices(t.Context())
		if diff := cmp.Diff(x.want, slices.Clone(got)); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	}
}
