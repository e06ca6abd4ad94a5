package record

import "agentsite/internal/record/onekey"

// verifyAll is verify for each claim that needs it, on all processors. The
// signatures of a key that signed many of them, as that of a log did, are
// checked together: the answers are the same, at less than half of the work.
func (g *Gate) verifyAll(claims []claim, now int64) {
	var alone []*claim
	byKey := make(map[Public][]*claim)
	for i := range claims {
		if c := &claims[i]; c.err == nil && !c.known && !c.own {
			byKey[c.key] = append(byKey[c.key], c)
		}
	}
	for pub, list := range byKey {
		if len(list) < onekey.Fewest {
			alone = append(alone, list...)
			continue
		}
		key := onekey.New(pub)
		pieces(len(list), onekey.MaxAtOnce, func(from, to int) { g.verifyBy(key, list[from:to], now) })
	}
	spread(len(alone), func(i int) { alone[i].err = g.verify(alone[i], now) })
}

// verifyBy is verify for claims that are said to be signed by one key.
func (g *Gate) verifyBy(key *onekey.Key, list []*claim, now int64) {
	var signed [onekey.MaxAtOnce]onekey.Signed
	var holds [onekey.MaxAtOnce]bool
	for i, c := range list {
		signed[i] = onekey.Signed{Message: c.signed, Sig: &c.sig}
	}
	key.Verify(signed[:len(list)], holds[:len(list)])
	for i, c := range list {
		c.err = g.verified(c, holds[i], now)
	}
}
