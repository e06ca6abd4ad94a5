package registry

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"agentsite/handlers/request"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// A registry token is issued for a proved domain: it holds the domain and the end of its life,
// sealed, so that others can neither read nor make one and nothing is stored. It is bound to this
// portal's address and valid only here: no other endpoint accepts its prefix.
const (
	tokenPrefix = "agsr_"
	tokenLife   = 5 * time.Minute // the lifetime of tokens in the official registry
	maxToken    = 1 << 10
)

type claims struct {
	Domain string `json:"d"`
	Below  bool   `json:"b,omitempty"` // true if the token also covers subdomains
	Ends   int64  `json:"e"`           // end of validity in Unix seconds
}

func (d *Handler) tokenBinding() string { return "mcp-registry/1 " + d.URL }

// issueToken returns an encrypted token for a domain, and the end of its validity.
func (d *Handler) issueToken(domain string, below bool) (token string, ends time.Time, err error) {
	ends = clock.Now().Add(tokenLife)
	b, err := json.Marshal(claims{domain, below, ends.Unix()})
	if err != nil {
		return "", ends, err
	}
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(d.Sealer.Seal(string(b), d.tokenBinding())), ends, nil
}

// callerOf returns the actor of a request's credential: a publisher for a registry token, an
// account for an API token, otherwise a guest.
func (d *Handler) callerOf(r *http.Request) (ident.Actor, error) {
	token, ok := strings.CutPrefix(ident.BearerToken(r.Header.Get("Authorization")), tokenPrefix)
	if !ok {
		return d.Callers.Authenticate(r)
	}
	bad := fault.New(fault.Unauthenticated, "Invalid or expired registry token: log in again with mcp-publisher login.")
	sealed, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(token) > maxToken {
		return ident.Actor{}, bad
	}
	plain, err := d.Sealer.Open(sealed, d.tokenBinding())
	if err != nil {
		return ident.Actor{}, bad
	}
	var c claims
	if err := json.Unmarshal([]byte(plain), &c); err != nil {
		return ident.Actor{}, err
	}
	if c.Ends <= clock.Now().Unix() || !d.admits(c.Domain) {
		return ident.Actor{}, bad
	}
	return ident.Actor{Kind: ident.Publisher, Name: c.Domain, Below: c.Below, Addr: request.ClientAddr(r)}, nil
}
