package pictures

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"testing"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// slow is a server that answers nothing before the end of the test.
type slow struct {
	asked chan struct{}
	end   chan struct{}
}

// RoundTrip implements http.RoundTripper.
func (s slow) RoundTrip(*http.Request) (*http.Response, error) {
	s.asked <- struct{}{}
	<-s.end
	return nil, errors.New("the server ends")
}

// load loads a picture in the background until the fetch runs or is refused, and returns the reason of the refusal.
func (s slow) load(t *testing.T, p *Pages, actor ident.Actor) error {
	t.Helper()
	refused := make(chan error, 1)
	go func() {
		_, err := p.loadPicture(t.Context(), actor, "https://pictures.example/1")
		refused <- err
	}()
	select {
	case <-s.asked:
		return nil
	case err := <-refused:
		return err
	}
}

// Guests count by their address, because one client gets as many sessions as it wants; and a reader is refused at once
// when all places are taken.
func TestLoadPicture_LeavesPlacesToOthers(t *testing.T) {
	t.Parallel()
	s := slow{make(chan struct{}), make(chan struct{})}
	defer close(s.end)
	p := New(nil, nil, nil, s, slog.New(slog.DiscardHandler))
	for i := range fetchingOne + 1 {
		err := s.load(t, p, ident.Actor{Kind: ident.Guest, ID: fmt.Sprint("g", i), Addr: fmt.Sprint("192.0.2.", i+1)})
		if refused := fault.Is(err, fault.RateLimited); refused != (i == fetchingOne) {
			t.Errorf("guest %d of one network: %v", i, err)
		}
	}
	for i := fetchingOne; i < fetchingAll; i++ {
		if err := s.load(t, p, ident.Actor{Kind: ident.Person, ID: fmt.Sprint("p", i)}); err != nil {
			t.Fatalf("person %d: %v", i, err)
		}
	}
	if err := s.load(t, p, ident.Actor{Kind: ident.Person, ID: "late"}); !fault.Is(err, fault.RateLimited) {
		t.Errorf("with all places taken: %v", err)
	}
}
