package answer_test

import (
	"context"
	"testing"
	"testing/synctest"

	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

// lagging is a publisher whose head does not cover an agent for the next missing questions.
type lagging struct {
	*portal
	missing int
}

// Prove implements answer.Publisher.
func (l *lagging) Prove(ctx context.Context, portal record.PortalID, key record.Hash) *record.Proof {
	if l.missing--; l.missing >= 0 {
		return nil
	}
	return l.portal.Prove(ctx, portal, key)
}

func TestAnswerer_WaitsForTheHeadThatCoversARecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAnswering(t)
		a.tier = record.TierReplica
		asker := recordtest.NewPortal("asker")
		a.index.Put(hub.Agent{ID: "nothing", Name: "nothing", Title: "Title of nothing", Description: "translates words",
			Kind: hub.Link, Visibility: hub.Public})
		behind := &lagging{portal: a.self, missing: 1000}
		a.Publisher = behind
		question := federation.SearchQuestion{Text: "translates"}
		if _, err := a.Answer(t.Context(), asker.ID, question); federation.RefusalOf(err).Reason != federation.ReasonBusy {
			t.Errorf("%v for an agent that is not covered", err)
		}
		behind.missing = 3
		if got, _ := a.ask(asker.ID, question); got["self"] != 1 {
			t.Errorf("%v of an agent that is covered soon", got)
		}
	})
}
