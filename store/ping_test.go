package store_test

import (
	"context"
	"errors"
	"testing"

	"agentsite/internal/testing/storetest"
	"agentsite/store/engine"
)

// While the database does not take writes, each caller of Ping waits as long as its own context.
func TestPing_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	begun, release, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- db.Write(context.Background(), func(engine.Tx) error {
			close(begun)
			<-release
			return nil
		})
	}()
	<-begun
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan error, 2)
		for range cap(got) {
			go func() { got <- db.Ping(ctx) }()
		}
		cancel()
		for range cap(got) {
			if err := <-got; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	}
	close(release)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := db.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}
