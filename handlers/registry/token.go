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

// A registry token is what a proved domain gets: the domain and when the token
// ends, sealed, so that nobody else reads or makes one and nothing is stored.
// It is bound to this portal's address, and of no use anywhere but here: no
// other door takes its prefix.
const (
	tokenPrefix = "agsr_"
	tokenLife   = 5 * time.Minute // as the official registry has it
	maxToken    = 1 << 10
)

type claims struct {
	Domain string `json:"d"`
	Below  bool   `json:"b,omitempty"` // the domains below it, too
	Ends   int64  `json:"e"`           // Unix seconds
}

func (d *Door) bound() string { return "mcp-registry/1 " + d.URL }

// issue returns a token for a domain and when it ends.
func (d *Door) issue(domain string, below bool) (token string, ends time.Time, err error) {
	ends = clock.Now().Add(tokenLife)
	b, err := json.Marshal(claims{domain, below, ends.Unix()})
	if err != nil {
		return "", ends, err
	}
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(d.Sealer.Seal(string(b), d.bound())), ends, nil
}

// caller is who a request's credential proves: a publisher by a registry
// token, an account by an API token, else a guest.
func (d *Door) caller(r *http.Request) (ident.Actor, error) {
	token, ok := strings.CutPrefix(ident.BearerToken(r.Header.Get("Authorization")), tokenPrefix)
	if !ok {
		return d.Caller(r)
	}
	bad := fault.New(fault.Unauthenticated, "Invalid or expired registry token: log in again with mcp-publisher login.")
	sealed, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(token) > maxToken {
		return ident.Actor{}, bad
	}
	plain, err := d.Sealer.Open(sealed, d.bound())
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
