package federation

import (
	"unicode/utf8"

	"agentsite/internal/fault"
)

// Rule is what an operator said of one portal. The zero value says nothing:
// the policy alone decides.
type Rule struct {
	// Stand is "", Allow, Pin or Deny.
	Stand string
	// Note is why, for operators.
	Note string
	// MaxAgents and MaxBytes bound what is held of it; 0 for the default.
	MaxAgents int
	MaxBytes  int64
	// Follow is what is done with its words about others: "" for nothing,
	// FollowWarn or FollowBlock.
	Follow string
}

// What a Rule may say: let it in whatever the policy is, the same and believe
// what it vouches for, shut it out.
const (
	Allow = "allow"
	Pin   = "pin"
	Deny  = "deny"
)

// maxNote bounds what operators write of a portal or a decision, in bytes: the
// log of decisions takes no more.
const maxNote = 400

func (r Rule) check() error {
	var c fault.Check
	c.Field(r.Stand == "" || r.Stand == Allow || r.Stand == Pin || r.Stand == Deny, "policy", "use allow, pin, deny, or nothing for what the policy says")
	c.Field(r.Follow == "" || r.Follow == FollowWarn || r.Follow == FollowBlock, "follow", "use block, warn, or nothing to end it")
	c.Field(len(r.Note) <= maxNote && utf8.ValidString(r.Note), "note", "use at most %d characters", maxNote)
	c.Field(r.MaxAgents >= 0 && r.MaxAgents <= maxAgentsOfOne, "max_agents", "use 0 for the default, or at most %d", maxAgentsOfOne)
	c.Field(r.MaxBytes >= 0 && r.MaxBytes <= maxBytesOfOne, "max_bytes", "use 0 for the default, or at most %d", int64(maxBytesOfOne))
	return c.Err()
}

// in reports whether the rule lets a portal in by itself.
func (r Rule) in() bool { return r.Stand == Allow || r.Stand == Pin }
