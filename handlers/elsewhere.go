package handlers

import (
	"fmt"
	"strings"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
)

// sourceJSON says which portal lists an agent and what shows it.
type sourceJSON struct {
	Portal   string `json:"portal"`
	URL      string `json:"url"`
	Verified bool   `json:"verified"`
	// HeadAge is for how many seconds the portal's word for its agents has
	// stood; 0 for this portal's own.
	HeadAge int64 `json:"head_age"`
	// ID is the portal's id in the network, Record the hash of the signed
	// record, Also the hosts of other portals that list the same agent.
	ID     string   `json:"id,omitempty"`
	Record string   `json:"record,omitempty"`
	Also   []string `json:"also,omitempty"`
	// Sought is when somebody here looked for an agent of the portal, and the DHT
	// told where it is.
	Sought string `json:"sought_at,omitempty"`
}

func (d *Door) source(a *hub.Agent) sourceJSON {
	if !a.Elsewhere() {
		return sourceJSON{Portal: d.portal.Host, URL: d.portal.URL, Verified: true}
	}
	s := d.hub.Source(*a)
	return sourceJSON{s.Portal, s.URL, s.Verified, int64(s.HeadAge(clock.Now()) / time.Second), s.ID, s.Record, s.Also, stamp(s.Sought)}
}

func (s *sourceJSON) append(b []byte) []byte {
	b = appendField(b, `{"portal":`, s.Portal)
	b = appendField(b, `,"url":`, s.URL)
	b = appendFlag(b, `,"verified":`, s.Verified)
	b = appendNumber(b, `,"head_age":`, s.HeadAge)
	b = appendSome(b, `,"id":`, s.ID)
	b = appendSome(b, `,"record":`, s.Record)
	if len(s.Also) > 0 {
		b = appendTexts(append(b, `,"also":`...), s.Also)
	}
	b = appendSome(b, `,"sought_at":`, s.Sought)
	return append(b, '}')
}

// appendCoverage appends how much of the network an answer is made of.
func appendCoverage(b []byte, c *federation.Coverage) []byte {
	b = appendNumber(b, `{"known":`, int64(c.Known))
	b = appendNumber(b, `,"asked":`, int64(c.Asked))
	b = appendNumber(b, `,"answered":`, int64(c.Answered))
	b = appendTexts(append(b, `,"silent":`...), orEmpty(c.Silent))
	if c.Named != 0 {
		b = appendNumber(b, `,"named":`, int64(c.Named))
	}
	b = appendNumber(b, `,"oldest_head_age":`, c.OldestHead)
	if c.Folded != 0 {
		b = appendNumber(b, `,"folded":`, int64(c.Folded))
	}
	b = appendField(b, `,"tier":`, c.Tier)
	if c.Limited {
		b = append(b, `,"limited":true`...)
	}
	if c.Indexes != 0 {
		b = appendNumber(b, `,"indexes":`, int64(c.Indexes))
	}
	return append(b, '}')
}

// namedSilent is how many silent portals a page names.
const namedSilent = 3

// coverageText is a Coverage for people; "" for a portal that is alone.
func coverageText(c federation.Coverage) string {
	if c.Known <= 1 {
		return ""
	}
	out := []string{fmt.Sprintf("%s of %s", whole(int64(c.Answered)), countOf(c.Known, "portal", "portals"))}
	if c.OldestHead > 0 {
		out[0] += ", oldest statement " + ageWords(time.Duration(c.OldestHead)*time.Second) + " old"
	}
	if c.Named > 0 {
		out = append(out, whole(int64(c.Named))+" of them named by the DHT")
	}
	if n := len(c.Silent); n > 0 {
		names := strings.Join(c.Silent[:min(n, namedSilent)], ", ")
		if n > namedSilent {
			names += " and " + whole(int64(n-namedSilent)) + " more"
		}
		out = append(out, "silent: "+names)
	}
	if c.Limited {
		out = append(out, "not all of them were asked")
	}
	if c.Indexes > 0 {
		out = append(out, countOf(c.Indexes, "index portal", "index portals")+" answered for others")
	}
	return strings.Join(out, "; ")
}

// ageWords is a duration as people say it, in its largest unit.
func ageWords(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", max(int(d/time.Second), 1))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d/time.Minute))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d hours", int(d/time.Hour))
	}
	return fmt.Sprintf("%d days", int(d/(24*time.Hour)))
}
