package api

import (
	"encoding"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"agentsite/handlers/address"
	"agentsite/handlers/api/goals"
	"agentsite/handlers/api/operator"
	"agentsite/handlers/api/profiles"
	"agentsite/handlers/api/spending"
	hostingapi "agentsite/handlers/hosting"
	librarypages "agentsite/handlers/library"
	memorypages "agentsite/handlers/memories"
	packageapi "agentsite/handlers/packages"
	"agentsite/handlers/personal"
	"agentsite/handlers/respond"
	"agentsite/handlers/search"
	"agentsite/internal/agentkind"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/hosting"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/memory"
	"agentsite/internal/notify"
	"agentsite/internal/packages"
	"agentsite/internal/record"
	"agentsite/internal/scheduler"
	"agentsite/internal/task"
	"agentsite/internal/team/flow"
	"agentsite/internal/usage"
)

// answerTypes are the types that handlers encode, by the schema that describes them.
var answerTypes = map[string]any{
	"A2AMessage": a2aMessage{}, "AddressProof": addressProofJSON{}, "Agent": agentJSON{}, "AgentStatus": statusJSON{},
	"AgentVersion": agentVersionJSON{}, "AnsweredTask": answeredTaskJSON{}, "Artifact": task.Artifact{},
	"Call": callJSON{}, "CallLimits": hub.Limits{}, "Change": changeJSON{}, "ChatPreferences": PrefsJSON{},
	"Contact": contactJSON{}, "Conversation": ConversationJSON{}, "Coverage": federation.Coverage{},
	"DHTAnswer": federation.DHTAnswer{}, "DHTPortal": federation.DHTPortal{}, "DHTStanding": federation.DHTStanding{},
	"DayOfCalls": dayJSON{}, "Decision": decisionJSON{}, "Delivery": deliveryJSON{}, "Disclosure": disclosureJSON{},
	"Domain": domainJSON{}, "Domains": domainsJSON{}, "Error": respond.ErrorBody{}, "Export": federation.Export{},
	"File": fileJSON{}, "FoundMessage": foundJSON{}, "GossipStanding": federation.GossipStanding{},
	"Import": federation.Import{}, "Block": blockJSON{}, "Grant": grantJSON{}, "Halt": haltJSON{}, "Setting": operator.SettingJSON{}, "Matter": operator.MatterJSON{}, "DayFigures": operator.DayJSON{}, "Person": profiles.PersonJSON{},
	"Ceiling": spending.CeilingJSON{}, "HostingRules": hosting.Rules{}, "Module": hostingapi.ModuleJSON{}, "Memory": memorypages.MemoryJSON{}, "LibraryFile": librarypages.FileJSON{}, "LibraryVersion": librarypages.VersionJSON{}, "LibraryShare": librarypages.ShareJSON{}, "Model": spending.ModelJSON{}, "ModelPrice": usage.Price{}, "UsageSum": spending.SumJSON{}, "UsageCost": spending.CostJSON{}, "GrantBudget": grantBudgetJSON{}, "GrantBinds": grantBindsJSON{}, "LeaveInput": leaveBody{}, "Link": linkJSON{}, "PendingInvitation": invitationJSON{}, "ListSaid": listSaidJSON{}, "Liveness": livenessJSON{},
	"PublicHostingPolicy": hostingapi.PolicyJSON{}, "Package": packageapi.PackageJSON{}, "PackageGrant": packages.Grant{}, "PackageLimits": packages.Limits{},
	"PackageVersion": packageapi.VersionJSON{}, "PackageRun": packageapi.RunJSON{}, "Kill": packageapi.KillJSON{},
	"Member": memberJSON{}, "Message": MessageJSON{}, "NetworkLink": networkLinkJSON{}, "NetworkMap": networkMapJSON{},
	"NetworkPeer": networkPeerJSON{}, "NewPeer": addedPeerJSON{}, "NewWebhook": madeWebhookJSON{},
	"Notice": noticeJSON{}, "Offer": offerJSON{}, "OwnSettings": mineJSON{}, "Owners": ownersJSON{},
	"Part": task.Part{}, "Peer": peerJSON{}, "PeerPolicy": federation.Policy{}, "PeerProof": peerProofJSON{},
	"Proof": proofJSON{}, "Publication": publicationJSON{}, "Push": pushJSON{}, "Queue": queueJSON{},
	"QueueAccount": queueCallJSON{}, "QueueClass": queueClassJSON{}, "QueuePlace": queuePlaceJSON{}, "Reaction": reactionJSON{},
	"Record": recordJSON{}, "RoomSettings": settingsJSON{}, "SaidTwice": saidTwiceJSON{}, "SavedSearch": savedJSON{},
	"Sender": senderJSON{}, "Skill": hub.Skill{}, "Source": sourceJSON{}, "Suggestion": suggestionJSON{},
	"Task": taskJSON{}, "TaskReference": taskRefJSON{}, "TaskStatus": taskStatusJSON{}, "Token": tokenJSON{},
	"Trace": traceJSON{}, "Unsaid": unsaidJSON{}, "VersionSummary": versionJSON{}, "Voice": voiceJSON{},
	"Webhook": webhookJSON{},
	"Goal":    goals.Goal{}, "GoalSummary": goals.Summary{}, "GoalMember": goals.Member{}, "GoalTask": goals.Task{},
	"GoalPart": goals.Part{}, "GoalCandidate": flow.Candidate{}, "GoalTurn": goals.Turn{}, "GoalTrigger": goals.Trigger{},
	"GoalLimits": goals.Limits{}, "GoalCost": goals.Cost{}, "GoalParent": goals.ParentRef{}, "GoalEvent": goals.Event{},
	"GoalMove": goals.Move{}, "GoalAssignment": goals.Assignment{}, "GoalEventCost": goals.EventCost{},
	"GoalLink": goals.Link{},
}

// bodyTypes are the types that handlers decode, by the schema that describes them.
var bodyTypes = map[string]any{
	"PutGrantInput": grantBody{}, "HaltInput": haltBody{}, "SettingsInput": operator.SettingsBody{}, "PasswordInput": operator.PasswordBody{},
	"CeilingInput": spending.CeilingBody{}, "HostingRulesInput": hostingapi.RulesBody{}, "EditMemoryInput": memorypages.EditBody{}, "LibraryNumberInput": librarypages.NumberBody{}, "LibraryShareInput": librarypages.ShareBody{}, "CreateModelInput": spending.NewModelBody{}, "ChangeModelInput": spending.ModelBody{},
	"GoalInput": goals.StartBody{}, "GoalBudget": goals.BudgetBody{}, "SteerGoalInput": goals.SayBody{},
	"AnswerGoalTaskInput": goals.ApproveBody{}, "ReassignGoalTaskInput": goals.ReassignBody{}, "GoalLinkInput": goals.LinkBody{},
	"AddOwnerInput": addOwnerBody{}, "AgentInput": agentBody{}, "AgentStatusInput": statusJSON{},
	"PackageInput": packageapi.PublishBody{}, "PackageGrantInput": packages.Grant{}, "PackageLimitsInput": packages.Limits{},
	"PackageStateInput": packageapi.StateBody{}, "KillInput": packageapi.KillBody{},
	"AttestationInput": attestBody{}, "BranchInput": branchBody{}, "CallLimitsInput": hub.Limits{},
	"ChatPreferencesInput": PrefsJSON{}, "ConversationChangeInput": roomBody{}, "ConversationInput": conversationBody{},
	"EraseMeInput": personal.EraseBody{}, "DomainInput": proveDomainBody{}, "EditInput": editBody{}, "ExportInput": federation.Export{},
	"ImportInput": federation.Import{}, "LinkInput": linkBody{}, "MembersInput": membersBody{},
	"NewPeerInput": addPeerBody{}, "OfferAnswerInput": answerBody{}, "OfferInput": offerBody{},
	"PartInput": task.Part{}, "PeerInput": peerBody{}, "PeerPolicyInput": policyBody{},
	"PeerReleaseInput": releaseBody{}, "ReadMarkInput": readBody{}, "ReadNoticesInput": readNoticesBody{},
	"ReportInput": reportBody{}, "RoleInput": roleBody{}, "RollbackInput": rollbackBody{},
	"SavedSearchInput": saveSearchBody{}, "SayInput": sayBody{}, "ShareInput": disclosureBody{}, "SkillInput": hub.Skill{},
	"TaskInput": taskInputBody{}, "TokenInput": tokenBody{}, "TryInput": tryBody{}, "WebhookInput": webhookBody{},
}

// enumTypes are all values of the text types that have a schema of their own.
var enumTypes = map[string]any{
	"AgentKind":     []hub.Kind{hub.Builtin, hub.A2A, hub.MCP, hub.OpenAI, hub.Prompt, hub.Link, hub.Wasm},
	"PackageState":  []packages.State{packages.Published, packages.Deprecated, packages.Withdrawn, packages.Killed},
	"HostingPolicy": []hosting.Policy{hosting.Own, hosting.List, hosting.Any, hosting.Off},
	"Visibility":    []hub.Visibility{hub.Public, hub.Unlisted, hub.Private},
	"LivenessState": []hub.Live{
		hub.Alive, hub.NeedsAuth, hub.WrongProtocol, hub.Unreachable, hub.Unknown,
	},
	"ErrorKind": []fault.Kind{
		fault.Invalid, fault.Unauthenticated, fault.Forbidden, fault.NotFound, fault.Conflict, fault.RateLimited,
		fault.Unavailable, fault.Internal,
	},
	"Scope":        ident.Scopes(),
	"TaskState":    taskStates,
	"GoalState":    flow.PublicStates(),
	"MessageKind":  []chat.Kind{chat.Text, chat.Event, chat.Edit, chat.Unsaid, chat.React},
	"Speaks":       []chat.Speaks{chat.SpeaksAlone, chat.SpeaksNobody, chat.SpeaksAgent, chat.SpeaksTurns},
	"Past":         []chat.Past{chat.PastAll, chat.PastNothing},
	"Notify":       []chat.Notify{chat.NotifyAll, chat.NotifyMentions, chat.NotifyNothing},
	"Share":        []chat.Share{chat.ShareAll, chat.ShareOwn, chat.ShareNothing},
	"WebhookEvent": append(slices.Clone(notify.Types), notify.Tested),
	"WebhookState": []notify.State{notify.Active, notify.Paused, notify.Failed},
	"LinkKind":     []chat.LinkKind{chat.JoinLink, chat.ReadLink},
}

var taskStates = []task.State{
	task.Submitted, task.Working, task.InputRequired, task.AuthRequired, task.Completed, task.Failed, task.Canceled,
	task.Rejected,
}

// fieldEnums are the values of the other fields and parameters that take one of a list.
func fieldEnums() map[string][]string {
	status := listTexts(hub.StatusDraft, hub.Active, hub.Deprecated, hub.Withdrawn)
	roles := listTexts(chat.RoleOwner, chat.RoleMember, chat.RoleReader)
	verdicts := listTexts(record.Vouch, record.Warn, record.Block)
	follow := listTexts("", federation.FollowWarn, federation.FollowBlock)
	policy := listTexts("", federation.Allow, federation.Pin, federation.Deny)
	export := listTexts(federation.ExportAll, federation.ExportTagged, federation.ExportNone)
	service := listTexts(federation.ServiceOn, federation.ServiceReadOnly, federation.ServiceOff)
	states := listTexts(
		federation.Joining, federation.Pending, federation.Active, federation.Silent, federation.Stale,
		federation.Denied, federation.Quarantined,
	)
	proofs := listTexts(hub.Hosted, hub.Proved, hub.Unproven)
	live := listTexts(hub.Alive, hub.NeedsAuth, hub.WrongProtocol, hub.Unreachable, hub.Unknown)
	wireStates := make([]string, len(taskStates))
	for i, s := range taskStates {
		wireStates[i] = s.A2A()
	}
	classes := make([]string, 0, 3)
	for _, c := range scheduler.Classes() {
		classes = append(classes, c.String())
	}
	return map[string][]string{
		"QueueAccount.class": classes, "QueueClass.class": classes,
		"AgentStatus.state": status, "AgentStatusInput.state": status,
		"Proof.state":        listTexts(hub.Hosted, hub.Proved, hub.Claimed, hub.Unproven),
		"AddressProof.state": proofs, "parameter proof": proofs,
		"parameter live":     append(live, "true", "false"),
		"parameter sort":     listTexts(hub.SortRelevance, hub.SortUsed, hub.SortName, hub.SortNewest, hub.SortUpdated),
		"Call.caller_kind":   listTexts(ident.Guest, ident.Person, ident.Operator, ident.Portal),
		"GetMeAnswer.kind":   listTexts(ident.Guest, ident.Person, ident.Operator),
		"ReportInput.reason": listTexts(hub.ReportReasons...),
		"Notice.kind": listTexts(
			hub.NoticeDown, hub.NoticeUp, hub.NoticeOffer, hub.NoticeTaken, hub.NoticeShared, hub.NoticeUnshared,
			hub.NoticeReport, hub.NoticeHeld, hub.NoticeProof, hub.NoticePeer, hub.NoticeWebhook, hub.NoticeInvited, hub.NoticeAdded, hub.NoticeMention,
			hub.NoticeGuesses, memory.NoticeKind,
		),
		"LinkInput.role": listTexts(chat.RoleMember, chat.RoleReader), "Link.role": roles, "Member.role": roles,
		"GetInvitationAnswer.role": roles, "OwnSettings.role": roles, "RoleInput.role": roles,
		"TaskStatus.state": wireStates, "TryAgentAnswer.state": listTexts(taskStates...),
		"Peer.policy": policy, "PeerInput.policy": policy, "Peer.follow": follow, "PeerInput.follow": follow,
		"Peer.state": states, "NetworkPeer.state": states,
		"ListSaid.verdict": listTexts(record.Warn, record.Block), "AttestationInput.verdict": verdicts,
		"PeerPolicy.mode": listTexts(federation.Modes()...), "PeerPolicyInput.mode": listTexts(federation.Modes()...),
		"PeerPolicy.service": service, "PeerPolicyInput.service": service,
		"Export.what": export, "ExportInput.what": export,
	}
}

func listTexts[T ~string](values ...T) []string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = string(v)
	}
	return texts
}

// fieldLimits are the limits that the services state: the largest number, the longest text or the longest list.
var fieldLimits = map[string]int{
	"RoomSettings.hops": chat.MaxSettings.Hops, "ConversationChangeInput.hops": chat.MaxSettings.Hops,
	"RoomSettings.turns": chat.MaxSettings.Turns, "ConversationChangeInput.turns": chat.MaxSettings.Turns,
	"RoomSettings.budget": chat.MaxSettings.Budget, "ConversationChangeInput.budget": chat.MaxSettings.Budget,
	"Conversation.title": chat.MaxTitleRunes, "ConversationChangeInput.title": chat.MaxTitleRunes,
	"ConversationInput.members": chat.MaxMembers, "MembersInput.members": chat.MaxMembers,
	"Conversation.unread": chat.MaxUnread, "Message.parts": chat.MaxParts, "SayInput.parts": chat.MaxParts,
	"EditInput.parts": chat.MaxParts, "SayInput.client_id": chat.MaxClientID, "TaskInput.client_id": chat.MaxClientID,
	"SayInput.text": chat.MaxTextBytes, "SavedSearch.new": search.FeedEntries,
}

// schema is a JSON Schema of the document as far as these tests read it.
type schema struct {
	Ref                          string `json:"$ref"`
	Type, Format                 string
	Items, AdditionalProperties  *schema
	Properties                   map[string]*schema
	Required, Enum               []string
	MaxLength, MaxItems, Maximum int
}

// description is the OpenAPI document as far as these tests read it.
type description struct {
	Servers    []struct{ URL string }
	Info       struct{ Version, Description string }
	Components struct {
		Schemas         map[string]*schema
		Parameters      map[string]struct{ Schema *schema }
		SecuritySchemes map[string]struct{ Name string }
	}
	names map[reflect.Type]string // of the schemas of answers and enums
	raw   any
}

func readDescription(t *testing.T, portal address.Portal, cookieName string) *description {
	t.Helper()
	doc := newDocument(portal, cookieName)
	if doc.err != nil {
		t.Fatal(doc.err)
	}
	d := &description{names: make(map[reflect.Type]string)}
	for _, v := range []any{d, &d.raw} {
		if err := json.Unmarshal([]byte(doc.json), v); err != nil {
			t.Fatal(err)
		}
	}
	for name, v := range answerTypes {
		d.names[reflect.TypeOf(v)] = name
	}
	for name, values := range enumTypes {
		d.names[reflect.TypeOf(values).Elem()] = name
	}
	return d
}

const schemaPrefix = "#/components/schemas/"

// follow returns the schema that s refers to, or s.
func (d *description) follow(s *schema) *schema {
	if name, ok := strings.CutPrefix(s.Ref, schemaPrefix); ok {
		return d.Components.Schemas[name]
	}
	return s
}

// field returns the schema at a path like Agent.skills; it enters the items of lists.
func (d *description) field(path string) *schema {
	name, rest, _ := strings.Cut(path, ".")
	s := d.Components.Schemas[name]
	for rest != "" && s != nil {
		name, rest, _ = strings.Cut(rest, ".")
		s = s.Properties[name]
	}
	return s
}

// typeName is the name of the schema of a type. A struct in a body has one of its own, where fields may be left out.
func (d *description) typeName(typ reflect.Type, body bool) string {
	if body && typ.Kind() == reflect.Struct {
		for name, v := range bodyTypes {
			if reflect.TypeOf(v) == typ {
				return name
			}
		}
	}
	return d.names[typ]
}

// checkType compares a schema with a Go type as package encoding/json treats it.
func (d *description) checkType(t *testing.T, at string, s *schema, typ reflect.Type, body bool) {
	t.Helper()
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if typ == reflect.TypeFor[json.RawMessage]() {
		return // any JSON
	}
	if name := d.typeName(typ, body); name != "" {
		if s.Ref != schemaPrefix+name {
			t.Errorf("%s refers to %q, not to %s, which describes %v", at, s.Ref, name, typ)
		}
		return
	}
	s = d.follow(s)
	want := ""
	switch typ.Kind() {
	case reflect.String:
		want = "string"
	case reflect.Bool:
		want = "boolean"
	case reflect.Int, reflect.Int64:
		want = "integer"
	case reflect.Float64:
		want = "number"
	case reflect.Map, reflect.Struct:
		want = "object"
		if typ.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
			want = "string"
		}
	case reflect.Slice:
		want = "array"
		if typ.Elem().Kind() == reflect.Uint8 {
			want = "string"
		}
	}
	if s.Type != want {
		t.Errorf("%s is described as %q, and %v is encoded as %q", at, s.Type, typ, want)
		return
	}
	switch {
	case want == "array":
		d.checkType(t, at+"[]", s.Items, typ.Elem(), body)
	case typ.Kind() == reflect.Map:
		d.checkType(t, at+"{}", s.AdditionalProperties, typ.Elem(), body)
	case want == "object":
		d.checkFields(t, at, s, typ, body)
	}
}

// checkFields compares the properties of an object with the fields of a struct type, in both directions.
func (d *description) checkFields(t *testing.T, at string, s *schema, typ reflect.Type, body bool) {
	t.Helper()
	var names, always []string
	for _, f := range reflect.VisibleFields(typ) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			t.Errorf("%v.%s has no name in JSON", typ, f.Name)
		}
		names = append(names, name)
		if !strings.Contains(options, "omitempty") {
			always = append(always, name)
		}
		if p := s.Properties[name]; p != nil {
			d.checkType(t, at+"."+name, p, f.Type, body)
		}
	}
	sorted := cmpopts.SortSlices(strings.Compare)
	if diff := cmp.Diff(names, slices.Collect(maps.Keys(s.Properties)), sorted, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s: the fields of %v (-) and those in the document (+) differ:\n%s", at, typ, diff)
	}
	if body {
		for _, name := range s.Required {
			if s.Properties[name] == nil {
				t.Errorf("%s requires %s, which is not one of its fields", at, name)
			}
		}
		return
	}
	if diff := cmp.Diff(always, s.Required, sorted, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s: the fields that %v always has (-) and those required (+) differ:\n%s", at, typ, diff)
	}
}

func TestOpenAPI_SchemasMatchTheGoTypes(t *testing.T) {
	t.Parallel()
	d := readDescription(t, address.Portal{URL: "http://portal.test"}, "")
	for name, s := range d.Components.Schemas {
		answer, answered := answerTypes[name]
		body, taken := bodyTypes[name]
		values, listed := enumTypes[name]
		switch {
		case answered:
			d.checkFields(t, name, s, reflect.TypeOf(answer), false)
		case taken:
			d.checkFields(t, name, s, reflect.TypeOf(body), true)
		case listed:
			var want []string
			for _, v := range reflect.ValueOf(values).Seq2() {
				want = append(want, v.String())
			}
			if !slices.Equal(s.Enum, want) {
				t.Errorf("%s has the values %q, and Go has %q", name, s.Enum, want)
			}
		case strings.HasSuffix(name, "Answer") || name == "Id" || name == "Time" || name == "Cursor":
			// An answer that its handler builds as a map; the matrix of package app checks these.
		default:
			t.Errorf("%s describes no known type", name)
		}
	}
	for _, types := range []map[string]any{answerTypes, bodyTypes, enumTypes} {
		for name := range types {
			if d.Components.Schemas[name] == nil {
				t.Errorf("there is no schema %s", name)
			}
		}
	}
}

func TestOpenAPI_HasTheValuesAndLimitsOfTheServices(t *testing.T) {
	t.Parallel()
	d := readDescription(t, address.Portal{URL: "http://portal.test"}, "")
	for path, want := range fieldEnums() {
		s := d.field(path)
		if name, ok := strings.CutPrefix(path, "parameter "); ok {
			if s = d.Components.Parameters[name].Schema; s != nil && s.Items != nil {
				s = s.Items
			}
		}
		if s == nil || !slices.Equal(s.Enum, want) {
			t.Errorf("%s is %+v, want the values %q", path, s, want)
		}
	}
	for path, want := range fieldLimits {
		if s := d.field(path); s == nil || s.MaxLength+s.MaxItems+s.Maximum != want {
			t.Errorf("%s is %+v, want the limit %d", path, s, want)
		}
	}
}

func TestOpenAPI_RefersOnlyToPartsThatExist(t *testing.T) {
	t.Parallel()
	d := readDescription(t, address.Portal{URL: "http://portal.test"}, "")
	used := make(map[string]bool)
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok && !used[ref] {
				used[ref] = true
				at := d.raw
				for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
					object, _ := at.(map[string]any)
					at = object[part]
				}
				if at == nil {
					t.Errorf("%s does not exist", ref)
				}
			}
			for name, x := range v {
				if strings.ContainsAny(name, " \t") { // the rest of a text with a comma, which has no quotes
					t.Errorf("the field %q is a part of a text: put the text into quotes", name)
				}
				walk(x)
			}
		case []any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(d.raw)
	for kind, parts := range d.raw.(map[string]any)["components"].(map[string]any) {
		for name := range parts.(map[string]any) {
			if ref := "#/components/" + kind + "/" + name; kind != "securitySchemes" && !used[ref] {
				t.Errorf("%s is not used", ref)
			}
		}
	}
}

func TestOpenAPI_HasTheKindsOfTheTable(t *testing.T) {
	t.Parallel()
	var want []string
	for _, s := range agentkind.All() {
		want = append(want, string(s.Kind))
	}
	got := slices.Sorted(slices.Values(readDescription(t, address.Portal{URL: "http://portal.test"}, "").Components.Schemas["AgentKind"].Enum))
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("the document has the kinds %q, the table %q", got, want)
	}
}

func TestOpenAPI_HasTheValuesOfThePortal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		portal               address.Portal
		cookie               string
		version, wantsCookie string
	}{
		{address.Portal{URL: "http://portal.test"}, "", "0", "session"},
		{address.Portal{URL: "https://portal.test", Version: `1.2 "beta"`}, "__Host-session", `1.2 "beta"`, "__Host-session"},
	} {
		d := readDescription(t, c.portal, c.cookie)
		if len(d.Servers) != 1 || d.Servers[0].URL != c.portal.URL+"/api/v1" {
			t.Errorf("the servers are %v", d.Servers)
		}
		if d.Info.Version != c.version || !strings.Contains(d.Info.Description, c.portal.URL+"/docs/api") {
			t.Errorf("the info is %+v", d.Info)
		}
		if got := d.Components.SecuritySchemes["session"].Name; got != c.wantsCookie {
			t.Errorf("the session is in the cookie %q", got)
		}
		doc := newDocument(c.portal, c.cookie)
		if strings.Contains(doc.json, "${") || strings.Contains(doc.json, "x-errors") {
			t.Error("a placeholder or x-errors is left")
		}
	}
}
