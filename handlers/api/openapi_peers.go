package api

import (
	"agentsite/handlers/openapi"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

// peerOperations are about other portals.
func peerOperations() []openapi.Operation {
	peer := func(text string) map[int]openapi.Answer { return ok(text, peerJSON{}) }
	return []openapi.Operation{
		{Method: "GET", Path: "/network", ID: "getNetwork", Tag: "network", Summary: "See the portals of the network, as this one sees them", Anonymous: true, Query: []string{"network_limit", "cursor"},
			Answers: ok("The public portals, this one first, and the vouches between them.", networkMapJSON{})},
		{Method: "GET", Path: "/peers", ID: "listPeers", Tag: "network", Summary: "List the portals that are known here", Scopes: operates, Query: []string{"peer_q", "peer_state", "peer_limit", "cursor"}, Answers: ok("The portals, by host.", list("peers", []peerJSON{}))},
		{Method: "POST", Path: "/peers", ID: "addPeer", Tag: "network", Summary: "Add a portal by its address", Text: "It is looked up at once. One that does not answer is kept and asked again.", Scopes: operates, Conflict: true, Body: addPeerBody{}, Example: `{"url":"https://portal.example"}`,
			Answers: made("The portal, and the result in a sentence.", addedPeerJSON{})},
		{Method: "GET", Path: "/peers/policy", ID: "getPeerPolicy", Tag: "network", Summary: "See what holds for all portals", Scopes: operates, Answers: ok("The policy.", federation.Policy{})},
		{Method: "PATCH", Path: "/peers/policy", ID: "setPeerPolicy", Tag: "network", Summary: "Change what holds for all portals", Scopes: operates, Body: policyBody{}, Example: `{"mode":"vouched","vouchers":2,"note":"after the spam of last week"}`, Answers: ok("The policy.", federation.Policy{})},
		{Method: "GET", Path: "/peers/decisions", ID: "listPeerDecisions", Tag: "network", Summary: "List what operators decided about portals", Scopes: operates, Query: []string{"list_limit", "cursor"}, Answers: ok("The decisions, newest first.", list("decisions", []decisionJSON{}))},
		{Method: "GET", Path: "/peers/dht", ID: "getDHT", Tag: "network", Summary: "See how this portal stands in the DHT", Scopes: operates, Answers: ok("How it stands.", federation.DHTStanding{})},
		{Method: "GET", Path: "/peers/gossip", ID: "getGossip", Tag: "network", Summary: "See how this portal stands in the pool of portals that gossip", Scopes: operates, Answers: ok("How it stands.", federation.GossipStanding{})},
		{Method: "GET", Path: "/peers/dht/lookup", ID: "lookUpInDHT", Tag: "network", Summary: "Look for a portal, an agent or a capability in the DHT", Text: "What others keep there, not what is held here. It takes some seconds at most.", Scopes: operates, Query: []string{"dht_q"}, Answers: ok("What was found, and what it took.", federation.DHTAnswer{})},
		{Method: "GET", Path: "/peers/{peer}", ID: "getPeer", Tag: "network", Summary: "See a portal", Scopes: operates, Answers: peer("The portal.")},
		{Method: "PATCH", Path: "/peers/{peer}", ID: "setPeer", Tag: "network", Summary: "Allow, pin or deny a portal, bound it, follow its list, note why", Text: "Data of a denied portal is dropped at once. A portal that a followed list blocks is back as soon as the list or the subscription ends.", Scopes: operates, Body: peerBody{}, Example: `{"policy":"deny","note":"spam"}`, Answers: peer("The portal.")},
		{Method: "DELETE", Path: "/peers/{peer}", ID: "forgetPeer", Tag: "network", Summary: "Forget a portal and all that is held of it", Text: "It returns if it sends a request or other portals name it; deny it to keep it out.", Scopes: operates, Query: []string{"note"}, Answers: nothingSaid()},
		{Method: "GET", Path: "/peers/{peer}/proof", ID: "getPeerProof", Tag: "network", Summary: "See why a portal is quarantined", Scopes: operates, Answers: ok("The two records of one number.", peerProofJSON{})},
		{Method: "POST", Path: "/peers/{peer}/release", ID: "releasePeer", Tag: "network", Summary: "End a portal's quarantine", Text: "Name the proof that you looked at. Also ends the hour for which a portal is refused that sent what was forged; then no proof is needed.", Scopes: operates, Conflict: true, Body: releaseBody{}, Example: `{"proof":"q2V0WmVyb1Byb29m","note":"its operator restored an old disk"}`, Answers: peer("The portal.")},
		{Method: "POST", Path: "/peers/{peer}/attest", ID: "attestPeer", Tag: "network", Summary: "Publish a verdict about a portal", Text: "Signed in this portal's name. It can be replaced by another verdict, not taken back.", Scopes: operates, Body: attestBody{}, Example: `{"verdict":"vouch","reason":"run by friends"}`, Answers: nothingSaid()},
	}
}

// peerFields describe the fields of peers beyond their types.
func peerFields() map[string]openapi.Schema {
	time := openapi.Ref("Time")
	stand := oneOf("The operator's decision about it; empty: the policy alone decides.", "", federation.Allow, federation.Pin, federation.Deny)
	follow := oneOf("How its list about other portals is used: block blocks the portals that it blocks, warn marks them; empty: not used.", "", federation.FollowWarn, federation.FollowBlock)
	state := oneOf("How it is doing, as seen from here.", federation.Joining, federation.Pending, federation.Active, federation.Silent, federation.Stale, federation.Denied, federation.Quarantined)
	out := map[string]openapi.Schema{
		"*.known_at": time, "*.head_at": say("When it last signed what agents it has; RFC 3339, empty for never."), "*.head_ends_at": say("Until when that holds."), "*.last_seen": say("When it last answered, or asked; empty for never."),
		"*.lag": say("For how many seconds a newer state of it has been known that is not all here."), "*.rtt_ms": say("Milliseconds, smoothed."), "*.tier": say("How much it keeps of others, as it says."),
		"Peer.id": say("The network id, `p1…`; its host if it has not answered yet."), "Peer.proved_at": say("When its domain was last seen to serve its card; empty for never."), "Peer.state": state, "Peer.reason": say("Why it is not active, for people."),
		"Peer.agents": say("Its agents that are held here."), "Peer.listed": say("Those it says it has."), "Peer.truncated": say("It has more than its quota: none are held, and each search asks it."), "Peer.policy": stand, "Peer.faults": say("What it sent that was refused, by reason, since the start."),
		"Peer.max_agents": say("0 for the default."), "Peer.max_bytes": say("0 for the default."), "PeerInput.policy": stand, "Peer.follow": follow, "PeerInput.follow": follow, "Peer.said": say("Entries of followed lists about it."), "ListSaid.portal": say("The host of the portal whose list it is."), "ListSaid.verdict": oneOf("", record.Warn, record.Block), "ListSaid.denies": say("It is what shuts the portal out."), "NetworkPeer.state": state, "NetworkPeer.id": say("Who it is, `p1…`."), "NetworkPeer.self": say("It is this portal."),
		"DHTStanding.nodes": say("Portals in its table."), "DHTStanding.buckets": say("Of these, how many share 0, 1, 2… bits with its id."), "DHTStanding.size": say("How many portals take part, a guess."), "DHTStanding.keys": say("Entries that it stores: itself, its agents, their capabilities."),
		"DHTStanding.round_s": say("Interval in seconds at which all of these are refreshed."), "DHTStanding.held": say("Records that it keeps for others."), "DHTStanding.found": say("Lookups since the start that found something."), "DHTStanding.rpcs": say("Requests of a lookup, on average."), "DHTStanding.hops": say("Portals on the way to what was found, on average."),
		"DHTStanding.late": say("Requests that took so long that another node was asked too."), "DHTStanding.refused": say("What was refused, by reason."),
		"DHTAnswer.what": oneOf("The kind of the query.", "portal", "host", "agent", "capability"), "DHTAnswer.portals": say("The portals that signed that they have it; a sample, if there are many."), "DHTAnswer.holders": say("How many other portals gave it, of those that were needed."), "DHTAnswer.own": say("Whether this portal publishes it itself."), "DHTAnswer.nearest": say("The portals nearest to the key that answered."), "DHTPortal.agents": say("How many agents it has under the key."), "DHTPortal.said_at": say("When it signed that; RFC 3339."),
		"NetworkMap.known": say("How many portals there are, on all pages."), "NetworkMap.agents": say("Agents of all portals that are current."), "NewPeer.found": say("What happened, for people."),
		"PeerRelease.proof": say("The id of the proof, as in `GET` of the proof."), "PeerProof.proof": say("The mark to release it by."), "PeerProof.type": say("Of the records."), "PeerProof.records": say("The two, that with the lower hash first."),
		"PeerProof.about": say("Which agent, where it is about one."), "SaidTwice.says": say("What it says, as indented JSON; empty if only its hash was kept."), "SaidTwice.record": say("As it travelled."),
		"SaidTwice.issued_at": say("RFC 3339."), "SaidTwice.expires_at": say("RFC 3339."), "Attestation.verdict": oneOf("", record.Vouch, record.Warn, record.Block), "Attestation.reason": openapi.Schema{"maxLength": 400},
		"Decision.id": say("A number that grows."), "Decision.act": say("What was done, as in `peer.deny`."), "Decision.by": say("The name of an account, or `command line`."), "Decision.subject": say("The portal or its address."),
		"PeerPolicy.vouchers": openapi.Schema{"description": "How many pinned portals must vouch in the mode `vouched`.", "minimum": 1, "maximum": 100}, "PeerPolicy.mode": oneOf("Which portals are allowed.", federation.Modes()...),
		"PeerPolicy.service": oneOf("What this portal does for others at all.", federation.ServiceOn, federation.ServiceReadOnly, federation.ServiceOff), "PeerPolicyInput.note": openapi.Schema{"description": "Why.", "maxLength": 400},
		"Export.what": oneOf("Which agents are published to other portals.", federation.ExportAll, federation.ExportTagged, federation.ExportNone), "Export.except": say("Tags that keep an agent here."),
	}
	return out
}
