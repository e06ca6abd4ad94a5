package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"agentsite/internal/account"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/testing/storetest"
)

// owned counts what an account owns one by one.
func owned(t *testing.T, db *storetest.DB, id string) (n int) {
	t.Helper()
	list, err := db.AgentsOf(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		if a.OwnerID == id {
			n++
		}
	}
	return n
}

// Whatever is done to agents, and many at once, a count that was remembered
// is the one that the rows give when nothing is under way.
func TestCountAgents_IsWhatTheRowsSay(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	people := make([]account.Account, 4)
	for i := range people {
		people[i] = storetest.Account(t, db, fmt.Sprint("owner-", i))
	}
	ctx := context.Background()
	var (
		mu  sync.Mutex // guards ids
		ids []string
	)
	some := func(r *rand.Rand) string {
		mu.Lock()
		defer mu.Unlock()
		if len(ids) == 0 {
			return "none"
		}
		return ids[r.IntN(len(ids))]
	}
	stored := func(list ...hub.Agent) {
		mu.Lock()
		defer mu.Unlock()
		for _, a := range list {
			ids = append(ids, a.ID)
		}
	}
	step := func(r *rand.Rand) error {
		who := people[r.IntN(len(people))]
		name := func() string { return fmt.Sprint("a", r.IntN(400)) } // often taken
		var err error
		switch r.IntN(10) {
		case 0, 1, 2, 3:
			a := full(who, name())
			if err = db.CreateAgent(ctx, a, nil); err == nil {
				stored(a)
			}
		case 4: // of two owners, often refused after some were stored
			var list []hub.Agent
			for k := range 3 {
				list = append(list, full(people[(r.IntN(2)+k)%len(people)], name()))
			}
			if err = db.CreateAgents(ctx, list); err == nil {
				stored(list...)
			}
		case 5: // refused after its name was taken for it
			a := full(account.Account{ID: ident.NewID()}, name())
			if err = db.CreateAgent(ctx, a, nil); err == nil {
				return fmt.Errorf("an agent of nobody was stored")
			}
			return nil
		case 6:
			err = db.DeleteAgent(ctx, some(r))
		case 7:
			id := some(r)
			if err = db.SetOffer(ctx, id, who.ID); err == nil {
				err = db.Transfer(ctx, id, who.ID, true, 1000)
			}
		case 8:
			err = db.SetLiveness(ctx, some(r), hub.Liveness{State: hub.Alive, CheckedAt: clock.Now()}, clock.Now(), 0)
		case 9:
			_, err = db.CountAgents(ctx, who.ID)
		}
		if fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound) || fault.Is(err, fault.Invalid) {
			return nil
		}
		return err
	}
	seed := rand.Uint64()
	for round := range 30 {
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(4*round+w)))
				for range 4 {
					if err := step(r); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		for _, p := range people {
			want := owned(t, db, p.ID)
			for range 2 { // maybe read, and remembered
				if n, err := db.CountAgents(ctx, p.ID); err != nil || n != want {
					t.Fatalf("seed %d: %s has %d agents and the count is %d, %v", seed, p.Name, want, n, err)
				}
			}
		}
	}
	if total := owned(t, db, people[0].ID); total == 0 {
		t.Error("nothing was ever stored")
	}
}
