package app_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentsite/internal/app"
	"agentsite/internal/testing/apptest"
)

// cpu is the processor time that this process has used, of users and system.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkSignedRPC is what a request of another portal costs, both sides
// together: two whole portals, the client of one and the server of the other on
// a warm connection. What counts is cpu-µs/op.
func BenchmarkSignedRPC(b *testing.B) {
	quiet := func(c *app.Config) { c.LogLevel = "warn" }
	here, there := apptest.Start(b, quiet), apptest.Start(b, quiet)
	if err := here.Greet(b.Context(), there.URL()); err != nil {
		b.Fatal(err)
	}
	op := there.Operator(b, "op")
	op.Must(http.MethodPatch, "/api/v1/peers/policy", map[string]any{"requests_per_second": 100_000}, http.StatusOK)
	ask := there.AskedBy(here.Portal, http.MethodGet, "/peering/v1/portals/"+there.NetworkID()+"/head", nil)
	rpc := func(b *testing.B) {
		if status, err := ask(b.Context()); err != nil || status != http.StatusOK {
			b.Fatal(status, err)
		}
	}
	for range 20 {
		rpc(b)
	}
	b.Run("floor", floor)
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		before := cpu(b)
		for b.Loop() {
			rpc(b)
		}
		b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
	})
	b.Run("many", func(b *testing.B) {
		b.SetParallelism(8)
		before := cpu(b)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if status, err := ask(b.Context()); err != nil || status != http.StatusOK {
					b.Error(status, err)
					return
				}
			}
		})
		b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
	})
}

// floor is what cannot be saved: the bytes of such an exchange over net/http
// alone, with one signature made and one verified.
func floor(b *testing.B) {
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	text, said := make([]byte, 400), bytes.Repeat([]byte("x"), 2100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sig, err := base64.StdEncoding.DecodeString(r.Header.Get("Signature"))
		if err != nil || !ed25519.Verify(pub, text, sig) {
			w.WriteHeader(http.StatusUnauthorized)
		}
		w.Write(said)
	}))
	b.Cleanup(s.Close)
	b.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	input := strings.Repeat("y", 330)
	before := cpu(b)
	for b.Loop() {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, s.URL, nil)
		if err != nil {
			b.Fatal(err)
		}
		r.Header.Set("Signature-Input", input)
		r.Header.Set("Signature", base64.StdEncoding.EncodeToString(ed25519.Sign(key, text)))
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil || resp.StatusCode != http.StatusOK {
			b.Fatal(resp, err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			b.Fatal(err)
		}
		resp.Body.Close()
	}
	b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
}
