package guard

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"agentsite/internal/federation"
	"agentsite/internal/ident/httpsig"
)

// SignRequest signs a request to another portal. If the request has a body, its SHA-256 is added as
// Content-Digest and signed.
func SignRequest(r *http.Request, self federation.Signer, nonce string, now time.Time) error {
	id, key, _, err := self.Key(now)
	if err != nil {
		return err
	}
	r.Header.Set(NetworkField, self.Network())
	list := make([]httpsig.Component, len(covered), len(covered)+len(alsoSigned)+1)
	copy(list, covered)
	if r.Header.Get("Content-Digest") != "" {
		list = append(list, httpsig.Component{Name: "content-digest"})
	}
	for _, name := range alsoSigned {
		if _, there := r.Header[name]; there {
			list = append(list, httpsig.Component{Name: strings.ToLower(name)})
		}
	}
	return httpsig.Sign(r, SignatureLabel, httpsig.Params{Components: list, Created: now,
		Expires: now.Add(SignatureLife),
		KeyID:   string(self.ID()) + "/" + string(id), Nonce: nonce, Tag: SignatureTag}, key)
}

// targetOf returns the scheme and authority that signatures of requests to an origin cover.
func targetOf(origin string) httpsig.Target {
	u, err := url.Parse(origin)
	if err != nil {
		return httpsig.Target{}
	}
	return httpsig.Target{Scheme: u.Scheme, Authority: u.Host}
}
