package guard

import (
	"context"
	"log/slog"
	"maps"
	"testing"
	"testing/synctest"
	"time"
)

// nonceDisk keeps nonces as the database does, by a clock that is set.
type nonceDisk struct {
	list map[[16]byte]time.Time
	now  time.Time
}

func (d *nonceDisk) KeepNonces(_ context.Context, list map[[16]byte]time.Time) error {
	maps.DeleteFunc(d.list, func(_ [16]byte, until time.Time) bool { return !until.After(d.now.Add(-NoncesKept)) })
	maps.Copy(d.list, list)
	return nil
}

func (d *nonceDisk) LoadNonces(_ context.Context, yield func([16]byte, time.Time)) (bool, error) {
	for n, until := range d.list {
		if until.After(d.now.Add(-NoncesKept)) {
			yield(n, until)
		}
	}
	return true, nil
}

func (d *nonceDisk) EndNonces(context.Context) error { return nil }

// TestUsed_ReplayAfterTheClockWasSet plays a request again whenever the clock
// says that it counts: the clock is set on or back, once or twice, with and
// without a start in between, and others ask all the time.
func TestUsed_ReplayAfterTheClockWasSet(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		jumps []time.Duration // of the clock, one after each wait
		wait  time.Duration   // by the clock that nobody sets
		start bool            // after each jump
		// lets is whether a new request counts after the last jump.
		lets bool
	}{
		"on and back":                     {jumps: []time.Duration{10 * time.Minute, -10 * time.Minute}, wait: 10 * time.Second, lets: true},
		"back":                            {jumps: []time.Duration{-10 * time.Minute}, wait: 10 * time.Minute, lets: true},
		"on, long there, and back":        {jumps: []time.Duration{10 * time.Minute, -10 * time.Minute}, wait: 2 * time.Hour, lets: true},
		"on and back, with starts":        {jumps: []time.Duration{10 * time.Minute, -10 * time.Minute}, wait: 10 * time.Second, start: true, lets: true},
		"long on and back, with starts":   {jumps: []time.Duration{10 * time.Minute, -10 * time.Minute}, wait: 2 * time.Hour, start: true, lets: true},
		"back by two hours":               {jumps: []time.Duration{-2 * time.Hour}, wait: 2 * time.Hour},
		"back by two hours, with a start": {jumps: []time.Duration{-2 * time.Hour}, wait: 2 * time.Hour, start: true},
		"back by seconds":                 {jumps: []time.Duration{-30 * time.Second}, wait: time.Minute, lets: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var off time.Duration
				now := func() time.Time { return time.Now().Add(off) }
				disk := &nonceDisk{list: make(map[[16]byte]time.Time)}
				open := func() *used {
					disk.now = now()
					u, _, err := newUsed(t.Context(), disk, slog.New(slog.DiscardHandler))
					if err != nil {
						t.Fatal(err)
					}
					return u
				}
				u := open()
				type request struct {
					nonce [16]byte
					until time.Time
				}
				var sent []request
				ask := func() use {
					n := [16]byte{1, byte(len(sent)), byte(len(sent) >> 8), byte(len(sent) >> 16)}
					r := request{n, now().Add(2*SignatureLife + time.Second)}
					sent = append(sent, r)
					got := u.first(r.nonce, r.until, now())
					disk.now = now()
					if err := u.writeWaiting(t.Context()); err != nil {
						t.Fatal(err)
					}
					return got
				}
				replay := func() {
					for _, r := range sent {
						// Whoever verifies lets nothing by whose time is over.
						if r.until.After(now()) && !r.until.After(now().Add(4*SignatureLife)) && u.first(r.nonce, r.until, now()) == unused {
							t.Fatalf("a request that counts until %v is taken again at %v", r.until, now())
						}
					}
				}
				pass := func(d time.Duration) {
					for end := time.Now().Add(d); time.Now().Before(end); {
						ask()
						time.Sleep(20 * time.Second)
						replay()
					}
				}
				pass(c.wait)
				for _, j := range c.jumps {
					off += j
					if c.start {
						u = open()
					}
					if lets := ask() == unused; j == c.jumps[len(c.jumps)-1] && lets != c.lets {
						t.Errorf("a new request counts: %v", lets)
					}
					replay()
					pass(c.wait)
				}
				pass(3 * time.Hour)
				if ask() != unused {
					t.Error("a new request does not count hours later")
				}
			})
		})
	}
}
