package a2a

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"

	"agentsite/internal/egress"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/lenientjson"
)

// maxCardBytes is the maximum size of a card in bytes; a larger one is an error.
const maxCardBytes = 256 << 10

// WellKnown is the path of a card below the address of its agent (A2A 1.0 §8.2 and late 0.3).
const WellKnown = "/.well-known/agent-card.json"

// wellKnown lists the paths at which a card is looked for. The second is that of early 0.3.
var wellKnown = []string{WellKnown, "/.well-known/agent.json"}

// CardPath returns the path of the card of this portal's agent with that name.
func CardPath(name string) string { return "/agents/" + url.PathEscape(name) + WellKnown }

// ErrNoCard is wrapped by ReadCard's error when the host answered without an agent card: another
// service may run there.
var ErrNoCard = errors.New("no agent card")

// ReadCard reads the agent card at or below an address: the address itself when it names a JSON file,
// else the well-known names below it, then the address itself, then the well-known names of each folder
// above, the host's root last. The result is cut to the bounds of this package; the proposed name passes
// ident.CheckName.
//
// A card may name an interface on another host only when card and interface are both https.
//
// Errors are Invalid faults that describe the answer that was found instead.
func ReadCard(ctx context.Context, rt http.RoundTripper, address string) (Card, hub.Described, error) {
	return readCard(ctx, rt, address, func(u *url.URL) []string {
		if strings.HasSuffix(u.Path, ".json") {
			return cardsAt(u)
		}
		return append(cardsAt(u), cardsAbove(u)...)
	})
}

// ReadCardAt is ReadCard for cards at or below the address only.
func ReadCardAt(ctx context.Context, rt http.RoundTripper, address string) (Card, hub.Described, error) {
	return readCard(ctx, rt, address, cardsAt)
}

// ReadCardAbove is ReadCard for cards in the folders above the address only. Card.Addresses shows whether such a card
// is that of the agent at the address, or of another agent of the host.
func ReadCardAbove(ctx context.Context, rt http.RoundTripper, address string) (Card, hub.Described, error) {
	return readCard(ctx, rt, address, cardsAbove)
}

// readCard reads the first card at the candidates of an address.
func readCard(ctx context.Context, rt http.RoundTripper, address string,
	candidates func(*url.URL) []string) (Card, hub.Described, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return Card{}, hub.Described{}, invalidCard(err, "That is not an address like https://example.com/agent.")
	}
	client := &http.Client{Transport: rt}
	// first is the error at the most specific address, which explains a failure best.
	var first error
	for _, candidate := range candidates(u) {
		b, err := fetchCard(ctx, client, candidate)
		if err != nil {
			if e, ok := errors.AsType[*Error](err); !ok || e.Fault == FaultAuth {
				return Card{}, hub.Described{},
					invalidCard(err, "The agent card at %s could not be read: %s.", u.Host, Reason(err))
			}
			if first == nil {
				first = err
			}
			continue
		}
		c, d, ok, err := parseCard(b, candidate)
		if ok && err != nil {
			return Card{}, hub.Described{}, invalidCard(err, "There is an agent card, but %s.",
				strings.TrimPrefix(Reason(err), "the agent "))
		}
		if ok {
			return c, d, nil
		}
		if first == nil {
			first = shapeError(http.StatusOK, "it answered with JSON that is not an agent card")
		}
	}
	if first == nil {
		first = shapeError(0, "there is no folder above it")
	}
	return Card{}, hub.Described{}, invalidCard(errors.Join(ErrNoCard, first), "No agent card was found at %s: %s.",
		u.Host, Reason(first))
}

func invalidCard(err error, format string, args ...any) error {
	f := fault.Wrap(fault.Invalid, err, format, args...)
	f.Fields = map[string]string{"endpoint": f.Safe}
	return f
}

// cardsAt lists the addresses at which the card of the agent at u may be, in the order of ReadCard, at most three.
func cardsAt(u *url.URL) []string {
	base := *u
	base.Fragment, base.RawFragment = "", ""
	self := base.String()
	if strings.HasSuffix(base.Path, ".json") {
		return []string{self}
	}
	dir := path.Clean("/" + base.Path)
	if dir == "/" {
		return wellKnownIn(base, dir)
	}
	return append(wellKnownIn(base, dir), self)
}

// cardsAbove lists the addresses of cards in the folder above u and in the root of its host, at most four.
func cardsAbove(u *url.URL) []string {
	dir := path.Clean("/" + u.Path)
	if dir == "/" {
		return nil
	}
	var out []string
	if up := path.Dir(dir); up != "/" {
		out = wellKnownIn(*u, up)
	}
	return append(out, wellKnownIn(*u, "/")...)
}

// wellKnownIn lists the addresses of a card in a folder of the host of base.
func wellKnownIn(base url.URL, dir string) (out []string) {
	base.Fragment, base.RawFragment, base.RawQuery, base.RawPath = "", "", "", ""
	for _, w := range wellKnown {
		base.Path = strings.TrimRight(dir, "/") + w
		out = append(out, base.String())
	}
	return out
}

func fetchCard(ctx context.Context, client *http.Client, address string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json, application/a2a+json")
	resp, err := client.Do(req)
	if err != nil {
		if egress.CodeOf(err) == egress.Redirect {
			return nil, shapeError(0, "%s", egress.Reason(err))
		}
		return nil, err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden:
		return nil, &Error{Fault: FaultAuth, Status: resp.StatusCode, Text: "it asks for credentials"}
	case resp.StatusCode != http.StatusOK:
		return nil, shapeError(resp.StatusCode, "it answered with HTTP %d", resp.StatusCode)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxCardBytes+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxCardBytes {
		return nil, limitError("it is larger than %d KiB", maxCardBytes>>10)
	}
	if b = unwrapCard(b); !isObject(b) {
		return nil, notA2AError(b, resp.StatusCode, false)
	}
	return b, nil
}

// unwrapCard returns the card in the text that a server sent: without a mark and text after it, out of a list of one,
// and out of an object around it.
func unwrapCard(b []byte) []byte {
	b = lenientjson.TrimMark(b)
	var first json.RawMessage
	if json.NewDecoder(bytes.NewReader(b)).Decode(&first) == nil {
		b = first
	}
	b = unwrapOne(b)
	var o members
	if !isObject(b) || lenientjson.Decode(b, &o) != nil || o["name"] != nil {
		return b
	}
	for _, name := range []string{"agentCard", "agent_card", "card", "result", "data", "root"} {
		if membersOf(o[name])["name"] != nil {
			return o[name]
		}
	}
	return b
}

// ParseCard parses a card that was fetched from address earlier. It applies the bounds of ReadCard.
// Errors are Invalid faults.
func ParseCard(b []byte, address string) (hub.Described, error) {
	_, d, ok, err := parseCard(b, address)
	switch {
	case !ok:
		return hub.Described{}, invalidCard(ErrNoCard, "This is not an agent card.")
	case err != nil:
		return hub.Described{}, invalidCard(err, "This is an agent card, but %s.",
			strings.TrimPrefix(Reason(err), "the agent "))
	}
	return d, nil
}
