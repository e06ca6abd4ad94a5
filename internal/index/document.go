package index

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
	"unique"

	"agentsite/internal/hub"
)

// document is the stored form of an agent: the fields that nearly every agent has. Name, portal and id
// are not here, because the word index stores the key that holds them (see keyOf).
type document struct {
	title, description, endpoint string
	skills                       []hub.Skill
	shared                       unique.Handle[sharedFields]
	version                      int
	record                       string
	checked                      int64 // time of the last liveness check, as timeNumber
	latency                      time.Duration
	// more holds all other fields of the agent, nil if they are all empty. Most agents leave most fields
	// empty, and a hub.Agent takes three times the memory of a document.
	more *hub.Agent
}

// sharedFields are the fields that most agents of one owner have in common. Equal values are stored
// once, by unique.Handle.
type sharedFields struct {
	kind               hub.Kind
	ownerID, ownerName string
	verified           bool
	status, proof      string
	live               hub.Live
}

// newDocument returns the stored form of an agent. The document shares no memory with the agent, because
// the caller may change the agent, and a short text may be a slice of a long one that would stay in
// memory.
func newDocument(agent *hub.Agent) document {
	a := *agent
	d := document{
		shared: unique.Make(sharedFields{
			kind: a.Kind, ownerID: a.OwnerID, ownerName: a.OwnerName, verified: a.Verified,
			status: a.Status.State, proof: a.Proof.State, live: a.Liveness.State,
		}),
		version: a.Version, checked: timeNumber(a.Liveness.CheckedAt), latency: a.Liveness.Latency,
	}
	a.Kind, a.OwnerID, a.OwnerName, a.Verified = "", "", "", false
	a.Status.State, a.Proof.State, a.Liveness.State = "", "", ""
	a.ID, a.Name, a.Portal, a.Version = "", "", "", 0
	a.Liveness.CheckedAt, a.Liveness.Latency = time.Time{}, 0
	a.CreatedAt, a.UpdatedAt = time.Time{}, time.Time{}
	if a.Visibility == hub.Public { // the default here, because nearly all listed agents are public
		a.Visibility = ""
	}
	if len(a.CoOwnerIDs) == 0 { // the store returns an empty list, which would make more non-nil
		a.CoOwnerIDs = nil
	}
	detachTexts(&a)
	d.title, d.description, d.endpoint, d.skills, d.record = a.Title, a.Description, a.Endpoint, a.Skills, a.Record
	a.Title, a.Description, a.Endpoint, a.Skills, a.Record = "", "", "", nil, ""
	if !reflect.ValueOf(&a).Elem().IsZero() {
		d.more = &a
	}
	return d
}

// readAgent fills a, which must be zero, from the document and its key. CreatedAt and UpdatedAt are not
// set, see Index.readAgent. The lists in a are shared with the document and must not be changed.
func (d *document) readAgent(a *hub.Agent, key string) {
	if d.more != nil {
		*a = *d.more
	}
	if a.Visibility == "" {
		a.Visibility = hub.Public
	}
	a.Name, a.Portal, a.ID = splitKey(key)
	a.Title, a.Description, a.Endpoint, a.Skills = d.title, d.description, d.endpoint, d.skills
	s := d.shared.Value()
	a.Kind, a.OwnerID, a.OwnerName, a.Verified = s.kind, s.ownerID, s.ownerName, s.verified
	a.Status.State, a.Proof.State, a.Liveness.State = s.status, s.proof, s.live
	a.Version, a.Record = d.version, d.record
	a.Liveness.CheckedAt, a.Liveness.Latency = timeOf(d.checked), d.latency
}

// size returns about how many bytes the texts of the agent take in an answer.
func (d *document) size() int {
	n := len(d.title) + len(d.description) + len(d.endpoint)
	for i := range d.skills {
		s := &d.skills[i]
		n += len(s.ID) + len(s.Name) + len(s.Description)
		for _, list := range [][]string{s.Tags, s.Examples} {
			for _, text := range list {
				n += len(text)
			}
		}
	}
	return n
}

// isUp reports whether the agent answered its last check and is not deprecated. Results list other
// agents last.
func (d *document) isUp() bool {
	s := d.shared.Value()
	return s.live == hub.Alive && s.status != hub.Deprecated
}

// detachTexts replaces all slices and strings of a by copies, so that a shares no memory with the agent
// it was copied from. All strings are copied into one allocation and all string lists into another,
// which saves memory.
func detachTexts(a *hub.Agent) {
	a.Config = slices.Clone(a.Config)
	a.Skills = slices.Clone(a.Skills)
	size, count := 0, 0
	eachList(a, func(list *[]string) { count += len(*list) })
	lists := make([]string, 0, count)
	eachList(a, func(list *[]string) {
		if *list != nil {
			from := len(lists)
			lists = append(lists, *list...)
			*list = lists[from:len(lists):len(lists)]
		}
	})
	eachText(a, func(text *string) { size += len(*text) })
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
	eachText(a, copyText)
	for i := range lists {
		copyText(&lists[i])
	}
}

// eachList calls yield with a pointer to each list of strings in an agent.
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

// eachText calls yield with a pointer to each string of an agent, except those in lists, in the key
// (keyOf) and in sharedFields.
func eachText(a *hub.Agent, yield func(text *string)) {
	texts := []*string{
		&a.Title, &a.Description, &a.Endpoint, &a.Record, (*string)(&a.Visibility), &a.PortalID, &a.NetworkID,
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

// keyOf returns the sort key of an agent: agents are ordered by name, then portal, then id.
func keyOf(a *hub.Agent) string { return a.Name + "\x00" + a.Portal + "\x00" + a.ID }

// splitKey is the inverse of keyOf.
func splitKey(key string) (name, portal, id string) {
	name, rest, _ := strings.Cut(key, "\x00")
	portal, id, _ = strings.Cut(rest, "\x00")
	return name, portal, id
}

// idOf returns the id in a key. It relies on isListable: no id contains a zero byte.
func idOf(key string) string { return key[strings.LastIndexByte(key, 0)+1:] }

// portalOf returns the host of the portal in a key, "" for an agent of this portal.
func portalOf(key string) string {
	_, portal, _ := splitKey(key)
	return portal
}

// never represents the zero time and sorts before all other times.
const never = math.MinInt64

// timeNumber returns t as nanoseconds since 1970, so that times can be compared as integers. A time
// outside of the years 1678 to 2261 becomes the nearest representable one, the zero time never.
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

// timeOf is the inverse of timeNumber, in UTC.
func timeOf(n int64) time.Time {
	if n == never {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}
