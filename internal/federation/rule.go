package federation

import (
	"unicode/utf8"

	"agentsite/internal/fault"
)

// Rule is the operator's rule for one portal. The zero value has no effect: the policy alone
// decides.
type Rule struct {
	// Stand is "", Allow, Pin or Deny.
	Stand string
	// Note is why, for operators.
	Note string
	// MaxAgents and MaxBytes bound its held records; 0 for the default.
	MaxAgents int
	MaxBytes  int64
	// Follow is the use of its statements about others: "" for none, FollowWarn or FollowBlock.
	Follow string
}

// The values of Rule.Stand: admit it whatever the policy is; the same and trust its vouching; deny
// it.
const (
	Allow = "allow"
	Pin   = "pin"
	Deny  = "deny"
)

// maxNote bounds the text of operators about a portal or a decision, in bytes, because the log of
// decisions takes no more.
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

// isAdmitted reports whether the rule lets a portal in by itself.
func (r Rule) isAdmitted() bool { return r.Stand == Allow || r.Stand == Pin }
