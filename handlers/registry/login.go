package registry

import (
	"context"
	"encoding/hex"
	"net/http"
	"sync"
	"time"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/registry"
	"agentsite/internal/weborigin"
)

// stampWindow bounds the difference of a signed time from now, in both directions.
const stampWindow = 15 * time.Second

type loginJSON struct {
	Domain    string `json:"domain"`
	Timestamp string `json:"timestamp"`
	Signature string `json:"signed_timestamp"`
}

type loggedInJSON struct {
	Token string `json:"registry_token"`
	Ends  int64  `json:"expires_at"` // end of the token's validity in Unix seconds
}

func (d *Handler) loginHTTP(w http.ResponseWriter, r *http.Request) error {
	return d.login(w, r, "HTTP authentication failed", d.httpKeys, false)
}

func (d *Handler) loginDNS(w http.ResponseWriter, r *http.Request) error {
	return d.login(w, r, "DNS authentication failed", d.dnsKeys, true)
}

// loginNone issues a token for the anonymous namespace to any caller. It works only on a portal that is
// reachable from its own machine alone.
func (d *Handler) loginNone(w http.ResponseWriter, r *http.Request) error {
	if !d.Loopback || !d.Live.OpensAccounts() {
		return fault.New(fault.Forbidden, "Publishing needs a proof of a domain. Use mcp-publisher login http or dns; see %s/docs/connect.", d.URL)
	}
	if err := d.mayLogIn(r); err != nil {
		return err
	}
	return d.loggedIn(w, registry.AnonymousDomain, false)
}

// mayLogIn returns an error if the client's address has logged in too often, because each login makes
// this portal look up a domain.
func (d *Handler) mayLogIn(r *http.Request) error {
	if wait, ok := d.logins.Allow(request.ClientAddr(r)); !ok {
		return fault.Limited(wait, "You logged in often in a short time. Wait a moment.")
	}
	return nil
}

// login issues a token for a domain if the request contains the present time, signed with one of the
// domain's keys. below is true if the token also covers subdomains. failed is the first sentence of the
// error of a bad signature.
func (d *Handler) login(w http.ResponseWriter, r *http.Request, failed string,
	keys func(context.Context, string) ([]string, error), below bool) error {
	if err := d.mayLogIn(r); err != nil {
		return err
	}
	var in loginJSON
	if err := request.DecodeJSON(w, r, 16<<10, &in, true); err != nil {
		return err
	}
	if !d.Live.OpensAccounts() {
		return fault.New(fault.Forbidden, "On this portal accounts publish, and domains alone do not. Ask its operator for an account and publish with an API token of it; see %s/docs/connect.", d.URL)
	}
	domain := weborigin.ReadHost(in.Domain)
	err := d.proveDomain(r.Context(), domain, in, keys)
	if err != nil {
		return refuse(http.StatusUnauthorized, failed,
			&fault.Error{Kind: fault.Unauthenticated, Safe: fault.As(err).Safe, Err: err})
	}
	return d.loggedIn(w, domain, below)
}

func (d *Handler) proveDomain(ctx context.Context, domain string, in loginJSON,
	keys func(context.Context, string) ([]string, error)) error {
	if err := registry.ProvesNamespace(domain, d.Loopback); err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339, in.Timestamp)
	now := clock.Now()
	switch {
	case err != nil || len(in.Timestamp) > 64:
		return fault.New(fault.Invalid, "invalid timestamp format: sign a time such as 2026-01-31T12:00:00Z")
	case at.Before(now.Add(-stampWindow)) || at.After(now.Add(stampWindow)):
		return fault.New(fault.Invalid, "timestamp outside valid window (±15 seconds): check the clock of your machine")
	case at.Before(d.Started.Truncate(time.Second)):
		return fault.New(fault.Invalid, "the timestamp was signed before this portal started: sign a new one")
	}
	signature, err := hex.DecodeString(in.Signature)
	if err != nil {
		return fault.New(fault.Invalid, "invalid signature format, must be hex")
	}
	records, err := keys(ctx, domain)
	if err != nil {
		return err
	}
	if err := verifySignature(records, []byte(in.Timestamp), signature); err != nil {
		return err
	}
	return d.used.takeStamp(domain+" "+in.Timestamp, at.Add(stampWindow), now)
}

func (d *Handler) loggedIn(w http.ResponseWriter, domain string, below bool) error {
	token, ends, err := d.issueToken(domain, below)
	if err != nil {
		return err
	}
	d.Log.Info("domain proved to the MCP registry", "domain", domain, "below", below)
	w.Header().Set("Cache-Control", "no-store")
	return respond.WriteJSON(w, http.StatusOK, loggedInJSON{token, ends.Unix()})
}

// admits reports whether tokens for a domain are accepted under the present configuration, which may have
// changed since the token was issued.
func (d *Handler) admits(domain string) bool {
	if domain == registry.AnonymousDomain {
		return d.Live.OpensAccounts() && d.Loopback
	}
	return d.Live.OpensAccounts()
}

// usedStamps holds the signed times that were accepted, so that each is accepted once. A time stays until
// it is too old to be accepted anyway. The entries are times and not signatures, because one key can make
// many signatures of the same time.
type usedStamps struct {
	mu    sync.Mutex // guards until
	until map[string]time.Time
}

// maxStamps bounds the entries of usedStamps: with a window of 30 s, 1,000 logins a second.
const maxStamps = 30_000

func (u *usedStamps) takeStamp(key string, until, now time.Time) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, twice := u.until[key]; twice {
		return fault.New(fault.Invalid, "this timestamp was used already: sign a new one, a second later")
	}
	if len(u.until) >= maxStamps {
		for k, end := range u.until {
			if end.Before(now) {
				delete(u.until, k)
			}
		}
		if len(u.until) >= maxStamps {
			return fault.New(fault.Invalid, "very many log in at this moment: try again in a minute")
		}
	}
	u.until[key] = until
	return nil
}
