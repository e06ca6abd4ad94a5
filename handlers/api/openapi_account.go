package api

import (
	"net/http"

	"agentsite/handlers/openapi"
	"agentsite/handlers/search"
	"agentsite/internal/chat"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

func accountOperations() []openapi.Operation {
	searches := map[int]openapi.Answer{http.StatusCreated: {Text: "The search.", JSON: savedJSON{}}, http.StatusOK: {Text: "It was kept before.", JSON: savedJSON{}}}
	return []openapi.Operation{
		{Method: "GET", Path: "/me", ID: "getMe", Tag: "account", Summary: "Get the caller", Answers: ok("The caller, and the permissions of the credential.",
			openapi.Object{"kind": oneOf("", ident.Guest, ident.Person, ident.Operator), "name": "", "scopes": []ident.Scope{}, "portal": ""})},
		{Method: "GET", Path: "/tokens", ID: "listTokens", Tag: "account", Summary: "List API tokens", Scopes: manages, Answers: ok("The tokens, without their secrets.", list("tokens", []tokenJSON{}))},
		{Method: "POST", Path: "/tokens", ID: "createToken", Tag: "account", Summary: "Make an API token", Scopes: manages, Conflict: true, Body: tokenBody{}, Example: `{"label":"script","scopes":["agents:read","chat:write"],"expires_days":30}`,
			Answers: map[int]openapi.Answer{http.StatusCreated: {Text: "The token's secret, which is shown only once.", JSON: openapi.Object{"token": ""}}}},
		{Method: "DELETE", Path: "/tokens/{id}", ID: "revokeToken", Tag: "account", Summary: "Revoke an API token", Scopes: manages, Answers: nothingSaid()},
		{Method: "GET", Path: "/webhooks", ID: "listWebhooks", Tag: "account", Summary: "List webhooks", Scopes: manages, Answers: ok("The webhooks, without their secrets.", list("webhooks", []webhookJSON{}))},
		{Method: "POST", Path: "/webhooks", ID: "addWebhook", Tag: "account", Summary: "Add a webhook", Text: "What is sent is signed as Standard Webhooks has it.", Scopes: manages, Conflict: true, Body: webhookBody{},
			Example: `{"url":"https://example.org/hook","events":["task.ended","message.said"]}`, Answers: made("The webhook, with its secret, which is shown only once.", madeWebhookJSON{})},
		{Method: "GET", Path: "/webhooks/{id}", ID: "getWebhook", Tag: "account", Summary: "See a webhook", Scopes: manages, Answers: ok("The webhook.", webhookJSON{})},
		{Method: "PATCH", Path: "/webhooks/{id}", ID: "setWebhook", Tag: "account", Summary: "Change, pause or start a webhook", Scopes: manages, Body: webhookBody{}, Example: `{"active":false}`, Answers: ok("The webhook.", webhookJSON{})},
		{Method: "DELETE", Path: "/webhooks/{id}", ID: "deleteWebhook", Tag: "account", Summary: "Delete a webhook", Scopes: manages, Answers: nothingSaid()},
		{Method: "POST", Path: "/webhooks/{id}/test", ID: "testWebhook", Tag: "account", Summary: "Send a webhook a test at once", Scopes: manages, Answers: ok("What came of it.", deliveryJSON{})},
		{Method: "GET", Path: "/webhooks/{id}/deliveries", ID: "listDeliveries", Tag: "account", Summary: "List what was sent to a webhook", Scopes: manages, Query: []string{"last_limit"},
			Answers: ok("The last attempts, at most 50, newest first.", list("deliveries", []deliveryJSON{}))},
		{Method: "GET", Path: "/account/chat", ID: "getChatPreferences", Tag: "account", Summary: "Get the notification settings", Scopes: readsChat, Answers: ok("The preferences.", PrefsJSON{})},
		{Method: "PUT", Path: "/account/chat", ID: "setChatPreferences", Tag: "account", Summary: "Set the notification settings", Scopes: talks, Body: PrefsJSON{}, Example: `{"notify":"mentions","quiet_from":"22:00","quiet_to":"07:00","zone":"Europe/Berlin"}`, Answers: ok("The preferences.", PrefsJSON{})},
		{Method: "GET", Path: "/notices", ID: "listNotices", Tag: "account", Summary: "List the caller's notifications", Scopes: readsAgents,
			Answers: ok("At most 100 notices, newest first.", openapi.Object{"notices": []noticeJSON{}, "unread": 0, "next_cursor": openapi.Ref("Cursor")})},
		{Method: "POST", Path: "/notices/read", ID: "readNotices", Tag: "account", Summary: "Note up to where notices were read", Scopes: writes, Body: readNoticesBody{}, Example: `{"up_to":"01JDA7Q3W0K4V9T2M5N8P1R6XY"}`, Answers: nothingSaid()},
		{Method: "GET", Path: "/searches", ID: "listSearches", Tag: "account", Summary: "List saved searches", Scopes: readsAgents, Answers: ok("The searches, each with the address of its Atom feed.", list("searches", []savedJSON{}))},
		{Method: "POST", Path: "/searches", ID: "saveSearch", Tag: "account", Summary: "Save a search", Scopes: writes, Conflict: true, Body: saveSearchBody{}, Example: `{"query":"q=pdf&kind=mcp"}`, Answers: searches},
		{Method: "DELETE", Path: "/searches/{id}", ID: "deleteSearch", Tag: "account", Summary: "Delete a saved search", Scopes: writes, Answers: nothingSaid()},
		{Method: "GET", Path: "/domains", ID: "listDomains", Tag: "account", Summary: "List proved domains", Scopes: readsAgents, Answers: ok("The domains, and the token that proves one.", domainsJSON{})},
		{Method: "POST", Path: "/domains", ID: "proveDomain", Tag: "account", Summary: "Look for the token at a domain", Scopes: writes, Conflict: true, Body: proveDomainBody{}, Example: `{"domain":"example.org"}`, Answers: ok("The domains, with the new one.", domainsJSON{})},
		{Method: "DELETE", Path: "/domains/{domain}", ID: "removeDomain", Tag: "account", Summary: "Remove a proved domain", Scopes: writes, Answers: nothingSaid()},
	}
}

// requiredFields are those that an input must have.
var requiredFields = map[string][]string{
	"SkillInput": {"name"}, "TryInput": {"text"}, "RollbackInput": {"version"}, "ReportInput": {"reason"}, "AddOwnerInput": {"name"}, "OfferInput": {"to"},
	"OfferAnswerInput": {"accept"}, "SayInput": {"client_id"}, "BranchInput": {"seq"}, "RoleInput": {"role"}, "LinkInput": {"kind"}, "ShareInput": {"agent", "share"},
	"ReadMarkInput": {"seq"}, "ReadNoticesInput": {"up_to"}, "SavedSearchInput": {"query"}, "DomainInput": {"domain"}, "NewPeerInput": {"url"}, "Attestation": {"verdict"},
}

// say describes a field.
func say(text string) openapi.Schema { return openapi.Schema{"description": text} }

// bound describes a field and says the most of it.
func bound(text, word string, most int) openapi.Schema {
	return openapi.Schema{"description": text, word: most}
}

// fieldTexts describe the fields beyond their types.
func fieldTexts() map[string]openapi.Schema {
	time, id := openapi.Ref("Time"), openapi.Ref("Id")
	upTo := func(text string, most int) openapi.Schema { return bound(text, "maxLength", most) }
	most := func(text string, n int) openapi.Schema { return bound(text, "maximum", n) }
	items := func(text string, most int, of openapi.Schema) openapi.Schema {
		return openapi.Schema{"description": text, "maxItems": most, "items": of}
	}
	link := func(text string) openapi.Schema { return openapi.Schema{"description": text, "format": "uri"} }
	roles := oneOf("", chat.RoleOwner, chat.RoleMember, chat.RoleReader)
	modes := items("Media types.", 20, upTo("", 100))
	delete(modes["items"].(openapi.Schema), "description")
	return map[string]openapi.Schema{
		"*.id": id, "*.conversation_id": id, "*.contextId": id, "*.messageId": id, "*.taskId": id, "*.branched_from": id,
		"*.created_at": time, "*.updated_at": time, "*.checked_at": time, "*.used_at": time, "*.expires_at": time, "*.edited_at": time, "*.told_at": time,
		"*.proved_at": time, "*.seen_at": time, "*.at": time, "*.timestamp": time,
		"*.latency_ms": say("Milliseconds."), "*.took_ms": say("Milliseconds."), "*.p50_ms": say("Milliseconds: half of the last completed calls took at most that."), "*.p95_ms": say("Milliseconds: 19 of 20 took at most that."),
		"*.role": roles, "*.next_cursor": openapi.Ref("Cursor"),

		"Agent.handle": say("`name` here, `name@portal` elsewhere."), "Agent.portal": say("The host of the portal it is on."),
		"Agent.name": {"description": "2 to 40 characters, starting with a letter.", "pattern": "^[a-z][a-z0-9-]{1,39}$"}, "Agent.title": upTo("For people.", 100),
		"Agent.description": upTo("For people; Markdown.", 4000), "Agent.skills": openapi.Schema{"maxItems": 32}, "Agent.owner": say("The account's name; empty for agents of the portal itself."),
		"Agent.version": say("Counts up with each change."), "AgentInput.version": say("The version that the change is based on; if it is not the newest any more, 409."),
		"Agent.verified": say("Whether its entry is signed by its portal, whose domain was seen to serve the key."), "Agent.source": say("Where it comes from, if that is another portal."), "Source.head_age": say("Seconds since the portal last signed its log."), "Source.record": say("The hash of the signed record."), "Source.sought_at": say("When somebody here looked for an agent of the portal, which was not known, and the DHT told where it is; RFC 3339."), "Source.also": say("Hosts of other portals that list the same agent."), "Source.id": {"description": "The portal's id in the network.", "pattern": "^p1[a-z2-7]{52}$"}, "Source.portal": say("The portal's host."), "Source.url": link("The portal's address."),
		"Coverage.known": say("Portals, this one among them."), "Coverage.asked": say("Those whose agents were looked through."), "Coverage.answered": say("Those of them that are current, or answered in time."), "Coverage.silent": items("Hosts of the others.", 100, openapi.Schema{}),
		"Coverage.oldest_head_age": say("Age in seconds of the oldest log head that the answer is based on."), "Coverage.folded": say("Agents left out because their portals do not answer."), "Coverage.named": say("How many of those asked the DHT named for what is looked for."), "Coverage.tier": say("How much this portal keeps of the others."), "Coverage.limited": say("A bound cut the asking short."), "Coverage.indexes": say("Index portals that answered for others besides. They can leave out, so those do not count as answered for it."), "Agent.publisher": say("The proved domain it is published under."),
		"Agent.languages": items("Language tags.", 20, openapi.Schema{}), "Agent.input_modes": modes, "Agent.output_modes": modes,
		"Agent.icon": link("The address of its picture."), "AgentInput.icon": openapi.Schema{"description": "A picture of at most 2 MiB; empty removes it."}, "Agent.note": upTo("What this version changes.", 300),
		"Agent.endpoint": upTo("Its address. In answers for its owners only.", 500), "Agent.has_secret": say("Whether a key or token is sealed with it. For its owners only."),
		"Agent.embed_origins": openapi.Schema{"description": "Sites that may show the chat with it in a frame, as scheme, host and port; none when it is empty. In answers for its owners only.", "maxItems": 20},
		"Agent.network":       say("How it stands in the network of portals. For its owners only."),
		"Publication.reason":  say("Why it is not published."), "Publication.hash": say("Of its newest record."), "Publication.epoch": say("With `seq` the record's version."),
		"Publication.listed": say("Whether the portal's newest head covers the record: only then does it count elsewhere."), "Publication.cut": say("What the record leaves out, because it may not be longer."),
		"Agent.config":      openapi.Schema{"type": "object", "description": "The kind's settings. For its owners only."},
		"AgentInput.config": say("The kind's settings. `openai`: `model`, `key`, `instructions`. `prompt`: `instructions`, `model`, `key`, `examples`, `tools`. `a2a` and `mcp`: `token`, `auth_header`. A `key` or `token` is sealed and never given back."),
		"AgentStatus.state": oneOf("A draft is for its owners; a deprecated agent still answers, a withdrawn one does not.", hub.StatusDraft, hub.Active, hub.Deprecated, hub.Withdrawn),
		"AgentStatus.held":  say("The operator withdrew it."), "AgentStatus.message": say("The message shown to people."),
		"Liveness.reason": say("A sentence for people; empty when it is alive."),
		"Proof.state":     oneOf("The portal runs it or holds its connection, the address was proved, another portal says one of these, or neither.", hub.Hosted, hub.Proved, hub.Claimed, hub.Unproven),
		"Proof.method":    oneOf("A file at a well-known place, or a signed card.", "token", "card"), "Proof.origin": say("Scheme, host and port that were proved."),
		"AddressProof.state": oneOf("", hub.Hosted, hub.Proved, hub.Unproven), "AddressProof.token": say("What the file at `path` must hold; for the owner only."),
		"Skill.id": {"description": "Unique within the agent.", "maxLength": 100}, "Skill.name": upTo("For people.", 100), "Skill.description": upTo("What it does.", 1000),
		"Skill.tags": items("Words to find it by.", 10, openapi.Schema{"maxLength": 32}), "Skill.examples": items("What one may say to it.", 5, openapi.Schema{"maxLength": 300}),
		"CallLimits.callers": oneOf("The permitted callers; empty for everyone that sees it.", "", "accounts", "listed"), "CallLimits.listed": items("Account names.", 50, openapi.Schema{}),
		"CallLimits.per_minute": most("Calls of one caller.", 10_000), "CallLimits.per_day": most("Calls of all callers together.", 10_000_000), "CallLimits.max_bytes": most("Of one message to it.", 1<<20),
		"DayOfCalls.day": {"format": "date"}, "Trace.head": say("The first line and what of the headers is kept."), "Trace.size": say("Bytes, of which `body` holds the first 8 KiB."),
		"Call.task": id, "Call.own": say("Whether the caller of this API made it."), "Call.caller_kind": oneOf("", ident.Guest, ident.Person, ident.Operator, ident.Portal), "Call.face": say("The door that the call came through."),
		"Report.reason": {"enum": hub.ReportReasons}, "Report.text": upTo("More about it.", 1000), "Try.text": upTo("What is said to it.", 4000),
		"Offer.to": say("An account's name; empty takes the offer back."), "Notice.kind": oneOf("", hub.NoticeDown, hub.NoticeUp, hub.NoticeOffer, hub.NoticeTaken, hub.NoticeShared, hub.NoticeUnshared, hub.NoticeReport, hub.NoticeHeld, hub.NoticeProof, hub.NoticePeer, hub.NoticeWebhook),
		"Notice.subject": say("The agent's name; of a webhook, its host."),
		"Webhook.url":    {"description": "Where requests go. https, unless the portal is on a loopback address or its operator allows the network.", "format": "uri", "maxLength": 2048}, "Webhook.label": upTo("For people.", 60),
		"Webhook.events": {"minItems": 1}, "Webhook.reason": say("Why it is stopped, or did not take the last event."), "Webhook.waiting": say("Events that are still to be sent."), "Webhook.missed": say("Events that were not kept, because 1,000 waited already."),
		"WebhookInput.active": say("`false` pauses it; `true` lets it go on, also after it was stopped."), "WebhookInput.url": {"description": "Where requests go.", "maxLength": 2048}, "WebhookInput.label": upTo("For people.", 60), "WebhookInput.events": {"minItems": 1},
		"Task.push": say("Where A2A's push notifications of it go."), "Push.name": say("The config's id."), "Push.reason": say("Why it was given up, or did not take the last one."), "Push.waiting": say("Notifications that are still to be sent."),
		"*.failing_since": time, "*.next_at": time, "Delivery.event_id": say("As in the header `webhook-id`; the same each time the event is sent."), "Delivery.status": say("Of HTTP; 0 without an answer."), "*.duration_ms": say("Milliseconds."),
		"Delivery.error": say("Why it was not taken."), "*.secret": say("The key of the signatures, `whsec_…`."),
		"Notice.url": link("A page about it."), "ReadNotices.up_to": id,
		"SavedSearch.query": upTo("As the address of a search has it: `q=pdf&kind=mcp`.", 1000), "SavedSearch.feed": link("An Atom feed of what it finds, newest first."), "SavedSearch.new": most("What was registered since it was looked at.", search.FeedEntries),
		"Rollback.base": say("The version that is thought to be the newest; if it is not, 409."),
		"Token.label":   upTo("For people.", 100), "Token.scopes": say("What it may do; empty for all that the account may."), "Token.expires_days": {"description": "0 stands for 90.", "maximum": 366},
		"ChatPreferences.quiet_from": {"description": "HH:MM; empty for no quiet hours.", "pattern": "^(([01]?[0-9]|2[0-3]):[0-5][0-9])?$"}, "ChatPreferences.quiet_to": {"description": "HH:MM.", "pattern": "^(([01]?[0-9]|2[0-3]):[0-5][0-9])?$"},
		"ChatPreferences.zone": say("A time zone, as in `Europe/Berlin`."),

		"Member.kind": oneOf("", "person", "guest", "agent"), "Member.remote": say("The host to which text for this agent goes, if it leaves the portal."),
		"RoomSettings.speaker": say("The handle of the agent that answers."), "RoomSettings.hops": most("How often agents may answer each other.", chat.MaxSettings.Hops), "RoomSettings.turns": most("How many answers one message may lead to.", chat.MaxSettings.Turns),
		"RoomSettings.budget":     most("How many bytes those may have.", chat.MaxSettings.Budget),
		"ConversationChange.hops": most("As in RoomSettings.", chat.MaxSettings.Hops), "ConversationChange.turns": most("As in RoomSettings.", chat.MaxSettings.Turns), "ConversationChange.budget": most("As in RoomSettings.", chat.MaxSettings.Budget),
		"ConversationChange.title": upTo("", chat.MaxTitleRunes), "Conversation.title": upTo("May be empty.", chat.MaxTitleRunes),
		"ConversationInput.members": items("Handles of agents and people; may be empty, for notes to oneself.", chat.MaxMembers, openapi.Schema{}), "MembersInput.members": items("Handles.", chat.MaxMembers, openapi.Schema{}),
		"Conversation.private": say("Whether the caller is its only person."), "Conversation.unread": most("Texts of others that were not read; in lists only.", chat.MaxUnread),
		"OwnSettings.from_seq": say("What was said up to there is not shown to the caller."), "Conversation.branched_seq": say("The last message that was copied."),
		"Sender.kind": oneOf("", "person", "guest", "agent", "system"), "Message.seq": say("Counts 1, 2, 3 within the conversation."), "Message.parts": openapi.Schema{"maxItems": chat.MaxParts},
		"Message.target": say("The `seq` it answers to, takes the place of, or changes."), "Message.newer_seq": say("The answer that took its place."), "Reaction.by": say("Handles."), "Unsaid.by": say("The person that deleted it."),
		"Part.text": say("Plain text or Markdown. A part has one of `text`, `raw`, `url` and `data`."), "Part.url": say("The address of a file; of the portal's own, its path."), "Part.data": say("Any JSON."), "Part.metadata": say("A JSON object of whoever made it."),
		"Say.client_id": {"description": "New for each message of a sender in a conversation, for example a UUID; for ever.", "minLength": 1, "maxLength": chat.MaxClientID}, "Say.text": upTo("Instead of `parts`; at most 64 KiB.", chat.MaxTextBytes),
		"Say.parts": openapi.Schema{"maxItems": chat.MaxParts}, "Say.reply_to": say("The `seq` of the message it answers to."), "Say.told": say("Handles of agents on other portals for which the person saw the disclosure."),
		"Edit.parts": openapi.Schema{"maxItems": chat.MaxParts}, "TaskInput.client_id": upTo("As in SayInput; made up if it is missing.", chat.MaxClientID),
		"Link.url": link("With its secret; shown once."), "Link.by": say("Its author."), "Link.max_uses": most("0 for no bound.", 1000), "LinkInput.role": oneOf("What people join as.", chat.RoleMember, chat.RoleReader), "Link.life": say("As in `24h`; at most a year."),
		"Domains.token": say("What the file at `path` of a domain must hold."), "Owners.offered_to": say("The account that it is offered to, if any."),
		"Disclosure.host": say("Where text to it goes."), "File.hash": say("The SHA-256 in hexadecimal."), "File.url": say("A path, for a part of a message and to fetch it."), "File.size": say("Bytes."),
		"Artifact.artifactId": say("Unique within the task."), "Task.history": say("What was asked."), "Task.agent": say("A handle."), "Task.state": openapi.Ref("TaskState"),
		"TaskStatus.state":    oneOf("A2A's name of the state.", a2aStates()...),
		"A2AMessage.role":     oneOf("", "ROLE_USER", "ROLE_AGENT"),
		"SayAnswer.held":      say("How many agents were not asked, because of a bound."),
		"TaskReference.agent": say("A handle."),
		".fields":             say("What is wrong, by field of the request."), ".message": say("What is wrong and what to do, for people."), ".request_id": say("For the operator."),
	}
}

func a2aStates() []string {
	out := make([]string, len(taskStates))
	for i, s := range taskStates {
		out[i] = s.A2A()
	}
	return out
}
