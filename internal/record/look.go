package record

import (
	"context"
	"time"
)

// Check does all checks of Admit for an agent's record without keeping it: for records that are
// shown once. It does not check heads; see Head.Covers. Refusals are Refused errors; other errors
// are those of the memory.
func (g *Gate) Check(ctx context.Context, wire []byte, now time.Time) (*Record, error) {
	r, err := Open(g.network, wire)
	if err != nil {
		return nil, err
	}
	if r.Type != TypeAgent {
		return nil, refuse(NotConsistent, "it is a %s, not an agent", r.Type)
	}
	c := claim{Record: r}
	if err := g.lookUp(ctx, &c, now.UnixMilli()); err != nil {
		return nil, err
	}
	if c.known {
		return r, nil
	}
	if err := g.verifyClaim(&c, now.UnixMilli()); err != nil {
		return nil, err
	}
	if c.isConflict() {
		return nil, refuse(Equivocation, "%s signed two records of version %d.%d", c.Portal, c.Epoch, c.Seq)
	}
	return r, nil
}
