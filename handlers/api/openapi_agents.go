package api

import (
	"net/http"

	"agentsite/handlers/openapi"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
)

const (
	exampleAgentBody = `{"name":"llama","title":"Llama","description":"Answers questions with Llama 3.2","kind":"openai","endpoint":"http://127.0.0.1:11434/v1",
		"skills":[{"id":"ask","name":"Answer questions","description":"General questions","tags":["general"],"examples":["Why is the sky blue?"]}],
		"visibility":"public","config":{"model":"llama3.2"}}`
	exampleAgent = `{"handle":"llama","name":"llama","portal":"portal.example","title":"Llama","description":"Answers questions with Llama 3.2","kind":"openai",
		"skills":[{"id":"ask","name":"Answer questions","description":"General questions","tags":["general"],"examples":["Why is the sky blue?"]}],
		"visibility":"public","owner":"ann","version":1,"status":{"state":"active","message":""},
		"liveness":{"state":"alive","checked_at":"2026-11-22T09:30:00.000Z","latency_ms":41,"reason":""},"verified":true,"proof":{"state":"unproven"},
		"languages":["en"],"input_modes":["text/plain"],"output_modes":["text/plain"],"limits":{},
		"created_at":"2026-11-22T09:29:58.112Z","updated_at":"2026-11-22T09:29:58.112Z"}`
	exampleSearch = `{"results":[],"total":0,"facets":{"kind":[{"value":"openai","count":3}]},"suggestions":["translate"],
		"portals":{"known":1,"asked":1,"answered":1,"silent":[],"oldest_head_age":0,"tier":"replica"},"next_cursor":""}`
)

var searchParameters = []string{"q", "kind", "tag", "skill", "portal", "live", "language", "modality", "proof", "publisher", "signed", "sort", "scope", "copies", "same", "limit", "cursor"}

func agentOperations() []openapi.Operation {
	anAgent := ok("The agent.", agentJSON{})
	return []openapi.Operation{
		{Method: "GET", Path: "/search", ID: "searchAgents", Tag: "agents", Summary: "Search for agents", Scopes: readsAgents, Anonymous: true, Query: searchParameters,
			Text: "Words match by their beginning and in other forms, and small mistakes are mended. `\"two words\"` must stand together, `-word` must not be there. " +
				"Portals whose agents are not all held here are asked, which takes up to a second. With `Accept: text/event-stream` nothing waits: the event `page` is what is held here, each `late` what another portal added, `end` has the `portals` of all; the data of each is a page, with `results` and `portals`.",
			Answers: map[int]openapi.Answer{http.StatusOK: {Text: "A page of what was found, with exact counts.", Example: exampleSearch, Media: openapi.Media{"text/event-stream": {"type": "string"}}, JSON: openapi.Object{
				"results": []openapi.Object{{"agent": agentJSON{}, "score": 0.0, "matched": []string{}, "liveness": livenessJSON{}, "verified": false,
					"why":    []openapi.Object{{"word": "", "found": "", "how": oneOf("How the word was found.", "exact", "form", "prefix", "typo", "phrase"), "field": ""}},
					"source": sourceJSON{},
					"copies?": openapi.Schema{"type": "object", "description": "Other portals that have the very same built-in agent, when there are any.", "required": []string{"portals", "at"}, "properties": openapi.Schema{
						"portals": openapi.Schema{"type": "integer", "minimum": 1, "description": "How many."},
						"at":      openapi.Schema{"type": "array", "maxItems": hub.MaxCopiesAt, "items": openapi.Schema{"type": "string"}, "description": "Hosts of the first of them."}}}}},
				"total": 0, "suggestions": []string{}, "next_cursor": openapi.Ref("Cursor"),
				"facets": openapi.Schema{"type": "object", "description": "How many of all that was found have each value, by parameter.",
					"additionalProperties": openapi.Schema{"type": "array", "items": openapi.Schema{"type": "object", "required": []string{"value", "count"},
						"properties": openapi.Schema{"value": openapi.Schema{"type": "string"}, "count": openapi.Schema{"type": "integer", "minimum": 0}}}}},
				"portals": federation.Coverage{}}}}},
		{Method: "GET", Path: "/suggest", ID: "suggest", Tag: "agents", Summary: "Complete a half-typed word", Scopes: readsAgents, Anonymous: true, Query: []string{"q"},
			Answers: ok("At most 8 suggestions.", openapi.Object{"suggestions": []suggestionJSON{}})},
		{Method: "GET", Path: "/agents", ID: "listAgents", Tag: "agents", Summary: "List agents", Scopes: readsAgents, Anonymous: true, Query: append([]string{"list_owner"}, searchParameters...),
			Text:    "Takes the parameters of a search, and lists copies too. With `owner=me` it lists the caller's own agents, all at once and with what only their owners see; a token then needs `agents:read` or `agents:write`.",
			Answers: ok("A page of agents.", list("agents", []agentJSON{}))},
		{Method: "POST", Path: "/agents", ID: "registerAgent", Tag: "agents", Summary: "Register an agent", Scopes: writes, Conflict: true, Body: DraftJSON{}, Example: exampleAgentBody,
			Text:    "With only the `endpoint` of an A2A agent or an MCP server, what it says of itself fills the rest; otherwise `name`, `description` and `kind` are needed. An endpoint that does not answer is registered all the same, as `unreachable`.",
			Answers: map[int]openapi.Answer{http.StatusCreated: {Text: "The new agent.", JSON: agentJSON{}, Example: exampleAgent, Location: true}}},
		{Method: "GET", Path: "/agents/{name}", ID: "getAgent", Tag: "agents", Summary: "Read an agent", Scopes: seesAgent, Anonymous: true,
			Answers: map[int]openapi.Answer{http.StatusOK: {Text: "The agent. Its owners also get `endpoint`, `config`, `has_secret`, `embed_origins` and `network`.", JSON: agentJSON{}, Example: exampleAgent}}},
		{Method: "PUT", Path: "/agents/{name}", ID: "putAgent", Tag: "agents", Summary: "Register an agent, or bring it to what the body says", Scopes: writes, Conflict: true, Body: DraftJSON{},
			Text: "The same body again changes nothing.",
			Answers: map[int]openapi.Answer{http.StatusOK: {Text: "The agent as it is now.", JSON: agentJSON{}, Location: true},
				http.StatusCreated: {Text: "The new agent.", JSON: agentJSON{}, Location: true}}},
		{Method: "PATCH", Path: "/agents/{name}", ID: "updateAgent", Tag: "agents", Summary: "Change an agent", Scopes: writes, Conflict: true, Body: DraftJSON{}, Example: `{"title":"Llama the helper"}`,
			Text: "Changes only the fields that are sent, and makes a new version.", Answers: anAgent},
		{Method: "DELETE", Path: "/agents/{name}", ID: "deleteAgent", Tag: "agents", Summary: "Remove an agent", Scopes: writes, Conflict: true, Answers: nothingSaid()},
		{Method: "GET", Path: "/agents/{name}/versions", ID: "listVersions", Tag: "agents", Summary: "List an agent's versions", Scopes: seesAgent, Anonymous: true, Query: []string{"cursor"},
			Answers: ok("A page of versions, newest first.", list("versions", []versionJSON{}))},
		{Method: "GET", Path: "/agents/{name}/versions/{version}", ID: "getVersion", Tag: "agents", Summary: "Read one version, with what it changed", Scopes: seesAgent, Anonymous: true,
			Answers: ok("The agent as it was. Its owners and its liveness are the current ones.", agentVersionJSON{})},
		{Method: "POST", Path: "/agents/{name}/rollback", ID: "rollBackAgent", Tag: "agents", Summary: "Make an old version the newest", Scopes: writes, Conflict: true, Body: rollbackBody{}, Example: `{"version":2}`, Answers: anAgent},
		{Method: "POST", Path: "/agents/{name}/check", ID: "checkAgent", Tag: "agents", Summary: "Contact an agent now", Scopes: writes, Answers: ok("The agent, with what was found.", agentJSON{})},
		{Method: "POST", Path: "/agents/{name}/try", ID: "tryAgent", Tag: "agents", Summary: "Let an agent answer once, outside of any conversation", Scopes: writes, Conflict: true, Body: tryBody{}, Example: `{"text":"Hello"}`,
			Text:    "It answers as it would be after the changes in the body. What is said is not stored.",
			Answers: ok("What came of it.", openapi.Object{"state": oneOf("A task's state.", taskStates...), "text": "", "reason": "", "took_ms": 0})},
		{Method: "GET", Path: "/agents/{name}/history", ID: "listContacts", Tag: "agents", Summary: "List the last contacts with an agent", Scopes: seesAgent, Anonymous: true,
			Answers: ok("At most 200 contacts, oldest first.", list("contacts", []contactJSON{}))},
		{Method: "GET", Path: "/agents/{name}/record", ID: "getRecord", Tag: "agents", Summary: "Get what shows that an agent is listed", Scopes: readsAgents, Anonymous: true,
			Text:    "The signed record, the portal's card and newest head, and the proof that the head covers the record, as sent between portals. Any client can verify them without trusting this portal.",
			Answers: ok("What its portal signed.", recordJSON{})},
		{Method: "GET", Path: "/agents/{name}/stats", ID: "getAgentStats", Tag: "agents", Summary: "See how an agent is used", Scopes: writes, Text: "For its owners.",
			Answers: ok("The last 30 days, without those that saw nothing, and the last 200 calls.", openapi.Object{"days": []dayJSON{}, "calls": []callJSON{}, "p50_ms": 0, "p95_ms": 0})},
		{Method: "GET", Path: "/agents/{name}/calls/{task}", ID: "getCall", Tag: "agents", Summary: "See what went over the wire in an own call", Scopes: writes,
			Answers: ok("At most 40 pieces, in order.", openapi.Object{"traces": []traceJSON{}})},
		{Method: "GET", Path: "/agents/{name}/owners", ID: "listOwners", Tag: "agents", Summary: "List the owners of an agent", Scopes: writes, Answers: ok("Its owners.", ownersJSON{})},
		{Method: "POST", Path: "/agents/{name}/owners", ID: "addOwner", Tag: "agents", Summary: "Add a co-owner", Scopes: writes, Conflict: true, Body: addOwnerBody{}, Example: `{"name":"ben"}`, Answers: ok("Its owners.", ownersJSON{})},
		{Method: "DELETE", Path: "/agents/{name}/owners/{owner}", ID: "removeOwner", Tag: "agents", Summary: "Remove a co-owner", Scopes: writes, Answers: nothingSaid()},
		{Method: "POST", Path: "/agents/{name}/offer", ID: "offerAgent", Tag: "agents", Summary: "Offer an agent to another account, or take that back", Scopes: writes, Conflict: true, Body: offerBody{}, Example: `{"to":"ben"}`, Answers: nothingSaid()},
		{Method: "GET", Path: "/offers", ID: "listOffers", Tag: "agents", Summary: "List what is offered to the caller", Scopes: readsAgents, Answers: ok("The offers.", list("offers", []offerJSON{}))},
		{Method: "POST", Path: "/offers/{name}", ID: "answerOffer", Tag: "agents", Summary: "Take an offered agent, or refuse it", Scopes: writes, Conflict: true, Body: answerBody{}, Example: `{"accept":true}`, Answers: nothingSaid()},
		{Method: "GET", Path: "/agents/{name}/proof", ID: "getProof", Tag: "agents", Summary: "See what proves an agent's address", Scopes: seesAgent, Anonymous: true, Answers: ok("The proof, and for the owner the token that makes one.", addressProofJSON{})},
		{Method: "POST", Path: "/agents/{name}/prove", ID: "proveAddress", Tag: "agents", Summary: "Check the proof now", Scopes: writes, Conflict: true, Answers: anAgent},
		{Method: "POST", Path: "/agents/{name}/report", ID: "reportAgent", Tag: "agents", Summary: "Report an agent to the operator", Scopes: readsAgents, Body: reportBody{}, Example: `{"reason":"broken","text":"It says nothing."}`, Answers: nothingSaid()},
		{Method: "POST", Path: "/import", ID: "importAgents", Tag: "agents", Summary: "Register many agents", Scopes: operates, Optional: true,
			Text: "For operators. What was registered before a line that cannot be read stays.",
			Body: openapi.Media{"application/x-ndjson": {"type": "string", "description": "One AgentInput a line, of at most 256 KiB. Other media types are taken too."}},
			Answers: ok("How many were registered, and why others were not.", openapi.Object{"registered": 0, "skipped": 0,
				"errors": openapi.Schema{"type": "array", "maxItems": 100, "items": openapi.Schema{"type": "string"}}})},
	}
}

// parameters are those of all operations.
func parameters() map[string]openapi.Parameter {
	id, text := openapi.Ref("Id"), openapi.Schema{"type": "string"}
	seq := openapi.Schema{"type": "integer", "format": "int64", "minimum": 0}
	limit := func(most, usual int) openapi.Parameter {
		return openapi.Parameter{Name: "limit", Text: "How many at most.", Schema: openapi.Schema{"type": "integer", "minimum": 1, "maximum": most, "default": usual}}
	}
	return map[string]openapi.Parameter{
		"name":    {Text: "An agent's name, or name@portal for one of another portal.", Schema: openapi.Schema{"type": "string", "examples": []string{"calc"}}},
		"id":      {Text: "The id of what the path is about.", Schema: id},
		"task":    {Text: "The id of a task.", Schema: id},
		"link":    {Text: "The id of a link.", Schema: id},
		"owner":   {Text: "The name of a co-owner's account.", Schema: text},
		"version": {Text: "The number of a version, or `latest`.", Schema: openapi.Schema{"type": "string", "pattern": "^([0-9]+|latest)$"}},
		"domain":  {Text: "A domain, as in `example.org`.", Schema: text},
		"seq":     {Text: "The number of a message in its conversation.", Schema: openapi.Schema{"type": "integer", "format": "int64", "minimum": 1}},
		"handle":  {Text: "The handle of a member.", Schema: text},
		"emoji":   {Text: "One emoji.", Schema: openapi.Schema{"type": "string", "examples": []string{"👍"}}},
		"secret":  {Text: "The secret of a link, the last part of its address.", Schema: text},
		"hash":    {Text: "The SHA-256 of a file, in hexadecimal.", Schema: openapi.Schema{"type": "string", "pattern": "^[0-9a-f]{64}$"}},

		"q":         {Text: "The words to look for. Empty lists all, where that is possible.", Schema: text},
		"kind":      {Text: "Only agents of this kind.", Schema: openapi.Ref("AgentKind"), Many: true},
		"tag":       {Text: "Only agents with this tag.", Schema: text, Many: true},
		"skill":     {Text: "Only agents with this skill.", Schema: text, Many: true},
		"portal":    {Text: "Only agents of this portal.", Schema: text, Many: true},
		"live":      {Text: "Only agents in this state; `true` stands for `alive`, `false` for all others.", Schema: openapi.Schema{"type": "string", "enum": []any{hub.Alive, hub.NeedsAuth, hub.WrongProtocol, hub.Unreachable, hub.Unknown, "true", "false"}}, Many: true},
		"language":  {Text: "A language tag such as `de`, which also finds `de-ch`.", Schema: text, Many: true},
		"modality":  {Text: "What an agent takes or gives.", Schema: oneOf("", "text", "image", "audio", "video", "data", "file"), Many: true},
		"proof":     {Text: "What is known of the address.", Schema: oneOf("", hub.Hosted, hub.Proved, hub.Unproven), Many: true},
		"publisher": {Text: "The proved domain under which an agent is published.", Schema: text, Many: true},
		"signed":    {Text: "Whether its entry is signed.", Schema: openapi.Schema{"type": "boolean"}, Many: true},
		"sort":      {Text: "The order.", Schema: oneOf("", hub.SortRelevance, hub.SortName, hub.SortNewest, hub.SortUpdated)},
		"scope":     {Text: "Where to look.", Schema: oneOf("", "portal", "federation")},
		"copies":    {Text: "Built-in agents that say the very same of themselves are one result, with the others in its `copies`. `true` makes each a result, as asking for a portal does.", Schema: openapi.Schema{"type": "boolean"}},
		"same":      {Text: "Only the agents that count as copies of the one with this handle, and that one.", Schema: text},
		"cursor":    {Text: "The `next_cursor` of the page before, with the same other parameters.", Schema: text},

		"list_owner":    {Name: "owner", Text: "`me` lists the caller's own agents.", Schema: oneOf("", "me")},
		"limit":         limit(100, 20),
		"list_limit":    limit(100, 50),
		"last_limit":    limit(50, 50),
		"message_limit": limit(200, 50),
		"filter":        {Text: "Only the pinned conversations, or only the archived ones.", Schema: oneOf("", "pinned", "archived")},
		"after":         {Text: "Only messages behind this `seq`.", Schema: seq},
		"before":        {Text: "Only messages before this `seq`, the last ones first to be kept.", Schema: seq},
		"order":         {Text: "`newest` takes the last messages instead of the first.", Schema: oneOf("", "newest")},
		"format":        {Text: "How to write it; without it, `Accept: application/json` asks for JSON.", Schema: oneOf("", "markdown", "md", "json")},
		"html":          {Text: "`1` adds the HTML that pages show.", Schema: oneOf("", "1")},
		"file_name":     {Name: "name", Text: "A name for the file.", Schema: text},
		"body_handle":   {Name: "handle", Text: "The handle of a member, instead of a body.", Schema: text},
		"conversation":  {Name: "conversation_id", Text: "Only tasks of this conversation.", Schema: id},
		"task_state":    {Name: "state", Text: "Only tasks in this state.", Schema: openapi.Ref("TaskState")},
		"peer":          {Text: "The id of a portal, or its host.", Schema: text},
		"dht_q":         {Name: "q", Text: "The id of a portal (`p1…`), the handle of an agent that is known here or its id in the network (`p1…/…`, `a1…`), else a capability.", Schema: text},
		"peer_q":        {Name: "q", Text: "Only portals whose name, address, id or operator has this.", Schema: text},
		"peer_state":    {Name: "state", Text: "Only portals in this state.", Schema: text},
		"peer_limit":    limit(1000, 100),
		"network_limit": limit(1000, 500),
		"note":          {Text: "Why, for the log.", Schema: openapi.Schema{"type": "string", "maxLength": 400}},
		"resume_after":  {Name: "after", Text: "The last `seq` that was seen; 0 sends everything.", Schema: seq},
	}
}
