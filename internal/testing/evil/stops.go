package evil

import (
	"slices"
	"strings"
)

// stops maps checks in bench/evil to the lies that they stop. Where " + " separates several checks,
// each of them stops the lies alone. The name of a lie may end in *, which means all lies that begin
// so.
var stops = []struct {
	checks string
	lies   []string
}{
	{"request: signature", []string{"request/other key", "request/altered signature", "request/other audience", "request/other path", "request/other query", "request/other method", "request/signed for another network",
		"request/other body and digest", "call/for another after it was signed", "call/budget grown after it was signed", "call/by another key"}},
	{"request: verified at all", []string{"request/unsigned", "request/unknown portal", "request/no network"}},
	{"request: key of the card + request: signature", []string{"request/key that the card does not list", "request/swapped keyid", "request/root key"}},
	{"request: one signature", []string{"request/two signatures"}},
	{"request: tag", []string{"request/other tag"}},
	{"request: expired + request: before the start", []string{"request/expired"}},
	{"request: of the future", []string{"request/of the future"}},
	{"request: created + request: expired + request: expires + request: before the start", []string{"request/created never"}},
	{"request: expires", []string{"request/expires never", "request/good for an hour"}},
	{"request: nonce", []string{"request/no nonce", "request/short nonce"}},
	{"request: nonce used before", []string{"request/replayed"}},
	{"request: nonce used before + request: before the start", []string{"request/replayed after a restart"}},
	{"request: audience + request: own host", []string{"request/sent on as it came to another portal"}},
	{"request: network", []string{"request/other network"}},
	{"request: covers what it must", []string{"request/@*", "request/agentsite-network not covered", "request/Agentsite-*", "request/Authorization added", "request/digest not covered", "request/no digest", "call/hops added after it was signed"}},
	{"request: digest", []string{"request/other body", "call/other words"}},
	{"request: size", []string{"request/too long"}},
	{"request: strict JSON", []string{"request/member twice"}},
	{"request: strict JSON + request: JSON", []string{"request/deep", "request/no JSON"}},
	{"request: heads in a hint", []string{"request/65 heads"}},

	{"record: signature", []string{"head/altered signature", "head/altered", "head/other key under the name of the right one", "head/of another network", "head/signed as another type", "head/of another portal under its key's name",
		"agent/altered signature", "agent/other key under the name of the right one", "agent/of another network", "agent/signed as a head", "attest/forged", "live/forged", "attest/in the name of another", "live/in the name of another"}},
	{"record: key of the card + record: signature + replica: key of the card", []string{"head/other key", "head/root key", "head/revoked key", "head/of another portal", "agent/other key"}},
	{"record: time of its key", []string{"head/key whose time ends first", "head/key whose time has not begun", "agent/lives longer than its key"}},
	{"record: canonical", []string{"head/member twice", "head/white space", "head/members in another order", "head/deep", "head/NUL", "head/no UTF-8", "head/null", "head/fraction", "head/number too large", "head/member in another case",
		"agent/member twice", "agent/white space", "agent/members in another order", "agent/deep", "agent/NUL", "agent/no UTF-8", "agent/null", "agent/fraction", "agent/number too large", "agent/member in another case"}},
	{"record: canonical + record: one JSON value", []string{"head/something behind", "agent/something behind"}},
	{"record: size", []string{"head/too long", "agent/too long"}},
	{"record: type + record: signature", []string{"head/type that nobody knows"}},
	{"head: of the right type", []string{"head/another type"}},
	{"head: count and root", []string{"head/agents without a root"}},
	{"record: epoch", []string{"head/epoch of the future"}},
	{"record: expired + head: expired", []string{"head/expired"}},
	{"record: of the future", []string{"head/of the future", "agent/of the future"}},
	{"record: life", []string{"head/lives too long", "agent/lives too long", "attest/lives too long", "hello/card that lives too long"}},
	{"head: of this portal + record: key of the card + record: signature + replica: key of the card", []string{"head/of the victim itself"}},
	{"head: older + record: newest", []string{"head/older than the last"}},
	{"head: older + record: newest + record: older epoch + replica: older epoch", []string{"head/of an older epoch"}},
	{"record: two of one version", []string{"head/two of one version", "head/two of one version to two portals", "hello/two cards of one version"}},

	{"card: by its root key + card: signature + record: root key + record: signature", []string{"hello/card signed by an operational key"}},
	{"card: id of its root key + hello: card of who signs + request: key of the card + request: signature", []string{"hello/card with another's id"}},
	{"hello: card of who signs + request: key of the card + request: signature + origin: who answers", []string{"hello/card of another"}},
	{"hello: this portal + hello: own address + hello: card of who signs + request: key of the card + request: signature", []string{"hello/card of the victim"}},
	{"card: signature + record: signature", []string{"hello/altered card", "hello/card of another network"}},
	{"request: key of the card + request: signature", []string{"hello/card without keys"}},
	{"card: root key apart", []string{"hello/card with the root key as a key"}},
	{"card: keys", []string{"hello/card with five keys"}},
	{"card: life of a key", []string{"hello/key that lives a year"}},
	{"record: expired + request: card has ended", []string{"hello/expired card"}},
	{"record: of the future", []string{"hello/card of the future"}},
	{"card: sound keys", []string{"hello/weak root key"}},
	{"record: newest", []string{"hello/card older than the last"}},
	{"origin: who answers", []string{"hello/origin of another portal", "origin/well-known of another"}},
	{"hello: own address", []string{"hello/origin of the victim"}},
	{"card: origin", []string{"hello/origin with a path", "hello/http origin", "hello/origin with a user"}},
	{"origin: unproved after a move", []string{"origin/moves to that of another"}},
	{"catalog: own host + hub: own host", []string{"origin/moves to that of the victim"}},
	{"origin: network", []string{"origin/well-known of another network"}},
	{"answers: redirects + egress: redirects", []string{"origin/well-known elsewhere by a redirect", "log/elsewhere by a redirect"}},
	{"origin: strict JSON", []string{"origin/well-known with a member twice"}},
	{"origin: status", []string{"origin/well-known with status 500"}},
	{"answers: size + answers: size of all", []string{"origin/well-known of 4 GiB", "log/4 GiB announced"}},
	{"egress: addresses inside", []string{"SSRF/*"}},

	{"agent: description", []string{"agent/description too long"}},
	{"agent: addresses", []string{"agent/address that is none"}},
	{"agent: deleted is bare", []string{"agent/deleted and still there"}},
	{"record: expired", []string{"agent/expired"}},
	{"log: agents of its portal + record: key of the card + record: signature + replica: key of the card", []string{"agent/of another portal"}},
	{"record: consent of the agent", []string{"agent/with a key of its own that did not agree"}},
	{"agent: id", []string{"agent/under the id of another's key"}},
	{"log: agents of its portal", []string{"log/genuine agents of another portal"}},
	{"log: what the head covers", []string{"log/agent that no head covers"}},
	{"log: read whole seldom", []string{"log/leaf without an agent"}},
	{"log: kept of a piece that failed + log: kept beside what was told", []string{"log/agent that no head covers, after a piece that failed"}},
	{"log: kept and too much to note", []string{"log/2,100 agents that no head covers"}},
	{"record: newest + log: order", []string{"log/older agent after the newer"}},
	{"blame: answers that cannot be read", []string{"log/nothing", "log/garbage", "log/only line ends", "log/cut off"}},
	{"blame: other heads", []string{"log/a page", "log/begins with no head"}},
	{"log: head of its portal", []string{"log/begins with the head of another"}},
	{"log: lines", []string{"log/too many lines"}},
	{"log: an end", []string{"log/without an end"}},
	{"answers: size", []string{"log/gzip bomb"}},
	{"answers: time + answers: time of all", []string{"log/drop by drop"}},
	{"log: order + log: what the head covers", []string{"log/out of order"}},
	{"log: leaves of its head + log: what the head covers", []string{"log/head of a tree that is not there"}},
	{"quota: agents", []string{"log/50,001 agents"}},
	{"blame: comparisons that cannot be read", []string{"heads/garbage"}},
	{"heads: strict JSON", []string{"heads/member twice"}},
	{"heads: as many as may be", []string{"heads/1,001"}},
	{"blame: heads", []string{"heads/no records"}},

	{"attest: of itself", []string{"attest/of itself"}},
	{"attest: verdicts", []string{"attest/a verdict that there is not"}},
	{"attest: types", []string{"attest/a card", "attest/an agent"}},
	{"attest: at once", []string{"attest/65 at once"}},
	{"attest: of one portal", []string{"attest/about a thousand portals"}},
	{"fork: two heads", []string{"fork/one head twice"}},
	{"fork: one version + fork: signatures", []string{"fork/heads of two versions"}},
	{"fork: signatures", []string{"fork/a head that its portal did not sign"}},
	{"fork: heads of the accused + fork: two heads + record: key of the card + record: time of its key + fork: signatures", []string{"fork/cards"}},

	{"call: for whom", []string{"call/for an operator", "call/for nobody"}},
	{"call: for one", []string{"call/for two"}},
	{"call: no token", []string{"call/with a token besides"}},
	{"call: budget", []string{"call/budget that is none"}},

	{"flood: requests of a portal", []string{"flood/requests"}},
	{"flood: hints + flood: requests of a portal", []string{"flood/hints"}},
	{"flood: comparisons", []string{"flood/comparisons"}},
	{"flood: attestations + flood: requests of a portal", []string{"flood/attestations"}},
	{"flood: addresses of a portal", []string{"flood/portals that are not there"}},
	{"flood: portals of a site", []string{"flood/portals of one site, by many"}},
}

// unshown lists the lies that fail even when all checks are switched off, each with the reason.
var unshown = []struct {
	why  string
	lies []string
}{
	{"it is no record: whatever is left out, there is nothing in it to take in; told to see that nobody crashes",
		[]string{"head/truncated", "head/members of the envelope in another order", "head/no record", "attest/no record"}},
	{"nothing is kept of a portal without a card, as there is no row of it to keep it in", []string{"head/of nobody"}},
	{"whoever signed the heads is quarantined, whomever the proof is said to be about: without the checks it is the liar itself", []string{"fork/the liar's own heads against another"}},
	{"it is no answer: whatever is left out, there is no card in it; told to see that nobody crashes", []string{"origin/well-known that is a page"}},
}

// names reports whether a pattern in the tables above matches the name of a lie.
func names(pattern, lie string) bool {
	if begin, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(lie, begin)
	}
	return pattern == lie
}

// stopped sets Stops and Unshown of the lie from the tables above.
func (l *Lie) stopped() {
	is := func(pattern string) bool { return names(pattern, l.Name) }
	for _, s := range stops {
		if slices.ContainsFunc(s.lies, is) {
			l.Stops = append(l.Stops, strings.Split(s.checks, " + ")...)
		}
	}
	for _, u := range unshown {
		if slices.ContainsFunc(u.lies, is) {
			l.Unshown = u.why
		}
	}
}
