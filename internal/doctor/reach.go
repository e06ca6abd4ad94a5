package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/egress"
	"agentsite/internal/record"
	"agentsite/internal/weborigin"
)

const (
	// askFor is the time limit for a portal's answer, maxAnswer its size limit in bytes.
	askFor    = 5 * time.Second
	maxAnswer = 256 << 10
)

// formatSize formats a number of bytes with a unit, for people.
func formatSize(n uint64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

// checkSettings checks whether address, listen address and proxies fit together. It is skipped for a
// portal that does not run, because its settings are unknown.
func (s Subject) checkSettings(r *Report) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" {
		r.Add(Settings, Fault, "Give the portal's address with --url.", "The portal's address %q cannot be read.",
			s.URL)
		return
	}
	host, _, _ := net.SplitHostPort(s.Listen)
	here := weborigin.IsLoopback(u.Hostname())
	before := len(r.Findings)
	switch {
	case s.Network == "":
	case !record.ValidOrigin(s.URL):
		r.Add(Settings, Fault, "Put a proxy with a certificate before it and start it with --url https://…; or "+
			"with --network off for a portal without a network.",
			"The portal is in no network: portals use only https:// addresses, and its address is %s.", s.URL)
	case here:
		r.Add(Settings, Note, "Start it with --url https://… to make it reachable for others.",
			"The address %s means this machine: only portals on this machine reach it.", s.URL)
	}
	if s.Running && here && !weborigin.IsLoopback(host) {
		r.Add(Settings, Fault, "Set its public address with --url, or listen on 127.0.0.1.",
			"It listens on %s, which other machines reach, and its address is %s: they are answered 421.", s.Listen,
			s.URL)
	}
	if s.Running && u.Scheme == "https" && !s.Proxies {
		r.Add(Settings, Fault, "Give the proxy's address with --trusted-proxies, for example --trusted-proxies "+
			"127.0.0.1.", "The portal is behind a proxy (%s, while it listens on %s without TLS) and trusts no "+
			"forwarding headers: all visitors have the proxy's address and share its limits.", s.URL, s.Listen)
	}
	if len(r.Findings) == before {
		network := "in the network " + s.Network
		if s.Network == "" {
			network = "in no network"
		}
		r.Add(Settings, OK, "", "The portal is %s, %s.", s.URL, network)
	}
}

// FewDescriptors is the limit of open files below which an operator is warned: it leaves less than 2,048
// connections.
const FewDescriptors = 4096

// checkMachine reports limits and faults of the machine that the running portal has noticed.
func (s Subject) checkMachine(r *Report) {
	if s.Descriptors > 0 && s.Descriptors < FewDescriptors {
		r.Add(Settings, Note, "Raise the limit: LimitNOFILE=65536 in the systemd unit, or ulimit -n 65536 before "+
			"the start.", "The portal may open %d files, which is enough for %d connections.", s.Descriptors,
			s.Descriptors/2)
	}
	if s.Meanings != nil {
		if text, ok := s.Meanings.Describe(); ok {
			r.Add(Settings, OK, "", "Searches by meaning: %s.", text)
		} else {
			r.Add(Settings, Fault, "Start that server, or mend the address, model or key of --embeddings.",
				"Searches by meaning: %s.", text)
		}
	}
	if s.SetBack.By > 0 {
		r.Add(Clock, Note, "Let a time service set the clock slowly, for example chrony or systemd-timesyncd.",
			"The clock of this machine was set back by %s at %s.", s.SetBack.By, s.SetBack.At.Format(time.RFC3339))
	}
}

// answer is the part of an HTTP answer that the checks need.
type answer struct {
	status int
	header http.Header
	body   []byte
	took   time.Duration
}

// getURL makes an unsigned GET request with the limits askFor and maxAnswer.
func (s Subject) getURL(ctx context.Context, address string) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	began := time.Now()
	resp, err := s.Web.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	took := time.Since(began)
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxAnswer {
		return nil, errors.New("the answer is too long")
	}
	return &answer{resp.StatusCode, resp.Header, b, took}, nil
}

// wellKnownCard is the part that the checks need of a portal's answer at wellKnown.
type wellKnownCard struct {
	Network string          `json:"network"`
	Portal  record.PortalID `json:"portal"`
	Origin  string          `json:"origin"`
	Card    json.RawMessage `json:"card"`
}

// wellKnown is the path at which every portal serves its card.
const wellKnown = "/.well-known/agentsite"

// checkReach requests the portal's own public address from this machine, as other portals would, and
// checks that the portal itself answers.
func (s Subject) checkReach(ctx context.Context, r *Report) {
	switch {
	case s.Network == "" || !record.ValidOrigin(s.URL):
		return
	case !s.Running:
		r.Add(Reach, Skipped, "", "The portal does not run, so it cannot be reached.")
		return
	case s.Web == nil:
		return
	}
	at := s.URL + wellKnown
	a, err := s.getURL(ctx, at)
	if err != nil {
		do := "Check DNS, firewall and proxy: others use this very address. `curl -v " + at +
			"` from another machine shows details."
		switch egress.CodeOf(err) {
		case egress.TLS:
			do = "Get a certificate that browsers accept for this name; other portals refuse any other."
		case egress.Redirect:
			do = "Answer there without a redirect, or set --url to its target: portals do not follow redirects."
		case egress.Private:
			r.Add(Reach, Skipped, "Ask `curl "+at+"` from outside.",
				"The name of %s leads to a private address here, which the portal does not call (--allow-cidr). "+
					"Whether others reach it is unknown.", s.URL)
			return
		}
		r.Add(Reach, Fault, do, "The portal cannot be reached at its own address %s: %v.", s.URL, err)
		return
	}
	var w wellKnownCard
	err = json.Unmarshal(a.body, &w)
	switch {
	case a.status != http.StatusOK:
		r.Add(Reach, Fault, "Have the proxy pass "+wellKnown+
			" and /peering/ on to the portal, with the Host header as it came.",
			"%s answers %d instead of this portal's card.", at, a.status)
	case err != nil:
		r.Add(Reach, Fault, "Have the proxy pass "+wellKnown+" on to the portal.", "The server at %s is not a portal.",
			at)
	case w.Portal != s.ID:
		r.Add(Reach, Fault, "Check which portal runs there: an old one, or a cache?",
			"The portal at %s is another one, %.60s. This one is %s.", s.URL, w.Portal, s.ID)
	case w.Network != s.Network:
		r.Add(Reach, Fault, "Check which process answers there.",
			"At %s this portal answers for the network %.40q, and not for %s.", s.URL, w.Network, s.Network)
	case len(bytes.TrimSpace(w.Card)) == 0:
		r.Add(Reach, Fault, "agentsite keys list", "The portal has no card to publish.")
	default:
		r.Add(Reach, OK, "", "%s answers with this portal's card.", s.URL)
	}
}

// keysSoon is the remaining lifetime of a card or key below which a finding is added.
const keysSoon = 14 * 24 * time.Hour

// checkKeys checks that the card and the signing keys are valid and not about to expire.
func (s Subject) checkKeys(ctx context.Context, r *Report) {
	if s.Keyring == nil {
		return
	}
	st, err := s.Keyring.Keys(ctx)
	if err != nil {
		r.Add(Keys, Fault, "Restore the key files from a backup.", "The portal's keys cannot be used: %v.", err)
		return
	}
	now, before, signs := clock.Now(), len(r.Findings), false
	for _, k := range st.Keys {
		signs = signs || k.Signs
	}
	if !signs {
		r.Add(Keys, Fault, signNow(st.Away), "The portal has no valid signing key now: other portals refuse its "+
			"messages.")
	}
	left := st.Expires.Sub(now)
	switch {
	case st.Expires.IsZero():
		r.Add(Keys, Fault, signNow(st.Away), "The portal has no card: other portals cannot verify it.")
	case left <= 0:
		r.Add(Keys, Fault, signNow(st.Away), "The portal's card expired at %s: other portals refuse its signatures.",
			formatTime(st.Expires))
	case st.Due != "" && left < keysSoon:
		r.Add(Keys, Fault, signNow(st.Away), "%s", st.Due)
	case st.Due != "":
		r.Add(Keys, Note, signNow(st.Away), "%s", st.Due)
	}
	if st.Elsewhere != nil {
		do := "Stop the copy. Then run on the one that stays: agentsite keys rotate"
		if st.Away {
			do += ", and " + signNow(true)
		}
		r.Add(Keys, Fault, do, "%s", st.Elsewhere)
	}
	if len(r.Findings) == before {
		root := "the portal holds its root key"
		if st.Away {
			root = "its root key is kept elsewhere"
		}
		r.Add(Keys, OK, "", "The card is good until %s; %s.", formatTime(st.Expires), root)
	}
}

func signNow(away bool) string {
	if away {
		return "agentsite keys sign --root FILE"
	}
	return "agentsite keys rotate"
}

// formatTime formats a time in UTC with minutes, for people.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
