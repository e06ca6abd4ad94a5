package agents

import (
	"math/rand/v2"
	"testing"
	"time"

	"agentsite/internal/hub"
)

// What is unpacked is what was packed, the latency to a thousandth; and
// nothing in a history makes reading it fail.
func TestHistory_Packing(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		c := hub.Contact{At: time.Unix(r.Int64N(1<<40), 0).UTC(), State: liveCodes[r.IntN(len(liveCodes))], Latency: time.Duration(r.Int64N(1 << (10 + r.IntN(42))))}
		got := unpackHistory(packContact(c))
		if len(got) != 1 || !got[0].At.Equal(c.At) || got[0].State != c.State || (got[0].Latency-c.Latency).Abs() > c.Latency/1000+time.Microsecond {
			t.Fatalf("%+v came back as %+v", c, got)
		}
	}
	for _, d := range []time.Duration{-1, 0, 1 << 62} {
		c := unpackHistory(packContact(hub.Contact{At: time.Time{}, State: "odd", Latency: d}))[0]
		if c.State != hub.Unknown || c.Latency < 0 || d <= 0 && c.Latency != 0 {
			t.Errorf("%d came back as %+v", d, c)
		}
	}
	for n := range 40 {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		if got := unpackHistory(b); len(got) != n/ContactBytes {
			t.Errorf("%d bytes are %d contacts", n, len(got))
		}
		if got := addContact(b, hub.Contact{At: time.Unix(1, 0)}); len(got)%ContactBytes != 0 {
			t.Errorf("%d bytes after %d", len(got), n)
		}
	}
}
