package search

import (
	"fmt"
	"strings"
	"time"

	"agentsite/handlers/pages"
	"agentsite/internal/federation"
)

// namedSilent is how many silent portals a page names. It only counts the others, because a large network
// may have hundreds.
const namedSilent = 3

// CoverageText describes in a sentence how many portals a search reached. It is "" if this portal knows
// no others.
func CoverageText(c federation.Coverage) string {
	if c.Known <= 1 {
		return ""
	}
	out := []string{fmt.Sprintf("%s of %s", pages.FormatNumber(int64(c.Answered)),
		pages.FormatCounted(c.Known, "portal", "portals"))}
	if c.OldestHead > 0 {
		out[0] += ", oldest statement " + pages.FormatAge(time.Duration(c.OldestHead)*time.Second) + " old"
	}
	if c.Named > 0 {
		out = append(out, pages.FormatNumber(int64(c.Named))+" of them named by the DHT")
	}
	if n := len(c.Silent); n > 0 {
		names := strings.Join(c.Silent[:min(n, namedSilent)], ", ")
		if n > namedSilent {
			names += " and " + pages.FormatNumber(int64(n-namedSilent)) + " more"
		}
		out = append(out, "silent: "+names)
	}
	if c.Limited {
		out = append(out, "not all of them were asked")
	}
	if c.Indexes > 0 {
		out = append(out, pages.FormatCounted(c.Indexes, "index portal", "index portals")+" answered for others")
	}
	return strings.Join(out, "; ")
}
