package app_test

import (
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/storetest"
)

// An account that has used its storage is refused with a remedy, sees its usage on its page and in the API,
// and stores again after a deletion. Operators see the greatest accounts and are not refused.
func TestStorage_OfAnAccount(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t, func(c *app.Config) {
		c.Limits = "stored-per-account=1M,stored-per-account-daily=3M,disk-free=0,disk-reserve=0"
	})
	op, ada := w.Operator(t, "op"), w.User(t, "ada")
	type storage struct{ Bytes, Limit, Today, DailyLimit int64 }
	me := func(c *apptest.Client) (s storage) {
		t.Helper()
		var out struct {
			Storage struct {
				Bytes, Limit, Today int64
				DailyLimit          int64 `json:"daily_limit"`
			}
		}
		c.Get(http.MethodGet, "/api/v1/me", nil, http.StatusOK, &out)
		return storage(out.Storage)
	}
	say := func(c *apptest.Client, room string) apptest.Answer {
		return c.Do(http.MethodPost, "/api/v1/conversations/"+room+"/messages", map[string]any{"client_id": apptest.Fresh("m"), "text": strings.Repeat("x", 60_000)})
	}
	room, opRoom := ada.Conversation(), op.Conversation()
	n := 0
	for ; n < 100; n++ {
		if a := say(op, opRoom); a.Status != http.StatusCreated {
			t.Fatalf("the operator is refused: %+v", a)
		}
		a := say(ada, room)
		if a.Status == http.StatusCreated {
			continue
		}
		if a.Status != http.StatusTooManyRequests || a.Kind() != "rate_limited" || a.Header.Get("Retry-After") == "" || !strings.Contains(a.Body, "of 1 MiB on this portal") {
			t.Errorf("refused with %+v", a)
		}
		break
	}
	if n != 17 {
		t.Errorf("%d messages of 60,000 bytes were stored in 1 MiB", n)
	}
	if s := me(ada); s.Bytes < 900_000 || s.Limit != 1<<20 || s.Today < s.Bytes || s.DailyLimit != 3<<20 {
		t.Errorf("the API says %+v", s)
	}
	if s := me(op); s.Bytes < 900_000 || s.Limit != 0 {
		t.Errorf("the API says to the operator %+v", s)
	}
	if body := ada.Must(http.MethodGet, "/account", nil, http.StatusOK).Body; !strings.Contains(body, "KiB of 1 MiB") || !strings.Contains(body, `max="100" value="9`) {
		t.Error("the account page does not show the storage")
	}
	if body := op.Must(http.MethodGet, "/admin/storage", nil, http.StatusOK).Body; !strings.Contains(body, "/admin/people?q=ada") || !strings.Contains(body, "1 MiB each, 3 MiB a day") || strings.Contains(body, "free on the disk") == storetest.OnPostgres() {
		t.Error("the operator does not see the account")
	}
	ada.Must(http.MethodGet, "/admin/storage", nil, http.StatusForbidden)
	ada.Must(http.MethodDelete, "/api/v1/conversations/"+room, nil, http.StatusNoContent)
	room = ada.Conversation()
	if a := say(ada, room); a.Status != http.StatusCreated {
		t.Errorf("after the deletion: %+v", a)
	}
	if a := say(w.Guest(t), room); a.Status == http.StatusCreated {
		t.Errorf("a guest wrote: %+v", a)
	}
}
