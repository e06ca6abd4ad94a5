package request_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-chi/chi/v5/middleware"

	"agentsite/handlers/request"
	"agentsite/internal/account"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/testing/storetest"
)

func TestCallers_TokensCountByThePrefixOfTheirAddress(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	accounts := account.New(db, account.Config{CheapHashes: true})
	token, err := accounts.CreateToken(t.Context(), ident.Actor{Kind: ident.Person, ID: ada.ID, Name: ada.Name}, account.NewToken{Label: "t"})
	if err != nil {
		t.Fatal(err)
	}
	c := request.NewCallers(accounts, nil, request.NewConnections(request.ConnectionLimits{All: 100, PerAddress: 100}))
	for addr, want := range map[string]string{"[2001:db8::1:2]:99": "2001:db8::/64", "192.0.2.1:99": "192.0.2.1"} {
		middleware.ClientIPFromRemoteAddr(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if a, err := c.AuthenticateToken(r, token); err != nil || a.ID != ada.ID || a.Addr != want {
				t.Errorf("%s: %+v %v", addr, a, err)
			}
			if _, err := c.AuthenticateToken(r, "agss_"+token[len(ident.TokenPrefix):]); !fault.Is(err, fault.Unauthenticated) {
				t.Errorf("a session's secret: %v", err)
			}
		})).ServeHTTP(httptest.NewRecorder(), func() *http.Request {
			r := httptest.NewRequest("GET", "/", nil).WithContext(context.Background())
			r.RemoteAddr = addr
			return r
		}())
	}
}
