package main

const (
	guard    = "internal/federation/guard.go"
	sig      = "internal/ident/httpsig/httpsig.go"
	gate     = "internal/record/gate.go"
	check    = "internal/record/check.go"
	ring     = "internal/record/ring.go"
	envelope = "internal/record/envelope.go"
	canon    = "internal/record/canonical.go"
	cardFile = "internal/record/card.go"
	agent    = "internal/record/agent.go"
	headFile = "internal/record/head.go"
	fork     = "internal/record/fork.go"
	attest   = "internal/record/attest.go"
	logFile  = "internal/record/log.go"
	client   = "peering/client.go"
	ask      = "peering/sync_ask.go"
	heads    = "peering/sync_heads.go"
	pull     = "peering/sync_pull.go"
	repair   = "peering/sync_repair.go"
	keep     = "peering/sync_keep.go"
	door     = "handlers/peer/door.go"
)

// mutants are the checks, each with what it looks like and what is left of it.
// A check with a second layer behind it is taken out with that layer.
var mutants = []mutant{
	{"request: signature", "request/other key", []change{{sig, "if !ed25519.Verify(key, base, sig) {", "if false && (!ed25519.Verify(key, base, sig)) {"}}},
	{"request: nonce used before", "request/replayed", []change{{guard, "	case !fresh:", "	case false && !fresh:"}}},
	{"record: signature", "head/altered signature,agent/altered signature", []change{{gate, "if !c.holds(c.key) {", "if false && (!c.holds(c.key)) {"}}},
	{"record: key that the card lists", "head/other key,attest/in the name", []change{
		{ring, "	if !ok {\n		return Public{}, refuse(NoKey,", "	if !ok && len(g.keys) > 0 {\n		k, ok = g.keys[0], true\n	}\n	if !ok {\n		return Public{}, refuse(NoKey,"},
		{gate, "if !c.holds(c.key) {", "if false && (!c.holds(c.key)) {"}}},
	{"record: two of one version", "head/two of one version", []change{{gate, "	if c.contradicts() {", "	if false && (c.contradicts()) {"}}},
	{"fork: both heads signed", "fork/a head that its portal", []change{{fork, "if !r.holds(pub) {", "if false && (!r.holds(pub)) {"}}},
	{"fork: of one version", "fork/heads of two", []change{{fork, "	case a.Version() != b.Version():", "	case false && (a.Version() != b.Version()):"}, {fork, "if !r.holds(pub) {", "if false && (!r.holds(pub)) {"}}},
	{"fork: heads of the accused", "fork/the liar", []change{{fork, "r.Type != TypeHead || r.Portal != k.Subject", "r.Type != TypeHead"}, {fork, "if !r.holds(pub) {", "if false && (!r.holds(pub)) {"},
		{ring, "	if !ok {\n		return Public{}, refuse(NoKey,", "	if !ok && len(g.keys) > 0 {\n		k, ok = g.keys[0], true\n	}\n	if !ok {\n		return Public{}, refuse(NoKey,"}}},
	{"log: kept records of a piece that failed", "log/agent that no head covers, after", []change{{pull, "		if err != nil { // what it kept", "		if false { // what it kept"}}},
	{"log: kept records that are too many to note", "log/2,100", []change{{pull, "	if p.overflow { // so", "	if false { // so"}}},
	{"log: what the head covers", "log/agent that no head covers", []change{{"internal/federation/trees.go", "	if !head.Describes(k.tree) {\n		return false, nil", "	if false && !head.Describes(k.tree) {\n		return false, nil"}}},
	{"log: head of the portal", "log/begins with the head of another", []change{{pull, "|| claim.Portal != portal {", "{"}}},
	{"log: order", "log/out of order", []change{{logFile, "	case r.Seq >= l.head.Seq:", "	case false && (r.Seq >= l.head.Seq):"}, {logFile, "	case r.Seq <= l.after:", "	case false && (r.Seq <= l.after):"}}},
	{"log: goes on without an end", "log/without an end", []change{{pull, "if more && p.at.Seq <= before {", "if false && (more && p.at.Seq <= before) {"}}},
	{"log: lines", "log/too many lines", []change{{ask, "		case len(rest) == most:", "		case false && (len(rest) == most):"}}},
	{"log: ends with a line", "log/cut off", []change{{ask, "		if !ok {\n			return nil, nil, errors.New(\"the answer was cut off\")\n		}", "		_ = ok"}}},
	{"log: leaves of its head", "log/head of a tree", []change{{repair, "		if !head.Describes(tree) {", "		if false && (!head.Describes(tree)) {"}}},
	{"quota: agents", "log/50,001", []change{{pull, "	if count > int64(d.MaxAgents) {", "	if false && (count > int64(d.MaxAgents)) {"}, {pull, "	if p.head.Count > int64(p.limits.MaxAgents) {", "	if false && (p.head.Count > int64(p.limits.MaxAgents)) {"}}},
	{"log: agents of one portal", "agent/of another portal,log/genuine", []change{{keep, "	if id != m.portal {", "	if false && (id != m.portal) {"}}},
	{"agent: its own consent", "agent/with a key of its own", []change{{gate, "	if !c.consents(g.network) {", "	if false && (!c.consents(g.network)) {"}}},
	{"agent: id of its own key", "agent/under the id", []change{{agent, "f.Field(localID(a.ID), \"id\"", "f.Field(localID(a.ID) || true, \"id\""}}},
	{"agent: addresses", "agent/address", []change{{agent, "f.Field(webAddress(e.URL) && tag(e.Protocol, MaxCap)", "f.Field(tag(e.Protocol, MaxCap)"}}},
	{"agent: deleted is bare", "agent/deleted", []change{{agent, "f.Field(a.bare(), \"deleted\"", "f.Field(true, \"deleted\""}}},
	{"hello: who answers at the origin", "hello/origin of another,origin/well-known of another", []change{{client, "	case portal != \"\" && card.Portal != portal:", "	case false && (portal != \"\" && card.Portal != portal):"}}},
	{"hello: origin of this portal", "hello/origin of the victim", []change{{guard, "	if c.Origin == g.cfg.Self.Origin() {", "	if false && (c.Origin == g.cfg.Self.Origin()) {"}}},
	{"hello: card signed by its root", "hello/card signed by an operational", []change{{cardFile, "	if r.Key != KeyIDOf(c.RootPub) {", "	if false && (r.Key != KeyIDOf(c.RootPub)) {"}, {cardFile, "	if !r.holds(c.RootPub) {", "	if false && (!r.holds(c.RootPub)) {"}, {gate, "	if c.Key != KeyIDOf(card.RootPub) {", "	if false && (c.Key != KeyIDOf(card.RootPub)) {"}, {gate, "if !c.holds(c.key) {", "if false && (!c.holds(c.key)) {"}}},
	{"hello: id made of the root key", "hello/card with another's id", []change{{cardFile, "f.Field(PortalOf(c.RootPub) == c.Portal,", "f.Field(true,"}, {guard, "	if id != c.Portal {", "	if false && (id != c.Portal) {"}, {guard, "portal == string(card.Portal)", "portal != \"\""}}},
	{"hello: newest card", "hello/card older", []change{{gate, "	case -1:\n		return refuse(Stale", "	case -2:\n		return refuse(Stale"}}},
	{"hello: network of the origin", "origin/well-known of another network", []change{{client, "	if w.Network != c.cfg.Self.Network() {", "	if false && (w.Network != c.cfg.Self.Network()) {"}}},
	{"request: of the card's keys", "request/swapped", []change{{guard, "	return nil, httpsig.ErrKey\n}", "	return card.Keys[0].Pub[:], nil\n}"}, {sig, "if !ed25519.Verify(key, base, sig) {", "if false && (!ed25519.Verify(key, base, sig)) {"}}},
	{"request: covers what it must", "request/@,request/agentsite-network,request/Agentsite,request/Authorization", []change{{sig, "		if !slices.Contains(out.Components, c) {", "		if false && (!slices.Contains(out.Components, c)) {"}}},
	{"request: audience", "request/other audience", []change{{guard, "Target: target(g.cfg.Self.Origin()),", "Target: httpsig.Target{Scheme: \"http\", Authority: \"elsewhere.example\"},"}}},
	{"request: digest", "request/other body", []change{{sig, "		if err := CheckDigest(r.Header, body); err != nil {", "		if err := CheckDigest(r.Header, body); false && err != nil {"}}},
	{"request: too old", "request/expired", []change{{sig, "p.Now.After(until) {", "p.Now.After(until) && false {"}, {guard, "	if p.Created.Before(g.started) {", "	if false && (p.Created.Before(g.started)) {"}}},
	{"request: of the future", "request/of the future", []change{{sig, "	case s.Created.After(p.Now.Add(skew)):", "	case false && (s.Created.After(p.Now.Add(skew))):"}}},
	{"request: expires", "request/expires,request/good", []change{{guard, "	if p.Expires.IsZero() ||", "	if false && p.Expires.IsZero() ||"}, {guard, "p.Expires.Sub(p.Created) > SignatureLife", "false"}}},
	{"request: nonce", "request/no nonce,request/short", []change{{guard, "	if !validNonce(p.Nonce) {", "	if false && (!validNonce(p.Nonce)) {"}}},
	{"request: one signature", "request/two", []change{{sig, "	case found > 1:", "	case false && (found > 1):"}}},
	{"request: network", "request/other network,request/no network", []change{{guard, "	switch name := r.Header.Get(NetworkField); name {", "	switch name := g.cfg.Self.Network(); name {"}}},
	{"request: size", "request/too long", []change{{door, "io.ReadAll(http.MaxBytesReader(w, r.Body, maxAsked))", "io.ReadAll(r.Body)"}}},
	{"request: strict JSON", "request/member twice", []change{{"handlers/peer/answer.go", "	err := strictjson.Check(body)", "	var err error\n	_ = strictjson.Check"}}},
	{"record: expired", "head/expired,agent/expired", []change{{check, "	case r.Expires <= now:", "	case false && (r.Expires <= now):"}}},
	{"record: of the future", "head/of the future,agent/of the future", []change{{check, "	case r.Issued > now+maxSkew:", "	case false && (r.Issued > now+maxSkew):"}}},
	{"record: life", "head/lives,agent/lives too", []change{{check, "life > r.maxLife() {", "life > 1<<60 {"}}},
	{"record: time of its key", "head/key whose,agent/lives longer", []change{{ring, "	if r.Issued < k.From || last > k.Until {", "	if false && last > 0 {"}}},
	{"record: size", "head/too long", []change{{envelope, "	if size > rule.max {", "	if false && (size > rule.max) {"}}},
	{"record: canonical", "head/white,head/member twice,head/null,head/NUL", []change{{envelope, "	if err := Canonical(r.payload); err != nil {", "	if err := Canonical(r.payload); false && err != nil {"}}},
	{"record: network", "head/of another network,agent/of another network", []change{{gate, "if !c.holds(c.key) {", "if false && (!c.holds(c.key)) {"}}},
	{"head: older than the last", "head/of an older epoch,head/older", []change{{heads, "	case claim.Version().Compare(standing.Head) < 0:", "	case false && (claim.Version().Compare(standing.Head) < 0):"}, {gate, "	case -1:\n		return refuse(Stale", "	case -2:\n		return refuse(Stale"}, {gate, "	if c.logged() && c.Epoch < c.standing.Head.Epoch {", "	if false && (c.logged() && c.Epoch < c.standing.Head.Epoch) {"}}},
	{"head: count and root", "head/agents without", []change{{headFile, "f.Field((h.Count == 0) == (h.Root == emptyRoot)", "f.Field(true"}}},
	{"attest: nobody of itself", "attest/of itself", []change{{attest, "f.Field(a.Subject != a.Portal,", "f.Field(true,"}}},
	{"attest: share", "attest/about a thousand", []change{{"peering/live/take.go", "	if !s.counts.room(r, p.proved || p.pinned) {", "	if false {"}}},
	{"heads: as many as asked for", "heads/1,001", []change{{heads, "	if len(d.Heads) > federation.MaxHeads || len(d.Behind) > federation.MaxHeads {", "	if false && (len(d.Heads) > federation.MaxHeads || len(d.Behind) > federation.MaxHeads) {"}}},
	{"heads: strict JSON", "heads/member twice", []change{{ask, "	if err := strictjson.Check(a.Body); err != nil {", "	if err := strictjson.Check(a.Body); false && err != nil {"}}},
	{"flood: requests of one portal", "flood/requests", []change{{guard, "	if wait, ok := g.portals.AllowRate(string(id), time.Second/time.Duration(max(d.PerSecond, 1)), burst*max(d.PerSecond, 1)); !ok {", "	if wait, ok := g.portals.AllowRate(string(id), time.Second/time.Duration(max(d.PerSecond, 1)), burst*max(d.PerSecond, 1)); false && ok {"}}},
	{"flood: hints", "flood/hints", []change{{"handlers/peer/records.go", "Limits{Every: hintEvery, Burst: hintBurst}", "Limits{}"}, {guard, "burst*max(d.PerSecond, 1)); !ok {", "burst*max(d.PerSecond, 1)); false && ok {"}}},
	{"flood: portals that are not there", "flood/portals", []change{{"internal/federation/told.go", "its >= maxAddressesFrom", "its >= 1e6"}}},
	{"SSRF: addresses inside", "SSRF", []change{{"internal/app/federate.go", "out := egress.Config{AllowCIDR: allow,", "out := egress.Config{AllowCIDR: []netip.Prefix{netip.MustParsePrefix(\"0.0.0.0/0\")},"}}},
}
