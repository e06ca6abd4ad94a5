package api

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"agentsite/handlers/address"
	"agentsite/handlers/openapi"
	"agentsite/handlers/respond"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/notify"
	"agentsite/internal/task"
)

// document is the OpenAPI document of a portal, with its entity tag.
type document struct {
	json []byte
	tag  string
	err  error
}

func newDocument(portal address.Portal, cookieName string) document {
	b, err := describe(portal, cookieName).Document()
	sum := sha256.Sum256(b)
	return document{b, `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`, err}
}

// apiOpenAPI answers with the OpenAPI description, which is the same for all callers.
func (d *API) apiOpenAPI(w http.ResponseWriter, r *http.Request, _ ident.Actor) error {
	d.describing.Do(func() { d.document = newDocument(d.portal, d.cookieName) })
	doc := d.document
	if doc.err != nil {
		return fmt.Errorf("describe the API: %w", doc.err)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Cache-Control", "public, max-age=300")
	h.Set("ETag", doc.tag)
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(doc.json)))
	return nil
}

// Lists of scopes by kind of operation. One scope of a list is enough.
var (
	readsAgents = []string{string(ident.AgentsRead)}
	writes      = []string{string(ident.AgentsWrite)}
	// Whoever changes agents or talks to them may look at one by its name.
	seesAgent = []string{string(ident.AgentsRead), string(ident.AgentsWrite), string(ident.ChatWrite)}
	readsChat = []string{string(ident.ChatRead), string(ident.ChatWrite)}
	talks     = []string{string(ident.ChatWrite)}
	followsUp = []string{string(ident.Tasks)}
	manages   = []string{string(ident.AccountAll)}
	operates  = []string{string(ident.Admin)}
)

// describe returns the description of the API. Each route that API declares has one operation in one of the lists.
func describe(portal address.Portal, cookieName string) openapi.API {
	return openapi.API{
		Info: openapi.Schema{"title": "agentsite", "version": cmp.Or(portal.Version, "0"),
			"summary": "A portal for AI agents: find them, register them, talk to them.",
			"description": "Fields are in snake_case, except inside objects of the A2A protocol. Times are RFC 3339 in UTC with milliseconds; ids are ULIDs. " +
				"Lists have a `limit` and an opaque `cursor`; the answer's `next_cursor` is empty at the end. " +
				"A missing resource and one that the caller may not see have the same answer. Unsafe requests of pages of other sites are refused with 403. " +
				"Answers may get further fields. The manual is at " + portal.URL + "/docs/api.",
			"contact": openapi.Schema{"name": "About this portal", "url": portal.URL + "/about"},
			"license": openapi.Schema{"name": "Apache 2.0", "identifier": "Apache-2.0"}},
		Server: portal.URL + "/api/v1",
		Tags: []openapi.Tag{
			{Name: "agents", Text: "The directory: search, registration, versions, owners."},
			{Name: "conversations", Text: "Talking to agents and people: conversations, messages, members, links."},
			{Name: "files", Text: "Files in messages."},
			{Name: "tasks", Text: "Each call of an agent is one task, an A2A 1.0 Task with our fields beside."},
			{Name: "account", Text: "The caller: tokens, notices, saved searches, proved domains."},
			{Name: "network", Text: "Other portals: how they are doing, and what operators decide about them. A portal is named by its id or its host."},
			{Name: "portal", Text: "The API itself."},
		},
		Schemes: map[string]openapi.Schema{
			"token":   {"type": "http", "scheme": "bearer", "description": "An API token, `ags_…`. Each operation lists scopes of which one is enough; a token without any scope may do all that its account may."},
			"session": {"type": "apiKey", "in": "cookie", "name": cmp.Or(cookieName, "session"), "description": "The session of a browser that is logged in, or of a visitor with a conversation."},
			"fileKey": {"type": "apiKey", "in": "query", "name": chat.FileKeyParam, "description": "A key that the portal put into the address of a file that it gave to an agent. It is for that file only and ends by itself."},
		},
		Bearer: "token", Cookie: "session",
		Named: map[string]openapi.Schema{
			"Id":   {"type": "string", "pattern": "^[0-9A-HJKMNP-TV-Z]{26}$", "description": "A ULID.", "examples": []string{"01JDA7Q3W0K4V9T2M5N8P1R6XY"}},
			"Time": {"type": "string", "format": "date-time", "pattern": `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`, "description": "RFC 3339 in UTC with milliseconds.", "examples": []string{"2026-11-22T09:30:00.000Z"}},
			"Cursor": {"type": "string", "description": "The start of the next page, to be sent as `cursor`; empty at the end.",
				"examples": []string{""}},
		},
		Enums: map[reflect.Type]openapi.Schema{
			reflect.TypeFor[hub.Kind]():       oneOf("The way an agent is reached. `builtin` agents are part of the portal and cannot be registered.", hub.Builtin, hub.A2A, hub.MCP, hub.OpenAI, hub.Prompt, hub.Link),
			reflect.TypeFor[hub.Visibility](): oneOf("The visibility of an agent: for everyone, for callers that know its handle, or for its owners.", hub.Public, hub.Unlisted, hub.Private),
			reflect.TypeFor[hub.Live]():       oneOf("The result of the last exchange with an agent.", hub.Alive, hub.NeedsAuth, hub.WrongProtocol, hub.Unreachable, hub.Unknown),
			reflect.TypeFor[fault.Kind]():     oneOf("The kind of the error.", fault.Invalid, fault.Unauthenticated, fault.Forbidden, fault.NotFound, fault.Conflict, fault.RateLimited, fault.Unavailable, fault.Internal),
			reflect.TypeFor[ident.Scope]():    oneOf("A permission of a token.", ident.Scopes()...),
			reflect.TypeFor[task.State]():     oneOf("A task's state, A2A's in lower case.", taskStates...),
			reflect.TypeFor[chat.Kind]():      oneOf("The kind of a line of a conversation: said, about the room, or a change of the line that `target` names.", chat.Text, chat.Event, chat.Edit, chat.Unsaid, chat.React),
			reflect.TypeFor[chat.Speaks]():    oneOf("Which agent answers a message without an address: the only one, none, the chosen one, or one after the other.", chat.SpeaksAlone, chat.SpeaksNobody, chat.SpeaksAgent, chat.SpeaksTurns),
			reflect.TypeFor[chat.Past]():      oneOf("Which earlier messages a new member sees.", chat.PastAll, chat.PastNothing),
			reflect.TypeFor[chat.Notify]():    oneOf("Notifications: of every text, of texts that mention the person, or none.", chat.NotifyAll, chat.NotifyMentions, chat.NotifyNothing),
			reflect.TypeFor[chat.Share]():     oneOf("The part of a conversation that is sent to an agent on another portal: all earlier messages, those to and by that agent, or the message alone.", chat.ShareAll, chat.ShareOwn, chat.ShareNothing),
			reflect.TypeFor[notify.Type]():    oneOf("The event of a webhook. `webhook.test` is for tests only, and `agent.reported` for operators.", append(slices.Clone(notify.Types), notify.Tested)...),
			reflect.TypeFor[notify.State]():   oneOf("An active webhook gets events, a paused one does not; a failed one was stopped because it accepted nothing for long.", notify.Active, notify.Paused, notify.Failed),
			reflect.TypeFor[chat.LinkKind]():  oneOf("A link lets people join, or shows the messages up to its creation.", chat.JoinLink, chat.ReadLink),
		},
		Names: map[reflect.Type]string{
			reflect.TypeFor[DraftJSON]():         "AgentInput",
			reflect.TypeFor[respond.ErrorBody](): "Error",
			reflect.TypeFor[savedJSON]():         "SavedSearch",
			reflect.TypeFor[foundJSON]():         "FoundMessage",
			reflect.TypeFor[PrefsJSON]():         "ChatPreferences",
			reflect.TypeFor[mineJSON]():          "OwnSettings",
			reflect.TypeFor[dayJSON]():           "DayOfCalls",
			reflect.TypeFor[hub.Kind]():          "AgentKind",
			reflect.TypeFor[hub.Live]():          "LivenessState",
			reflect.TypeFor[fault.Kind]():        "ErrorKind",
			reflect.TypeFor[task.State]():        "TaskState",
			reflect.TypeFor[notify.Type]():       "WebhookEvent",
			reflect.TypeFor[notify.State]():      "WebhookState",
			reflect.TypeFor[madeWebhookJSON]():   "NewWebhook",
			reflect.TypeFor[chat.Kind]():         "MessageKind",
			reflect.TypeFor[a2aMessage]():        "A2AMessage",
			reflect.TypeFor[statusJSON]():        "AgentStatus",
			reflect.TypeFor[versionJSON]():       "VersionSummary",
			reflect.TypeFor[hub.Limits]():        "CallLimits",
			reflect.TypeFor[taskRefJSON]():       "TaskReference",
			reflect.TypeFor[settingsJSON]():      "RoomSettings",
			reflect.TypeFor[proofJSON]():         "Proof",
			reflect.TypeFor[publicationJSON]():   "Publication",
			reflect.TypeFor[roomBody]():          "ConversationChange",
			reflect.TypeFor[disclosureBody]():    "ShareInput",
			reflect.TypeFor[membersBody]():       "MembersInput",
			reflect.TypeFor[proveDomainBody]():   "DomainInput",
			reflect.TypeFor[saveSearchBody]():    "SavedSearchInput",
			reflect.TypeFor[readBody]():          "ReadMarkInput",
			reflect.TypeFor[answerBody]():        "OfferAnswer",
			reflect.TypeFor[addPeerBody]():       "NewPeerInput",
			reflect.TypeFor[addedPeerJSON]():     "NewPeer",
			reflect.TypeFor[policyBody]():        "PeerPolicyInput",
			reflect.TypeFor[federation.Policy](): "PeerPolicy",
			reflect.TypeFor[releaseBody]():       "PeerRelease",
			reflect.TypeFor[attestBody]():        "Attestation",
		},
		Fields:     withTexts(fieldTexts(), peerFields()),
		Required:   requiredFields,
		Parameters: parameters(),
		Error:      respond.ErrorBody{},
		Operations: slices.Concat(portalOperations(), agentOperations(), conversationOperations(), accountOperations(), peerOperations()),
	}
}

// withTexts puts two of them together.
func withTexts(a, b map[string]openapi.Schema) map[string]openapi.Schema {
	maps.Copy(a, b)
	return a
}

var taskStates = []task.State{task.Submitted, task.Working, task.InputRequired, task.AuthRequired, task.Completed, task.Failed, task.Canceled, task.Rejected}

// oneOf is a text that is one of a list.
func oneOf[T ~string](text string, list ...T) openapi.Schema {
	s := openapi.Schema{"type": "string", "enum": list}
	if text != "" {
		s["description"] = text
	}
	return s
}

// list is a page of a list.
func list(name string, of any) openapi.Object {
	return openapi.Object{name: of, "next_cursor": openapi.Ref("Cursor")}
}

func ok(text string, v any) map[int]openapi.Answer {
	return map[int]openapi.Answer{http.StatusOK: {Text: text, JSON: v}}
}

func made(text string, v any) map[int]openapi.Answer {
	return map[int]openapi.Answer{http.StatusCreated: {Text: text, JSON: v, Location: true}}
}

// nothingSaid is the answer of an operation without a result.
func nothingSaid() map[int]openapi.Answer {
	return map[int]openapi.Answer{http.StatusNoContent: {Text: "Done."}}
}

func portalOperations() []openapi.Operation {
	return []openapi.Operation{
		{Method: "GET", Path: "/openapi.json", ID: "getOpenAPI", Tag: "portal", Summary: "This document", Anonymous: true,
			Answers: map[int]openapi.Answer{http.StatusOK: {Text: "The document. It has an `ETag`.", Media: openapi.Media{"application/json": {"type": "object", "description": "An OpenAPI 3.1 document."}}},
				http.StatusNotModified: {Text: "It is the document that `If-None-Match` names."}}},
	}
}
