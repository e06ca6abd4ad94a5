package record

import (
	"context"
	"time"
)

// Check asks of an agent's record all that Admit does, and takes it in nowhere:
// for what is shown once and not kept. It says nothing about heads; see
// Head.Covers. Refusals are Refused errors; other errors are the memory's.
func (g *Gate) Check(ctx context.Context, wire []byte, now time.Time) (*Record, error) {
	r, err := Open(g.network, wire)
	if err != nil {
		return nil, err
	}
	if r.Type != TypeAgent {
		return nil, refuse(NotConsistent, "it is a %s, not an agent", r.Type)
	}
	c := claim{Record: r}
	if err := g.look(ctx, &c, now.UnixMilli()); err != nil {
		return nil, err
	}
	if c.known {
		return r, nil
	}
	if err := g.verify(&c, now.UnixMilli()); err != nil {
		return nil, err
	}
	if c.contradicts() {
		return nil, refuse(Equivocation, "%s signed two records of version %d.%d", c.Portal, c.Epoch, c.Seq)
	}
	return r, nil
}
