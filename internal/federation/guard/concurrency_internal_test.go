package guard

import (
	"fmt"
	"testing"

	"agentsite/internal/record"
)

// A few portals that send as much as they may leave places for those that have nothing under way.
func TestPlaces_KeepsSomeForOthers(t *testing.T) {
	t.Parallel()
	p := newPlaces()
	var all []func()
	for i := range 2 * maxAllAtOnce / maxAtOnce {
		for range maxAtOnce {
			if done, err := p.enter(record.PortalID(fmt.Sprint("hostile", i)), false); err == nil {
				all = append(all, done)
			}
		}
	}
	if len(all) < maxAllAtOnce-keptAtOnce {
		t.Errorf("%d requests were let in", len(all))
	}
	for i := range keptAtOnce / 2 {
		done, err := p.enter(record.PortalID(fmt.Sprint("honest", i)), false)
		if err != nil {
			t.Fatalf("portal %d: %v", i, err)
		}
		all = append(all, done)
	}
	for _, done := range all {
		done()
	}
	if p.countBusy() != 0 || len(p.busy) != 0 {
		t.Errorf("%d requests are counted at the end", p.countBusy())
	}
}
