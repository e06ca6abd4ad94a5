package remote

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"agentsite/agentruntime/model"
	"agentsite/internal/a2a"
	"agentsite/internal/agentname"
	"agentsite/internal/egress"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/models"
)

// readTime bounds all requests for one address.
const readTime = 20 * time.Second

// Reader implements hub.Reader: it describes an agent from its address, for registration by URL.
type Reader struct{ rt http.RoundTripper }

// NewReader returns a Reader over rt, which must bound time and restrict addresses.
func NewReader(rt http.RoundTripper) *Reader { return &Reader{rt: rt} }

// Read implements hub.Reader: it looks for an A2A card or, if there is none, for an OpenAI-compatible
// list of models at the address or below /v1.
func (r *Reader) Read(ctx context.Context, address string) (hub.Described, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	u, err := egress.CheckURL(strings.TrimSpace(address))
	if err != nil {
		f := fault.Wrap(fault.Invalid, err, "%s", toSentence(egress.Reason(err)))
		f.Fields = map[string]string{"endpoint": f.Safe}
		return hub.Described{}, f
	}
	_, d, err := a2a.ReadCard(ctx, r.rt, u.String())
	if err == nil {
		return r.checkDialect(ctx, d), nil
	}
	if !errors.Is(err, a2a.ErrNoCard) {
		return d, err
	}
	for _, base := range []string{u.String(), strings.TrimRight(u.String(), "/") + "/v1"} {
		if d, err := r.ReadModels(ctx, base, ""); err == nil {
			return d, nil
		} else if errors.Is(err, model.ErrKey) {
			f := fault.Wrap(fault.Invalid, err,
				"No agent card was found at %s. It may be an OpenAI-compatible endpoint, but it asks for a key: "+
					"choose that kind and give the key.", u.Host)
			f.Fields = map[string]string{"endpoint": f.Safe}
			return hub.Described{}, f
		}
	}
	return hub.Described{}, err
}

// ReadAgent describes the A2A agent at an address, by the card at or below it or by one above. at is false if that card
// does not name the address: it is then the card of another agent of the host. Errors are Invalid faults; one wraps
// a2a.ErrNoCard if the host answers without a card.
func (r *Reader) ReadAgent(ctx context.Context, address string) (d hub.Described, at bool, err error) {
	_, d, err = a2a.ReadCardAt(ctx, r.rt, address)
	if err == nil {
		return r.checkDialect(ctx, d), true, nil
	}
	if !errors.Is(err, a2a.ErrNoCard) {
		return d, false, err
	}
	card, d, above := a2a.ReadCardAbove(ctx, r.rt, address)
	if above != nil {
		return hub.Described{}, false, err
	}
	at = slices.ContainsFunc(card.Addresses, func(a string) bool { return isSameAddress(a, address) })
	return r.checkDialect(ctx, d), at, nil
}

// isSameAddress reports whether two addresses are the same but for a slash at the end and default ports.
func isSameAddress(a, b string) bool {
	u, err := egress.CheckURL(a)
	if err != nil {
		return false
	}
	v, err := egress.CheckURL(b)
	return err == nil && strings.TrimRight(u.String(), "/") == strings.TrimRight(v.String(), "/")
}

// ReadAs implements hub.Reader. Cards and lists of models need no credential.
func (r *Reader) ReadAs(ctx context.Context, t hub.Target) (hub.Described, error) {
	return r.Read(ctx, t.Endpoint)
}

// dialects are the versions and bindings of A2A agents, in order of preference.
var dialects = []struct{ version, binding string }{{"1.0", "JSONRPC"}, {"1.0", "HTTP+JSON"}, {"0.3", "JSONRPC"},
	{"0.3", "HTTP+JSON"}}

// checkDialect checks that the agent implements the dialect of its card, by a request that makes it do
// no work. Cards are wrong at times (the Go SDK's own command says 1.0 when it serves 0.3); then the
// first dialect in which the agent answers replaces the card's. An agent that answers in none keeps
// that of its card.
func (r *Reader) checkDialect(ctx context.Context, d hub.Described) hub.Described {
	var cfg hub.A2AConfig
	if json.Unmarshal(d.Config, &cfg) != nil {
		return d
	}
	speaks := func(version, binding string) bool {
		c, err := a2a.New(r.rt, a2a.Endpoint{URL: d.Endpoint, Binding: binding, Version: version, Tenant: cfg.Tenant})
		if err == nil {
			err = c.ProbeUnknownTask(ctx)
		}
		e, ok := errors.AsType[*a2a.Error](err)
		// Errors of authorization and HTTP statuses prove nothing about the protocol; only an answer in
		// another protocol contradicts the card.
		return err == nil || !ok || e.Fault == a2a.FaultAuth || e.Fault == a2a.FaultStatus
	}
	if speaks(cfg.Version, cfg.Binding) {
		return d
	}
	for _, way := range dialects {
		if way.version == cfg.Version && way.binding == cfg.Binding || !speaks(way.version, way.binding) {
			continue
		}
		cfg.Version, cfg.Binding = way.version, way.binding
		if config, err := json.Marshal(cfg); err == nil {
			d.Config = config
		}
		break
	}
	return d
}

// maxModelsShown bounds the models that a form offers.
const maxModelsShown = 50

// ReadModels describes the OpenAI-compatible server at a base URL by the models that it lists to callers with the key;
// an empty key sends none. The error is a fault; it wraps model.ErrKey if the server wants a key or another one.
func (r *Reader) ReadModels(ctx context.Context, base, key string) (hub.Described, error) {
	client, err := model.New(r.rt, models.Server{URL: base, Key: key})
	if err != nil {
		return hub.Described{}, err
	}
	ids, err := client.Models(ctx)
	if err != nil {
		return hub.Described{}, err
	}
	var cfg hub.OpenAIConfig
	if len(ids) > 0 {
		cfg.Model = ids[0]
	}
	config, err := json.Marshal(cfg)
	if err != nil {
		return hub.Described{}, err
	}
	host := base
	if u, err := url.Parse(base); err == nil {
		host = u.Host
	}
	d := hub.Described{
		Models:      ids[:min(len(ids), maxModelsShown)],
		Name:        agentname.Propose(cfg.Model, base),
		Title:       a2a.Line(cfg.Model, 100),
		Description: "A model at " + host + ".",
		Kind:        hub.OpenAI,
		Endpoint:    strings.TrimRight(base, "/"),
		Config:      config,
	}
	if d.Title == "" {
		d.Title = host
	}
	return d, nil
}
