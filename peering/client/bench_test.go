package client_test

import (
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/federation/guard"
)

// BenchmarkSignedRPC is a request with both its sides, without the network.
func BenchmarkSignedRPC(b *testing.B) {
	var n wires
	x, y := newSite(b, &n, "127.0.0.1:1001"), newSite(b, &n, "127.0.0.1:1002")
	d := federation.Decision{In: true, Show: true, State: federation.Active, PerSecond: 100_000}
	y.registry.Say(x.self.ID(), d)
	for b.Loop() {
		if status, body, err := x.do(b, y, http.MethodPost, "/peering/v1/echo", `{"a":1}`); err != nil || status != http.StatusOK {
			b.Fatal(status, body, err)
		}
	}
}

// BenchmarkVerify is the asked side alone.
func BenchmarkVerify(b *testing.B) {
	var n wires
	x, y := newSite(b, &n, "a.example"), newSite(b, &n, "b.example")
	y.registry.Say(x.self.ID(), federation.Decision{In: true, Show: true, State: federation.Active, PerSecond: 100_000})
	if _, err := x.client.Handshake(b.Context(), y.origin, ""); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		b.StopTimer()
		r, err := http.NewRequest(http.MethodGet, y.origin+"/peering/v1/echo/x", nil)
		if err != nil {
			b.Fatal(err)
		}
		if err := guard.SignRequest(r, x.self, strings.Repeat("a", 14)+string(encodeSerial(int(serial.Add(1)))), clock.Now()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		_, _, done, err := y.guard.Verify(r, "192.0.2.1", func(guard.Asker) ([]byte, error) { return nil, nil })
		if err != nil {
			b.Fatal(err)
		}
		done()
	}
}

func encodeSerial(n int) []byte {
	out := make([]byte, 10)
	for i := range out {
		out[i] = byte('a' + n%26)
		n /= 26
	}
	return out
}
