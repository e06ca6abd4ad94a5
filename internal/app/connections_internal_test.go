package app

import (
	"testing"

	"agentsite/internal/settings"
)

// The parts of the descriptors never add up to more than the process has, and no account has more than a
// half of any part.
func TestNewConnectionLimits_DividesTheDescriptors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ descriptors, clients, held, links, linksPerAccount int }{
		{256, 128, 64, 32, 16},
		{1024, 512, 256, 128, 64},
		{20_000, 10_000, 5_000, 2_500, 1_100},
		{maxDescriptors, 20_000, 10_000, 5_000, 1_100},
	} {
		set, err := settings.Defaults().Parse()
		if err != nil {
			t.Fatal(err)
		}
		l := newConnectionLimits(set, c.descriptors)
		if l.clients.All != c.clients || l.held.All != c.held || l.links != c.links || l.linksPerAccount != c.linksPerAccount {
			t.Errorf("%d descriptors: %+v", c.descriptors, l)
		}
		if l.clients.All > c.descriptors/2 || l.held.All+l.links > l.clients.All*3/4 || l.clients.PerAddress > l.clients.All/4 {
			t.Errorf("%d descriptors leave no reserve: %+v", c.descriptors, l)
		}
	}
}

func TestReadDescriptorLimit(t *testing.T) {
	t.Parallel()
	if n, err := readDescriptorLimit(); err != nil || n < 64 || n > maxDescriptors {
		t.Errorf("%d, %v", n, err)
	}
}
