package index

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"agentsite/internal/hub"
)

// document is an indexed agent: the fields that nearly every agent has. Name,
// portal and id are in the key that the words of the index hold.
type document struct {
	title, description, endpoint string
	kind                         hub.Kind
	skills                       []hub.Skill
	ownerID, ownerName           string
	version                      int
	record                       string
	verified                     bool
	status, proof                string
	live                         hub.Live
	checked                      int64 // see nanoseconds
	latency                      time.Duration
	// more is the agent without the fields above, nil if nothing is left. Most
	// agents leave most fields empty, and hub.Agent is three times as large.
	more *hub.Agent
}

// newDocument returns the document of an agent. It shares no memory with it:
// the caller may change the agent, and a text may be part of a long one.
func newDocument(agent *hub.Agent) document {
	a := cloneAgent(agent)
	d := document{
		title: a.Title, description: a.Description, endpoint: a.Endpoint, kind: a.Kind, skills: a.Skills,
		ownerID: a.OwnerID, ownerName: a.OwnerName, version: a.Version, record: a.Record, verified: a.Verified,
		status: a.Status.State, proof: a.Proof.State, live: a.Liveness.State,
		checked: timeNumber(a.Liveness.CheckedAt), latency: a.Liveness.Latency,
	}
	a.ID, a.Name, a.Portal, a.Title, a.Description, a.Endpoint, a.Kind, a.Skills = "", "", "", "", "", "", "", nil
	a.OwnerID, a.OwnerName, a.Version, a.Record, a.Verified = "", "", 0, "", false
	a.Status.State, a.Proof.State, a.Liveness.State = "", "", ""
	a.Liveness.CheckedAt, a.Liveness.Latency = time.Time{}, 0
	a.CreatedAt, a.UpdatedAt = time.Time{}, time.Time{}
	if a.Visibility == hub.Public { // as nearly every listed agent is
		a.Visibility = ""
	}
	if len(a.CoOwnerIDs) == 0 { // the store returns an empty list
		a.CoOwnerIDs = nil
	}
	if !reflect.ValueOf(&a).Elem().IsZero() {
		d.more = &a
	}
	return d
}

// readAgent sets an empty agent to that of the document but for its times. Its lists
// are those of the document and must not be changed.
func (d *document) readAgent(a *hub.Agent, key string) {
	if d.more != nil {
		*a = *d.more
	}
	if a.Visibility == "" {
		a.Visibility = hub.Public
	}
	a.Name, a.Portal, a.ID = splitKey(key)
	a.Title, a.Description, a.Endpoint, a.Kind, a.Skills = d.title, d.description, d.endpoint, d.kind, d.skills
	a.OwnerID, a.OwnerName, a.Version, a.Record, a.Verified = d.ownerID, d.ownerName, d.version, d.record, d.verified
	a.Status.State, a.Proof.State, a.Liveness.State = d.status, d.proof, d.live
	a.Liveness.CheckedAt, a.Liveness.Latency = timeOf(d.checked), d.latency
}

// isUp reports whether an agent is worth a visit now. Results show others last.
func (d *document) isUp() bool { return d.live == hub.Alive && d.status != hub.Deprecated }

// cloneAgent returns a copy of an agent that shares no memory with it. All
// texts are in one piece of memory, and all lists of texts in another.
func cloneAgent(agent *hub.Agent) hub.Agent {
	a := *agent
	a.Config = slices.Clone(a.Config)
	a.Kind, a.Visibility = internText(a.Kind), internText(a.Visibility)
	a.Status.State, a.Proof.State = internText(a.Status.State), internText(a.Proof.State)
	a.Liveness.State = internText(a.Liveness.State)
	a.Skills = slices.Clone(a.Skills)
	size, count := 0, 0
	eachList(&a, func(list *[]string) { count += len(*list) })
	lists := make([]string, 0, count)
	eachList(&a, func(list *[]string) {
		if *list != nil {
			from := len(lists)
			lists = append(lists, *list...)
			*list = lists[from:len(lists):len(lists)]
		}
	})
	eachText(&a, func(text *string) { size += len(*text) })
	for _, text := range lists {
		size += len(text)
	}
	var all strings.Builder
	all.Grow(size)
	copyText := func(text *string) {
		from := all.Len()
		all.WriteString(*text)
		*text = all.String()[from:]
	}
	eachText(&a, copyText)
	for i := range lists {
		copyText(&lists[i])
	}
	return a
}

// constants are the values that most agents have in common. They need no copy.
var constants = func() map[string]string {
	list := []string{
		string(hub.Builtin), string(hub.A2A), string(hub.MCP), string(hub.OpenAI), string(hub.Prompt), string(hub.Link),
		string(hub.Public), hub.Active, hub.Deprecated,
		string(hub.Alive), string(hub.NeedsAuth), string(hub.WrongProtocol), string(hub.Unreachable), string(hub.Unknown), hub.Hosted, hub.Proved, hub.Unproven, hub.Claimed,
	}
	m := make(map[string]string, len(list))
	for _, text := range list {
		m[text] = text
	}
	return m
}()

// internText returns the constant of that value, or a copy of the text.
func internText[T ~string](text T) T {
	if c, ok := constants[string(text)]; ok {
		return T(c)
	}
	return T(strings.Clone(string(text)))
}

// eachList calls yield with the lists of texts of an agent.
func eachList(a *hub.Agent, yield func(list *[]string)) {
	lists := []*[]string{
		&a.Also, &a.CoOwnerIDs, &a.InputModes, &a.OutputModes, &a.Languages, &a.Limits.Listed, &a.EmbedOrigins,
	}
	for _, list := range lists {
		yield(list)
	}
	for i := range a.Skills {
		yield(&a.Skills[i].Tags)
		yield(&a.Skills[i].Examples)
	}
}

// eachText calls yield with the texts of an agent that are no constants, but
// for those in lists and in the key.
func eachText(a *hub.Agent, yield func(text *string)) {
	texts := []*string{
		&a.Title, &a.Description, &a.Endpoint, &a.OwnerID, &a.OwnerName, &a.Record, &a.PortalID, &a.NetworkID,
		&a.Icon, &a.Publisher, &a.Limits.Callers, &a.Proof.Method, &a.Proof.Origin, &a.Proof.Publisher,
		&a.Status.Message, &a.Liveness.Reason, &a.Note, &a.Author,
	}
	for _, text := range texts {
		yield(text)
	}
	for i := range a.Skills {
		yield(&a.Skills[i].ID)
		yield(&a.Skills[i].Name)
		yield(&a.Skills[i].Description)
	}
}

// keyOf returns the key of an agent, which orders agents by name and those of
// one name by portal.
func keyOf(a *hub.Agent) string { return a.Name + "\x00" + a.Portal + "\x00" + a.ID }

// splitKey returns the parts of a key.
func splitKey(key string) (name, portal, id string) {
	name, rest, _ := strings.Cut(key, "\x00")
	portal, id, _ = strings.Cut(rest, "\x00")
	return name, portal, id
}

// idOf returns the id of a key. No id has a zero byte.
func idOf(key string) string { return key[strings.LastIndexByte(key, 0)+1:] }

// portalOf returns the portal of a key, "" for this one.
func portalOf(key string) string {
	_, portal, _ := splitKey(key)
	return portal
}

// never stands for the zero time, before all others.
const never = math.MinInt64

// timeNumber is a time as a number in the same order. Times that do not fit,
// outside of the years 1678 to 2261, become the nearest one that does.
func timeNumber(t time.Time) int64 {
	switch {
	case t.IsZero():
		return never
	case t.Year() < 1678:
		return never + 1
	case t.Year() > 2261:
		return math.MaxInt64
	}
	return t.UnixNano()
}

// timeOf is the reverse of nanoseconds.
func timeOf(n int64) time.Time {
	if n == never {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}
