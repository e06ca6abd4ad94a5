package limit

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func TestMemory_BoundsAReaderThePortalAndKeepsAReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(MemoryConfig{Total: 100, Share: 40, Reserve: 20})
		reserve := func(r Reader, n int64) (*Reservation, error) { return m.Reserve(t.Context(), r, n) }
		for _, key := range []string{"ada", "bob"} {
			if _, err := reserve(Reader{Key: key}, 40); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			name   string
			reader Reader
			bytes  int64
			want   error
		}{
			{"over the share", Reader{Key: "ada"}, 1, ErrShareUsed},
			{"over the portal's", Reader{Key: "cleo"}, 1, ErrMemoryUsed},
			{"many clients of one address", Reader{Key: "127.0.0.1", Many: true}, 1, ErrMemoryUsed},
			{"the operator's reserve", Reader{Key: "ada", Operator: true}, 20, nil},
			{"over the reserve", Reader{Key: "eve", Operator: true}, 1, ErrMemoryUsed},
		} {
			start := time.Now()
			if _, err := reserve(c.reader, c.bytes); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", c.name, err, c.want)
			}
			if waited := time.Since(start); c.want != nil && waited != maxReaderWait {
				t.Errorf("%s: refused after %s", c.name, waited)
			}
		}
	})
}

func TestMemory_GrantsWaitingReadersInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(MemoryConfig{Total: 10, Share: 10})
		first, err := m.Reserve(t.Context(), Reader{Key: "ada"}, 10)
		if err != nil {
			t.Fatal(err)
		}
		order := make(chan string, 3)
		for _, key := range []string{"bob", "cleo", "dan"} {
			go func() {
				h, err := m.Reserve(t.Context(), Reader{Key: key}, 5)
				if err != nil {
					order <- err.Error()
					return
				}
				order <- key
				if key != "cleo" {
					h.Release()
				}
			}()
			synctest.Wait()
		}
		first.Resize(5) // the answer is smaller than the reservation
		for _, want := range []string{"bob"} {
			if got := <-order; got != want {
				t.Errorf("granted %s, want %s", got, want)
			}
		}
		if got := <-order; got != "cleo" {
			t.Errorf("granted %s, want cleo", got)
		}
		first.Release()
		first.Release()
		if got := <-order; got != "dan" {
			t.Errorf("granted %s, want dan", got)
		}
		synctest.Wait()
		if all, cleo := m.Used("cleo"); all != 5 || cleo != 5 {
			t.Errorf("in use: %d, cleo %d", all, cleo)
		}
	})
}

func TestMemory_LeavesTheLineWithTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(MemoryConfig{Total: 10, Share: 10})
		held := m.Force(Reader{Key: "ada"}, 30) // more than there is: already in memory
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error)
		go func() { _, err := m.Reserve(ctx, Reader{Key: "bob"}, 1); result <- err }()
		synctest.Wait()
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Errorf("a canceled reader got %v", err)
		}
		held.Release()
		if all, _ := m.Used("ada"); all != 0 || len(m.held) != 0 || len(m.waiting) != 0 {
			t.Errorf("%d bytes in use, %d keys, %d waiting", all, len(m.held), len(m.waiting))
		}
	})
}

func TestMemory_RefusesALongLineAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(MemoryConfig{Total: 10, Share: 5})
		m.Force(Reader{Key: "ada"}, 5)
		for range maxReadersWaitingKey {
			go m.Reserve(t.Context(), Reader{Key: "ada"}, 1)
		}
		synctest.Wait()
		start := time.Now()
		if _, err := m.Reserve(t.Context(), Reader{Key: "ada"}, 1); !errors.Is(err, ErrShareUsed) || time.Since(start) != 0 {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		if _, err := m.Reserve(t.Context(), Reader{Key: "bob"}, 5); err != nil {
			t.Errorf("another reader: %v", err)
		}
		time.Sleep(maxReaderWait)
	})
}

// No order of reservations, changes and releases exceeds the bounds, and all bytes come back.
func TestMemory_Invariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := MemoryConfig{Total: 100, Share: 30, Reserve: 10}
		m := NewMemory(cfg)
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // nobody waits
		var holds []*Reservation
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			key := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "key")
			n := rapid.Int64Range(1, 50).Draw(t, "bytes")
			if i := len(holds) - 1; i >= 0 && rapid.Bool().Draw(t, "release") {
				holds[i].Resize(min(holds[i].bytes, n))
				holds[i].Release()
				holds = holds[:i]
				continue
			}
			if h, err := m.Reserve(ctx, Reader{Key: key}, n); err == nil {
				holds = append(holds, h)
			}
			if all, one := m.Used(key); all > cfg.Total-cfg.Reserve || one > cfg.Share {
				t.Fatalf("%d in use, %d of one reader", all, one)
			}
		}
		for _, h := range holds {
			h.Release()
		}
		if all, _ := m.Used("a"); all != 0 || len(m.held) != 0 {
			t.Fatalf("%d in use at the end", all)
		}
	})
}
