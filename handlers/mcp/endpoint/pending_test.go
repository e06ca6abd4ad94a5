package endpoint

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
)

// Who leaves questions open must not use up what there is for all.
func TestPending_BoundsTheQuestionsOfOneCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPending()
		ctx, cancel := context.WithCancel(t.Context())
		refused := make(chan error, 2*maxQuestionsEach)
		ask := func(whose string) {
			go func() {
				if _, err := p.askClient(ctx, &reply{w: httptest.NewRecorder(), events: true}, whose, Request{Method: "elicitation/create"}); ctx.Err() == nil {
					refused <- err
				}
			}()
		}
		for range maxQuestionsEach {
			ask("mallory")
		}
		synctest.Wait()
		ask("mallory")
		synctest.Wait()
		if len(refused) != 1 {
			t.Fatalf("%d refused", len(refused))
		}
		if problem, ok := (<-refused).(*Problem); !ok || problem.Status != http.StatusTooManyRequests {
			t.Errorf("%+v", problem)
		}
		ask("ada")
		synctest.Wait()
		if len(refused) != 0 {
			t.Error("somebody else is refused, too")
		}
		cancel()
		synctest.Wait()
		if len(p.questions)+len(p.asked) != 0 {
			t.Errorf("%d questions of %d are left", len(p.questions), len(p.asked))
		}
	})
}
