package overlay

import (
	"context"
	"errors"
	"slices"
	"sort"
	"strings"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/peering/dht"
	"agentsite/peering/kademlia"
)

var (
	errValue = errors.New("it is not a value of this network")
	errKey   = errors.New("the value belongs under another key")
)

// findTimeout bounds a lookup in the DHT.
const findTimeout = 5 * time.Second

// Found is a portal found in the DHT. Its card is signed, but nothing proves that the portal is at the
// address in it.
type Found struct {
	Card *record.Card
	// Count is the number of agents under the key that the portal claims, Said when it signed the claim.
	Count int64
	Said  time.Time
}

// Looked holds figures about a lookup, for display.
type Looked = dht.Trace

// Portal finds a portal by its id. It returns a NotFound error if no node returned its card.
func (o *Overlay) Portal(ctx context.Context, portal record.PortalID) (Found, Looked, error) {
	d, ok := portal.Digest()
	if !ok {
		return Found{}, Looked{}, fault.New(fault.Invalid, "%.80q is not the id of a portal.", portal)
	}
	all, how, err := o.lookUpKey(ctx, d, 3)
	if err != nil {
		return Found{}, how, err
	}
	if len(all) == 0 {
		return Found{}, how, fault.New(fault.NotFound, "None of the portals that were asked knows %s.", portal)
	}
	return all[0], how, nil
}

// Host finds the portals that claim a host (the part of a handle after @). Any portal may claim it, so the
// caller must check which one answers there.
func (o *Overlay) Host(ctx context.Context, host string) ([]Found, Looked, error) {
	host = strings.ToLower(host)
	all, how, err := o.lookUpKey(ctx, record.HostKey(host), 3)
	return slices.DeleteFunc(all, func(f Found) bool { return federation.HostOf(f.Card.Origin) != host }), how, err
}

// Agent finds the portals that list an agent, by its network id (see record.AgentID). No result is not an
// error.
func (o *Overlay) Agent(ctx context.Context, id string) ([]Found, Looked, error) {
	return o.lookUpKey(ctx, record.AgentKey(id), 3)
}

// Capability finds portals that have agents with a capability. If there are many, the result is a sample.
func (o *Overlay) Capability(ctx context.Context, tag string) ([]Found, Looked, error) {
	return o.lookUpKey(ctx, record.CapKeys(tag)[0], 3)
}

func (o *Overlay) lookUpKey(ctx context.Context, key record.Hash, holders int) ([]Found, Looked, error) {
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	got, how, err := o.run.Get(ctx, kademlia.ID(key), holders)
	if err != nil && len(got) == 0 {
		if errors.Is(err, dht.ErrStopped) {
			err = fault.Wrap(fault.Unavailable, err, "This portal does not take part in the DHT now.")
		}
		return nil, how, err
	}
	var out []Found
	for _, v := range got {
		w, _, err := o.values.readValue(ctx, kademlia.ID(key), v.Bytes)
		if err != nil {
			continue
		}
		f := Found{Card: w.card, Count: 1}
		if p := w.provider; p != nil {
			f.Count, f.Said = p.Count, time.UnixMilli(p.Issued)
		} else if w.head != nil {
			f.Count, f.Said = w.head.Count, time.UnixMilli(w.head.Issued)
		}
		out = append(out, f)
	}
	return out, how, nil
}

// Standing implements federation.DHT: it returns the state of the node for display.
func (o *Overlay) Standing() federation.DHTStanding {
	var s federation.DHTStanding
	o.run.ViewNode(func(n *kademlia.Node) {
		t := n.Tally()
		s = federation.DHTStanding{Nodes: n.Known(), Buckets: n.Buckets(), Size: int(n.Size() + .5),
			RoundS: n.Period(time.Now()).Seconds(), Held: n.Held(), Bytes: n.HeldBytes(),
			Found: t.Found, Missed: t.Missed, Second: t.Second, Sent: t.Sent, Failed: t.Failed, Late: t.Soft,
			Refused: map[string]int64{"invalid": t.Refuse[kademlia.Invalid], "old": t.Refuse[kademlia.Old],
				"full": t.Refuse[kademlia.Full], "too_far": t.Refuse[kademlia.TooFar]}}
		if all := t.Found + t.Missed; all > 0 {
			s.RPCs = float64(t.RPCs) / float64(all)
		}
		if t.Found > 0 {
			s.Hops = float64(t.Hops) / float64(t.Found)
		}
	})
	o.mine.mu.Lock()
	s.Keys = len(o.mine.keys)
	o.mine.mu.Unlock()
	s.Refused["contact"] = o.refused.Load()
	return s
}

// Ask implements federation.DHT: it looks up an origin, a portal id, an agent's network id or handle, or a
// capability, and returns the result with figures for operators.
func (o *Overlay) Ask(ctx context.Context, query string) (federation.DHTAnswer, error) {
	var (
		a     = federation.DHTAnswer{Name: query, Portals: []federation.DHTPortal{}, Nearest: []record.PortalID{}}
		found []Found
		how   Looked
		err   error
	)
	if strings.Contains(query, "@") {
		if query, err = o.cfg.IDOf(ctx, strings.TrimPrefix(query, "@")); err != nil {
			return a, err
		}
	}
	a.Name = query
	portal, local, _ := strings.Cut(query, "/")
	d, isPortal := record.PortalID(portal).Digest()
	var key record.Hash
	switch {
	case record.ValidOrigin(strings.TrimSuffix(query, "/")):
		a.What, key = "host", record.HostKey(federation.HostOf(query))
		found, how, err = o.Host(ctx, federation.HostOf(query))
	case isPortal && local == "":
		a.What, key = "portal", d
		var one Found
		if one, how, err = o.Portal(ctx, record.PortalID(portal)); err == nil {
			found = []Found{one}
		} else if fault.Is(err, fault.NotFound) {
			err = nil
		}
	case isPortal || record.Portable(query):
		a.What, key = "agent", record.AgentKey(query)
		found, how, err = o.Agent(ctx, query)
	default:
		a.What, key = "capability", record.CapKeys(query)[0]
		found, how, err = o.Capability(ctx, query)
	}
	if err != nil {
		return a, err
	}
	for _, f := range found {
		a.Portals = append(a.Portals, federation.DHTPortal{ID: f.Card.Portal, URL: f.Card.Origin, Name: f.Card.Name,
			Agents: f.Count, Said: f.Said.UTC().Format(time.RFC3339)})
	}
	sort.Slice(a.Portals, func(i, j int) bool { return a.Portals[i].ID < a.Portals[j].ID })
	a.RPCs, a.Hops, a.Paths, a.TookMS = how.RPCs, how.Hops, how.Paths, float64(how.Took.Microseconds())/1000
	a.Holders, a.Own = how.Holders, o.mine.hasKey(kademlia.ID(key))
	for _, c := range how.Nearest {
		a.Nearest = append(a.Nearest, portalOf(c.ID))
	}
	return a, nil
}
