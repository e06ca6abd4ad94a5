package federation

import (
	"unicode/utf8"

	"agentsite/internal/fault"
)

// Rule is the operator's rule for one portal. The zero value has no effect: only the policy applies.
type Rule struct {
	// Stand is "", Allow, Pin or Deny.
	Stand string
	// Note is the operator's reason, shown to operators only.
	Note string
	// MaxAgents and MaxBytes limit its stored records; 0 for the limits of the policy.
	MaxAgents int
	MaxBytes  int64
	// Follow is the use of its statements about other portals: "" (none), FollowWarn or FollowBlock.
	Follow string
}

// The values of Rule.Stand: Allow admits the portal whatever the policy is; Pin does so too and trusts
// its vouching and reports; Deny excludes it.
const (
	Allow = "allow"
	Pin   = "pin"
	Deny  = "deny"
)

// maxNote is the longest text of operators about a portal or a decision, in bytes; the audit log takes no more.
const maxNote = 400

func (r Rule) checkRule() error {
	var c fault.Check
	c.Field(r.Stand == "" || r.Stand == Allow || r.Stand == Pin || r.Stand == Deny, "policy",
		"use allow, pin, deny, or nothing for what the policy says")
	c.Field(r.Follow == "" || r.Follow == FollowWarn || r.Follow == FollowBlock, "follow",
		"use block, warn, or nothing to end it")
	c.Field(len(r.Note) <= maxNote && utf8.ValidString(r.Note), "note", "use at most %d characters", maxNote)
	c.Field(r.MaxAgents >= 0 && r.MaxAgents <= maxAgentsOfOne, "max_agents", "use 0 for the default, or at most %d",
		maxAgentsOfOne)
	c.Field(r.MaxBytes >= 0 && r.MaxBytes <= maxBytesOfOne, "max_bytes", "use 0 for the default, or at most %d",
		int64(maxBytesOfOne))
	return c.Err()
}

// isAdmitted reports whether the rule alone admits the portal.
func (r Rule) isAdmitted() bool { return r.Stand == Allow || r.Stand == Pin }
