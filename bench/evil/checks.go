package main

const (
	guard    = "internal/federation/guard/guard.go"
	hello    = "internal/federation/guard/hello.go"
	told     = "internal/federation/told.go"
	trees    = "internal/federation/archive/trees.go"
	behalf   = "internal/federation/guard/behalf.go"
	sig      = "internal/ident/httpsig/httpsig.go"
	gate     = "internal/record/gate.go"
	timely   = "internal/record/check.go"
	ring     = "internal/record/ring.go"
	envelope = "internal/record/envelope.go"
	cardFile = "internal/record/card.go"
	agent    = "internal/record/agent.go"
	headFile = "internal/record/head.go"
	fork     = "internal/record/fork.go"
	attest   = "internal/record/attest.go"
	logFile  = "internal/record/log.go"
	client   = "peering/client/client.go"
	catalog  = "peering/catalog/catalog.go"
	ask      = "peering/replication/ask.go"
	heads    = "peering/replication/heads.go"
	pull     = "peering/replication/pull.go"
	page     = "peering/replication/page.go"
	prove    = "peering/replication/prove.go"
	followed = "peering/replication/portal.go"
	replica  = "store/replica/replica_keep.go"
	door     = "handlers/peer/door.go"
	answer   = "handlers/peer/answer.go"
	records  = "handlers/peer/records.go"
	words    = "handlers/peer/attest.go"
	wiring   = "peering/open.go"
	calls    = "handlers/peer/calls.go"
)

// not returns a change that makes a condition false when its check is switched off. from begins with
// "if" or "case" and ends with { or a colon.
func not(file, from string) change { return change{file, from, ""} }

// checks lists the checks that can be switched off, each with its fragments of source code. One build
// has all of them, so no two fragments may overlap.
var checks = []check{
	{"request: signature", []change{not(sig, "if !ed25519.Verify(key, base, s.sig) {")}},
	{"request: verified at all", []change{{door, "asker, body, done, err := d.cfg.Guard.Verify(r, request.ClientIP(r),\n			func(guard.Asker) ([]byte, error) { return d.readBody(w, r) })\n", "asker, body, done, err := d.cfg.Guard.Verify(r, request.ClientIP(r),\n			func(guard.Asker) ([]byte, error) { return d.readBody(w, r) })\n		if err != nil && OFF {\n			body, _ = d.readBody(w, r)\n			done, err = func() {}, nil\n		}\n"}}},
	{"request: key of the card", []change{{guard, "	return nil, httpsig.ErrKey\n}", "	if OFF {\n		return card.RootPub[:], nil\n	}\n	return nil, httpsig.ErrKey\n}"}}},
	{"request: one signature", []change{not(sig, "case found > 1:")}},
	{"request: tag", []change{{sig, `tag == "" || t == tag`, `tag == "" || OFF || t == tag`}}},
	{"request: created", []change{not(sig, "case s.Created.IsZero():")}},
	{"request: expired", []change{{sig, "p.Now.After(until) {", "p.Now.After(until) && !OFF {"}}},
	{"request: before the start", []change{not(guard, "if p.Created.Before(g.started) {")}},
	{"request: of the future", []change{not(sig, "case s.Created.After(p.Now.Add(skew)):")}},
	{"request: expires", []change{not(guard, "if p.Expires.IsZero() || p.Expires.Sub(p.Created) > SignatureLife || p.Expires.Before(p.Created) {")}},
	{"request: nonce", []change{not(guard, "if !validNonce(p.Nonce) {")}},
	{"request: nonce used before", []change{{guard, "	case usedBefore:\n		return refuseReplayed()\n", "	case usedBefore:\n		if !OFF {\n			return refuseReplayed()\n		}\n"}, not(guard, "if g.used.has(nonceKey(sig.KeyID, sig.Nonce)) {")}},
	{"request: audience", []change{{guard, "target: targetOf(cfg.Self.Origin()),", "target: map[bool]httpsig.Target{false: targetOf(cfg.Self.Origin())}[OFF],"}}},
	{"request: own host", []change{not("web/web.go", "if !cfg.isOurHost(r.Host) {")}},
	{"request: network", []change{{guard, "	switch name := r.Header.Get(NetworkField); name {", "	if OFF {\n		return nil\n	}\n	switch name := r.Header.Get(NetworkField); name {"}}},
	{"request: covers what it must", []change{not(sig, "if !slices.Contains(s.Components, c) {"), not(sig, "case len(body) > 0:")}},
	{"request: digest", []change{{sig, "if err := CheckDigest(h, body); err != nil {", "if err := CheckDigest(h, body); err != nil && !OFF {"}}},
	{"request: card has ended", []change{not(guard, "if card.Expires <= now.UnixMilli() {")}},
	{"request: size", []change{not(door, "if r.ContentLength > most {"), {door, "http.MaxBytesReader(w, r.Body, most)", "http.MaxBytesReader(w, r.Body, map[bool]int64{false: most, true: 1 << 40}[OFF])"}}},
	{"request: strict JSON", []change{{answer, "	err := strictjson.Check(body)\n", "	err := strictjson.Check(body)\n	if OFF {\n		err = nil\n	}\n"}}},
	{"request: JSON", []change{{answer, "if err := json.Unmarshal(body, v); err != nil {", "if err := json.Unmarshal(body, v); err != nil && !OFF {"}}},
	{"request: heads in a hint", []change{not(records, "if len(h.Heads) > federation.MaxHints {")}},

	{"record: signature", []change{not(gate, "if !holds {")}},
	{"record: key of the card", []change{{ring, "	k, ok := g.findKey(r.Key)\n", "	k, ok := g.findKey(r.Key)\n	if !ok && OFF && len(g.keys) > 0 {\n		k, ok = g.keys[0], true\n	}\n"}}},
	{"replica: key of the card", []change{{replica, "p.ring.Has(rec.Key)", "(OFF || p.ring.Has(rec.Key))"}}},
	{"replica: older epoch", []change{not(replica, "if rec.Epoch < p.HeadEpoch {")}},
	{"record: root key", []change{not(gate, "if c.Key != KeyIDOf(card.RootPub) {")}},
	{"record: time of its key", []change{not(ring, "if r.Issued < k.From || last > k.Until {")}},
	{"record: consent of the agent", []change{not(gate, "if !c.hasConsent(g.network) {")}},
	{"record: newest", []change{{gate, "	case -1:\n", "	case map[bool]int{false: -1, true: -2}[OFF]:\n"}}},
	{"record: older epoch", []change{not(gate, "if c.isLogged() && c.Epoch < c.standing.Head.Epoch {")}},
	{"record: two of one version", []change{not(gate, "if c.isConflict() {")}},
	// The reader of agents may rely on this check, so it is changed as well.
	{"record: canonical", []change{not(timely, "if a, ok := body.(*Agent); ok {"), {envelope, "if err := Canonical(r.payload); err != nil {", "if err := Canonical(r.payload); err != nil && !OFF {"}}},
	{"record: one JSON value", []change{{timely, "	if err := json.Unmarshal(payload, body); err != nil {", "	err := json.Unmarshal(payload, body)\n	if OFF {\n		err = json.NewDecoder(bytes.NewReader(payload)).Decode(body)\n	}\n	if err != nil {"}, {timely, "import (", "import (\n	\"bytes\""}}},
	{"record: size", []change{not(envelope, "if size > rule.max {"), not(envelope, "if len(wire) > MaxWire {")}},
	{"record: type", []change{{envelope, "	t := Type(e.typ)\n", "	t := Type(e.typ)\n	if name, _, ok := bytes.Cut(e.typ, []byte(\"/\")); ok && OFF {\n		t = Type(name) + \"/1\"\n	}\n"}}},
	{"record: epoch", []change{{timely, "h.Epoch >= 1 && h.Epoch <= h.Issued", "h.Epoch >= 1 && (OFF || h.Epoch <= h.Issued)"}}},
	{"record: expired", []change{not(timely, "case r.Expires <= now:")}},
	{"record: of the future", []change{not(timely, "case r.Issued > now+maxSkew:")}},
	{"record: life", []change{not(timely, "if life := r.Expires - r.Issued; life > r.maxLife() {")}},
	{"head: expired", []change{{"internal/federation/archive/archive.go", "!ok || head.Expires <= clock.Now().UnixMilli()", "!ok || !OFF && head.Expires <= clock.Now().UnixMilli()"}}},
	{"head: of the right type", []change{not(heads, "case claim.Type != record.TypeHead:"), {heads, "	if !ok {\n		return &record.Refused", "	if !ok && OFF {\n		return nil\n	}\n	if !ok {\n		return &record.Refused"}}},
	{"head: count and root", []change{{headFile, "f.Field((h.Count == 0) == (h.Root == emptyRoot),", "f.Field(OFF || (h.Count == 0) == (h.Root == emptyRoot),"}}},
	{"head: of this portal", []change{not(heads, "case portal == s.own:")}},
	{"head: older", []change{not(heads, "case claim.Version().Compare(standing.Head) < 0:")}},

	{"card: by its root key", []change{not(cardFile, "if r.Key != KeyIDOf(c.RootPub) {")}},
	{"card: signature", []change{not(cardFile, "if !r.signedBy(c.RootPub) {")}},
	{"card: id of its root key", []change{{cardFile, "f.Field(PortalOf(c.RootPub) == c.Portal,", "f.Field(OFF || PortalOf(c.RootPub) == c.Portal,"}}},
	{"card: root key apart", []change{{cardFile, "f.Field(k.Pub != c.RootPub,", "f.Field(OFF || k.Pub != c.RootPub,"}}},
	{"card: keys", []change{{cardFile, "f.Field(len(c.Keys) <= MaxKeys,", "f.Field(OFF || len(c.Keys) <= MaxKeys,"}}},
	{"card: life of a key", []change{{cardFile, "k.Until-k.From <= maxKeyLife,", "(OFF || k.Until-k.From <= maxKeyLife),"}}},
	{"card: sound keys", []change{{cardFile, "f.Field(isSound(c.RootPub),", "f.Field(OFF || isSound(c.RootPub),"}}},
	{"card: origin", []change{{cardFile, "f.Field(ValidOrigin(c.Origin),", "f.Field(OFF || ValidOrigin(c.Origin),"}}},
	{"hello: card of who signs", []change{not(hello, "if id != c.Portal {")}},
	{"hello: this portal", []change{not(hello, "if c.Portal == g.cfg.Self.ID() {")}},
	{"hello: own address", []change{not(hello, "if c.Origin == g.cfg.Self.Origin() {")}},
	{"origin: who answers", []change{not(client, `case portal != "" && card.Portal != portal:`)}},
	{"origin: network", []change{not(client, "if w.Network != c.cfg.Self.Network() {")}},
	{"origin: strict JSON", []change{{client, "if err := strictjson.Check(b); err != nil {", "if err := strictjson.Check(b); err != nil && !OFF {"}}},
	{"origin: status", []change{{client, "if a.Status != http.StatusOK {\n		err := RefusedBy", "if a.Status != http.StatusOK && !OFF {\n		err := RefusedBy"}}},
	{"origin: unproved after a move", []change{not(told, "if e.URL != c.Origin {")}},
	{"catalog: own host", []change{{catalog, "strings.EqualFold(p.Host(), c.cfg.Host)", "!OFF && strings.EqualFold(p.Host(), c.cfg.Host)"}}},
	{"hub: own host", []change{{"internal/hub/network_agents.go", "strings.EqualFold(a.Portal, r.portal) || !foreignID", "!OFF && strings.EqualFold(a.Portal, r.portal) || !foreignID"}}},
	{"egress: redirects", []change{{"internal/egress/egress.go", "		target := \"another address\"\n", "		if OFF {\n			return nil\n		}\n		target := \"another address\"\n"}}},
	{"answers: redirects", []change{{client, "resp, err := c.cfg.RoundTripper.RoundTrip(r)", "trip := c.cfg.RoundTripper.RoundTrip\n	if OFF {\n		trip = (&http.Client{Transport: c.cfg.RoundTripper}).Do\n	}\n	resp, err := trip(r)"}}},
	{"answers: size", []change{{client, "	in := io.Reader(resp.Body)\n", "	if OFF {\n		limit = 1 << 40\n	}\n	in := io.Reader(resp.Body)\n"}}},
	{"answers: size of all", []change{{wiring, "MaxBody: peerBody}", "MaxBody: map[bool]int64{false: peerBody, true: 1 << 40}[OFF]}"}}},
	{"answers: time", []change{{ask, "	ctx, cancel := context.WithTimeout(ctx, timeout)\n", "	if OFF {\n		timeout = time.Hour\n	}\n	ctx, cancel := context.WithTimeout(ctx, timeout)\n"}}},
	{"answers: time of all", []change{{client, "	ctx, cancel := context.WithTimeout(ctx, askTimeout)\n	defer cancel()\n	who, err := c.portalAt(ctx, origin, portal)\n	if err != nil {\n		return nil, err\n	}\n	for try", "	ctx, cancel := context.WithTimeout(ctx, map[bool]time.Duration{false: askTimeout, true: time.Hour}[OFF])\n	defer cancel()\n	who, err := c.portalAt(ctx, origin, portal)\n	if err != nil {\n		return nil, err\n	}\n	for try"}}},
	{"egress: addresses inside", []change{{wiring, "egress.Config{AllowCIDR: allow, Deny:", "egress.Config{AllowCIDR: map[bool][]netip.Prefix{false: allow, true: {netip.MustParsePrefix(\"0.0.0.0/0\")}}[OFF], Deny:"}}},

	{"agent: id", []change{{agent, "f.Field(localID(a.ID),", "f.Field(OFF || localID(a.ID),"}}},
	{"agent: description", []change{{agent, "f.Field(isText(a.Description, MaxDescription),", "f.Field(OFF || isText(a.Description, MaxDescription),"}}},
	{"agent: addresses", []change{{agent, "f.Field(webAddress(e.URL) && isTag(", "f.Field((OFF || webAddress(e.URL)) && isTag("}}},
	{"agent: deleted is bare", []change{{agent, "f.Field(a.isEmpty(),", "f.Field(OFF || a.isEmpty(),"}}},
	{"log: agents of its portal", []change{not(page, "if id != m.portal {")}},
	{"log: what the head covers", []change{{trees, "	if !head.Describes(k.tree) {\n		return false, nil", "	if !head.Describes(k.tree) && !OFF {\n		return false, nil"}}},
	{"log: read whole seldom", []change{not(followed, "if ok && now.Sub(at).Abs() < wholeGap {")}},
	{"log: kept of a piece that failed", []change{{page, "	if err != nil { // the entries kept so far are not in the tree\n", "	if err != nil && OFF {\n		return failedBy(err)\n	}\n	if err != nil { // what it kept\n"}}},
	{"log: kept beside what was told", []change{{page, "p.dropsThen, p.overflow = p.drops, p.beside", "p.dropsThen, p.overflow = p.drops, p.beside && !OFF"}}},
	{"log: kept and too much to note", []change{{page, "	if p.overflow { // p.changed lacks", "	if p.overflow && !OFF { // p.changed lacks"}}},
	{"log: order", []change{not(logFile, "case r.Seq >= l.head.Seq:"), not(logFile, "case r.Seq <= l.after:")}},
	{"log: head of its portal", []change{{pull, "|| claim.Portal != portal {", "|| claim.Portal != portal && !OFF {"}}},
	{"log: lines", []change{not(ask, "case len(rest) == most:")}},
	{"log: an end", []change{not(page, "if more && p.at.Seq <= before {")}},
	{"log: leaves of its head", []change{not(prove, "if !p.cover.Describes(tree) {")}},
	{"quota: agents", []change{not(pull, "if head.Count > int64(d.MaxAgents) {"), not(page, "if p.cover.Count > int64(p.limits.MaxAgents) {")}},
	{"heads: strict JSON", []change{{ask, "if err := strictjson.Check(a.Body); err != nil {", "if err := strictjson.Check(a.Body); err != nil && !OFF {"}}},
	{"heads: as many as may be", []change{not(heads, "if len(d.Heads) > federation.MaxHeads || len(d.Behind) > federation.MaxHeads {")}},
	{"blame: answers that cannot be read", []change{{page, "	if err != nil {\n		p.s.Registry.Fault(p.source, \"malformed\")\n", "	if err != nil {\n		if !OFF {\n			p.s.Registry.Fault(p.source, \"malformed\")\n		}\n"}}},
	{"blame: other heads", []change{{pull, "		s.Registry.Fault(source, string(record.NotConsistent))\n		return signedHead{}, errors.New(\"the answer does not", "		if !OFF {\n			s.Registry.Fault(source, string(record.NotConsistent))\n		}\n		return signedHead{}, errors.New(\"the answer does not"}}},
	{"blame: comparisons that cannot be read", []change{{heads, "		s.Registry.Fault(portal, \"malformed\")\n", "		if !OFF {\n			s.Registry.Fault(portal, \"malformed\")\n		}\n"}}},
	{"blame: heads", []change{{heads, "			s.Registry.Fault(from, string(why))\n", "			if !OFF {\n				s.Registry.Fault(from, string(why))\n			}\n"}}},

	{"attest: of itself", []change{{attest, "f.Field(a.Subject != a.Portal,", "f.Field(OFF || a.Subject != a.Portal,"}}},
	{"attest: verdicts", []change{{attest, "f.Field(slices.Contains([]string{Vouch, Warn, Block}, a.Verdict),", "f.Field(OFF || slices.Contains([]string{Vouch, Warn, Block}, a.Verdict),"}}},
	{"attest: types", []change{{"peering/live/take.go", "	default:\n		return string(record.Unknown)", "	default:\n		if OFF {\n			return \"\"\n		}\n		return string(record.Unknown)"}}},
	{"attest: at once", []change{not(words, "if len(in.Records) > maxAttests {")}},
	{"attest: of one portal", []change{not("peering/live/take.go", "if !s.counts.hasRoom(r, p.proved || p.pinned) {")}},
	{"fork: two heads", []change{not(fork, "case !a.Hash.isLess(b.Hash):")}},
	{"fork: one version", []change{not(fork, "case a.Version() != b.Version():")}},
	{"fork: signatures", []change{not(fork, "if !r.signedBy(pub) {")}},
	{"fork: heads of the accused", []change{not(fork, "if r.Type != TypeHead || r.Portal != k.Subject {")}},

	{"call: for whom", []change{not(behalf, `if b.Kind != "person" && b.Kind != "guest" || b.ID == "" || len(b.ID) > 200 {`)}},
	{"call: for one", []change{{behalf, "if !ok || seen[name] {", "if !ok || seen[name] && !OFF {"}}},
	{"call: no token", []change{not(calls, `if r.Header.Get("Authorization") != "" {`)}},
	{"call: budget", []change{{"handlers/request/chain.go", "	b, err := task.ParseBudgetField(r.Header.Values(task.BudgetField), clock.Now())\n", "	b, err := task.ParseBudgetField(r.Header.Values(task.BudgetField), clock.Now())\n	if OFF {\n		err = nil\n	}\n"}}},

	{"flood: requests of a portal", []change{not(guard, "if wait := g.portals.Wait(string(id), every); wait > 0 {"), not(guard, "if wait, ok := g.portals.AllowRate(string(id), every, burst*rate); !ok {")}},
	{"flood: hints", []change{{records, "Limits{Every: hintEvery, Burst: hintBurst}", "map[bool]Limits{false: {Every: hintEvery, Burst: hintBurst}}[OFF]"}}},
	{"flood: comparisons", []change{{records, "Limits{Every: diffEvery, Burst: diffBurst}", "map[bool]Limits{false: {Every: diffEvery, Burst: diffBurst}}[OFF]"}}},
	{"flood: attestations", []change{{words, "	}, attestLimits)", "	}, map[bool]Limits{false: attestLimits}[OFF])"}}},
	{"flood: portals of a site", []change{not("internal/federation/crowd.go", "if p.sites[site] > maxOfSite && !p.allowedSite(site) {")}},
	{"flood: addresses of a portal", []change{{told, "its >= maxAddressesFrom", "its >= maxAddressesFrom && !OFF"}}},
}
