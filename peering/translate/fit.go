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
	"agentsite/internal/plain"
	"agentsite/internal/record"
)

// fit cuts what an agent says to what its record holds.
type fit struct {
	agent hub.Agent
	cut   []string // what was, in words
}

func (f *fit) line(what, s string, max int) string { return f.short(what, plain.Line(s), max) }

func (f *fit) text(what, s string, max int) string { return f.short(what, plain.Text(s), max) }

func (f *fit) short(what, s string, max int) string {
	if len(s) > max {
		f.note("the %s is cut to %d bytes", what, max)
	}
	return shorten(s, max)
}

func (f *fit) note(format string, args ...any) { f.cut = append(f.cut, fmt.Sprintf(format, args...)) }

// share is how much a record says of an agent's skills.
type share struct {
	skills   int // how many
	text     int // bytes of each description
	name     int // bytes of each name
	tags     int // of each
	examples int // of each
}

var whole = share{record.MaxSkills, record.MaxDescription, record.MaxTitle, record.MaxCaps, record.MaxExamples}

// Bounds of what is left of an agent that says very much.
const (
	fewMedia  = 8
	fewCaps   = 16
	fewText   = 512
	fewNote   = 300
	fewName   = 100
	fewTags   = 3
	leastText = 80 // a shorter description of a skill says nothing
)

// shrink puts the skills into the record: all that is said of them when that
// fits, else what people miss least is left out first. What is left of
// descriptions is shared evenly.
func (f *fit) shrink(r *record.Agent) {
	s := whole
	if f.put(r, s) {
		return
	}
	if f.says(func(s hub.Skill) bool { return len(s.Examples) > 0 }) {
		f.note("examples of its skills are left out")
	}
	for s.examples = 1; s.examples >= 0; s.examples-- {
		if f.put(r, s) {
			return
		}
	}
	s.examples = 0
	if f.most(r, &s, &s.text, record.MaxDescription) >= leastText {
		f.note("descriptions of its skills are cut to %d bytes", s.text)
		return
	}
	if f.says(func(s hub.Skill) bool { return s.Description != "" }) {
		f.note("descriptions of its skills are left out")
	}
	s.text, s.tags, s.name = 0, fewTags, fewName
	f.few(r)
	if !f.put(r, s) {
		f.most(r, &s, &s.skills, record.MaxSkills)
		f.note("only %d of its %d skills are named", s.skills, len(f.agent.Skills))
		return
	}
	f.note("names and tags of its skills are cut")
}

// says reports whether something holds for one of the skills.
func (f *fit) says(what func(hub.Skill) bool) bool { return slices.ContainsFunc(f.agent.Skills, what) }

// few cuts all but the skills.
func (f *fit) few(r *record.Agent) {
	for _, list := range []*[]string{&r.Inputs, &r.Outputs} {
		if len(*list) > fewMedia {
			f.note("media types are left out")
			*list = (*list)[:fewMedia]
		}
	}
	r.Skills = nil
	if size(r) <= record.MaxAgent {
		return
	}
	r.Caps = r.Caps[:min(len(r.Caps), fewCaps)]
	r.Description, r.StatusNote = f.short("description", r.Description, fewText), f.short("note of its status", r.StatusNote, fewNote)
}

// most returns the largest number, at most max, with which the record fits
// as a part of s; 0 when none does. It leaves that in s and in the record.
func (f *fit) most(r *record.Agent, s *share, part *int, max int) int {
	*part = sort.Search(max, func(n int) bool {
		*part = n + 1
		return !f.put(r, *s)
	})
	f.put(r, *s)
	return *part
}

// put puts the skills into the record as far as s says, and reports whether
// the record fits.
func (f *fit) put(r *record.Agent, s share) bool {
	r.Skills = nil
	for _, skill := range f.agent.Skills[:min(len(f.agent.Skills), s.skills)] {
		out := record.Skill{ID: skillID(skill), Name: shorten(plain.Line(skill.Name), s.name), Description: shorten(plain.Text(skill.Description), s.text)}
		if out.Name == "" {
			out.Name = out.ID
		}
		out.Tags, out.Examples = lines(skill.Tags, s.tags, record.MaxSkillID), lines(skill.Examples, s.examples, record.MaxExample)
		r.Skills = append(r.Skills, out)
	}
	return size(r) <= record.MaxAgent
}

// skillID is a skill's id in a record. One that is too long ends in a hash of
// the whole, so that two stay two.
func skillID(s hub.Skill) string {
	id := plain.Line(s.ID)
	if id == "" {
		id = "skill"
	}
	if len(id) <= record.MaxSkillID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	mark := "-" + base64.RawURLEncoding.EncodeToString(sum[:9])
	return id[:apart(id, record.MaxSkillID-len(mark))] + mark
}

// lines are the first of list that are lines of at most max bytes, at most n.
func lines(list []string, n, max int) []string {
	var out []string
	for _, s := range list {
		if s = plain.Line(s); s != "" && len(s) <= max && len(out) < n && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// size is how long the payload is with the longest header there is, in bytes:
// the canonical form differs from this in the order of members only.
func size(r *record.Agent) int {
	full := *r
	const longest = 1<<53 - 1
	full.Header = record.Header{Portal: record.PortalOf(record.Public{}), Epoch: longest, Seq: longest, Issued: longest, Expires: longest}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(&full); err != nil { // nothing in it can fail
		return record.MaxAgent + 1
	}
	return b.Len() - 1
}
