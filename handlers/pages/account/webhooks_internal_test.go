package account

import (
	"context"
	"net/http/httptest"
	"testing"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/notify"
)

// leaving has two webhooks listed, of which one is gone when it is read.
type leaving struct{ notify.Store }

func (leaving) Webhooks(context.Context, string) ([]notify.Hook, error) {
	return []notify.Hook{{ID: "gone"}, {ID: "there"}}, nil
}

func (leaving) Webhook(_ context.Context, _, id string) (notify.Hook, error) {
	if id == "gone" {
		return notify.Hook{}, fault.New(fault.NotFound, "Not found.")
	}
	return notify.Hook{ID: id}, nil
}

func (leaving) Attempts(context.Context, string, int) ([]notify.Attempt, error) { return nil, nil }

func TestWebhookRows_LeaveOutWhatWasDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	d := &Pages{hooks: notify.New(notify.Ports{Store: leaving{}}, notify.Config{})}
	rows, err := d.webhookRows(httptest.NewRequest("GET", "/account/webhooks", nil), ident.Actor{Kind: ident.Person, ID: "ada"})
	if err != nil || len(rows) != 1 || rows[0].ID != "there" {
		t.Errorf("%+v %v", rows, err)
	}
}
