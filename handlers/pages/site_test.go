package pages_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"agentsite/handlers"
	"agentsite/internal/account"
	"agentsite/internal/testing/sitetest"
)

// TestPages_GivenUpIsNoError asks for pages and goes away: that is nothing an
// operator has to look into.
func TestPages_GivenUpIsNoError(t *testing.T) {
	var log bytes.Buffer
	s := sitetest.NewSiteWith(t, account.Open, func(cfg *handlers.Config) { cfg.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, path := range []string{"/", "/agents", "/agents/guide", "/agents/nobody", "/nowhere"} {
		w := httptest.NewRecorder()
		s.Router.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://portal.test"+path, nil))
		if w.Body.Len() == 0 {
			t.Errorf("%s: no answer at all", path)
		}
	}
	if log.Len() > 0 {
		t.Errorf("the log says\n%s", log.String())
	}
}
