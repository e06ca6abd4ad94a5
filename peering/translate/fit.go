package translate

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"sort"

	"agentsite/internal/hub"
	"agentsite/internal/record"
)

// fit shortens the fields of an agent to the limits of a record.
type fit struct {
	agent hub.Agent
	cut   []string // notes on the shortened fields, for the owner
}

func (f *fit) cutLine(field, s string, max int) string {
	return f.cutTo(field, record.CleanLine(s), max)
}

func (f *fit) cutText(field, s string, max int) string {
	return f.cutTo(field, record.CleanText(s), max)
}

func (f *fit) cutTo(field, s string, max int) string {
	if len(s) > max {
		f.addNote("the %s is cut to %d bytes", field, max)
	}
	return shorten(s, max)
}

func (f *fit) addNote(format string, args ...any) {
	f.cut = append(f.cut, fmt.Sprintf(format, args...))
}

// share is the space for each part of an agent's skills.
type share struct {
	skills   int // number of skills
	text     int // bytes of each description
	name     int // bytes of each name
	tags     int // tags of each skill
	examples int // examples of each skill
}

var whole = share{record.MaxSkills, record.MaxDescription, record.MaxTitle, record.MaxCaps, record.MaxExamples}

// Limits for an agent with more content than a record can hold.
const (
	fewMedia  = 8
	fewCaps   = 16
	fewText   = 512
	fewNote   = 300
	fewName   = 100
	fewTags   = 3
	leastText = 80 // a shorter description is left out, because it would not help
)

// fitSkills puts the skills into the record: complete if they fit, otherwise without the least important
// parts. The space for descriptions is divided evenly.
func (f *fit) fitSkills(r *record.Agent) {
	s := whole
	if f.putSkills(r, s) {
		return
	}
	if f.anySkill(func(s hub.Skill) bool { return len(s.Examples) > 0 }) {
		f.addNote("examples of its skills are left out")
	}
	for s.examples = 1; s.examples >= 0; s.examples-- {
		if f.putSkills(r, s) {
			return
		}
	}
	s.examples = 0
	if f.largestPart(r, &s, &s.text, record.MaxDescription) >= leastText {
		f.addNote("descriptions of its skills are cut to %d bytes", s.text)
		return
	}
	if f.anySkill(func(s hub.Skill) bool { return s.Description != "" }) {
		f.addNote("descriptions of its skills are left out")
	}
	s.text, s.tags, s.name = 0, fewTags, fewName
	f.cutOthers(r)
	if !f.putSkills(r, s) {
		f.largestPart(r, &s, &s.skills, record.MaxSkills)
		f.addNote("only %d of its %d skills are named", s.skills, len(f.agent.Skills))
		return
	}
	f.addNote("names and tags of its skills are cut")
}

// anySkill reports whether holds is true for one of the skills.
func (f *fit) anySkill(holds func(hub.Skill) bool) bool {
	return slices.ContainsFunc(f.agent.Skills, holds)
}

// cutOthers shortens all fields except the skills to their limits.
func (f *fit) cutOthers(r *record.Agent) {
	for _, list := range []*[]string{&r.Inputs, &r.Outputs} {
		if len(*list) > fewMedia {
			f.addNote("media types are left out")
			*list = (*list)[:fewMedia]
		}
	}
	r.Skills = nil
	if payloadSize(r) <= record.MaxAgent {
		return
	}
	r.Caps = r.Caps[:min(len(r.Caps), fewCaps)]
	r.Description, r.StatusNote = f.cutTo("description", r.Description, fewText),
		f.cutTo("note of its status", r.StatusNote, fewNote)
}

// largestPart returns the largest value of *part, from 0 to max, with which the record fits; part points to
// a field of s. It leaves that value in *part and the record with it.
func (f *fit) largestPart(r *record.Agent, s *share, part *int, max int) int {
	*part = sort.Search(max, func(n int) bool {
		*part = n + 1
		return !f.putSkills(r, *s)
	})
	f.putSkills(r, *s)
	return *part
}

// putSkills puts the skills, shortened to the limits in s, into the record, and reports whether the record
// fits.
func (f *fit) putSkills(r *record.Agent, s share) bool {
	r.Skills = nil
	for _, skill := range f.agent.Skills[:min(len(f.agent.Skills), s.skills)] {
		out := record.Skill{ID: skillID(skill), Name: shorten(record.CleanLine(skill.Name), s.name),
			Description: shorten(record.CleanText(skill.Description), s.text)}
		if out.Name == "" {
			out.Name = out.ID
		}
		out.Tags, out.Examples = shortLines(skill.Tags, s.tags, record.MaxSkillID),
			shortLines(skill.Examples, s.examples, record.MaxExample)
		r.Skills = append(r.Skills, out)
	}
	return payloadSize(r) <= record.MaxAgent
}

// skillID returns a skill's id in a record. An id that is too long is cut and ends in a hash of all of it,
// so that different ids stay different.
func skillID(s hub.Skill) string {
	id := record.CleanLine(s.ID)
	if id == "" {
		id = "skill"
	}
	if len(id) <= record.MaxSkillID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	mark := "-" + base64.RawURLEncoding.EncodeToString(sum[:9])
	return id[:cutPoint(id, record.MaxSkillID-len(mark))] + mark
}

// shortLines returns the first n entries of list that are single lines of at most max bytes; others are
// skipped.
func shortLines(list []string, n, max int) []string {
	var out []string
	for _, s := range list {
		if s = record.CleanLine(s); s != "" && len(s) <= max && len(out) < n && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// payloadSize returns the size of the record's payload with the longest possible header, in bytes. Its
// canonical form has the same size as this JSON, because only the order of members differs.
func payloadSize(r *record.Agent) int {
	full := *r
	const longest = 1<<53 - 1
	full.Header = record.Header{Portal: record.PortalOf(record.Public{}), Epoch: longest, Seq: longest, Issued: longest,
		Expires: longest}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(&full); err != nil { // unreachable: all fields can be encoded
		return record.MaxAgent + 1
	}
	return b.Len() - 1
}
