package record

import "encoding/json"

// Fork proves that a portal signed two heads of one version: it showed one
// network to some and another to others. Anybody may say it; nobody needs to
// be trusted for it.
type Fork struct {
	Header
	Subject PortalID `json:"subject"` // who signed both
	// A and B are the heads as they travel, that with the lower hash first.
	A json.RawMessage `json:"a"`
	B json.RawMessage `json:"b"`
}

func (k *Fork) kind() Type    { return TypeFork }
func (k *Fork) about() string { return string(k.Subject) }

func (k *Fork) check(f *fields) {
	_, ok := k.Subject.Digest()
	f.Field(ok, "subject", "is not the id of a portal")
	f.Field(k.Subject != k.Portal, "subject", "nobody accuses themselves")
}

// heads reads the two heads and says when they prove nothing. Their signatures
// are still to be checked.
func (k *Fork) heads(network string) (a, b *Record, err error) {
	if a, err = k.head(network, k.A); err != nil {
		return nil, nil, err
	}
	if b, err = k.head(network, k.B); err != nil {
		return nil, nil, err
	}
	switch {
	case a.Version() != b.Version():
		return nil, nil, refuse(BadEvidence, "the heads are of two versions")
	case !a.Hash.less(b.Hash):
		return nil, nil, refuse(BadEvidence, "the heads are one, or in the wrong order")
	}
	return a, b, nil
}

func (k *Fork) head(network string, wire []byte) (*Record, error) {
	r, err := Open(network, wire)
	if err != nil {
		return nil, refuse(BadEvidence, "what should be a head was %v", err)
	}
	if r.Type != TypeHead || r.Portal != k.Subject {
		return nil, refuse(BadEvidence, "there is something else than a head of %s", k.Subject)
	}
	return r, r.brief()
}

// proven checks the signatures of both heads with the keys of their portal. A
// head that has expired proves as much as before; one by a key that the
// portal's card lists no more proves nothing, because whoever stole a key could
// otherwise ruin the portal that threw it away.
func (k *Fork) proven(network string, ring *Ring, now int64) (a, b *Record, err error) {
	if a, b, err = k.heads(network); err != nil {
		return nil, nil, err
	}
	for _, r := range [...]*Record{a, b} {
		pub, err := ring.Key(r, now)
		if err != nil {
			return nil, nil, err
		}
		if !r.holds(pub) {
			return nil, nil, refuse(BadEvidence, "a head is not signed by %s", k.Subject)
		}
	}
	return a, b, nil
}

// Conflict is two records of one slot and one version.
type Conflict struct {
	Slot Slot
	Version
	// Lower and Higher are the two as they travel, by their hashes. The one
	// that was seen first is nil when it was forgotten but for its hash.
	Lower, Higher []byte
}

// Proof returns the body of a Fork that proves the conflict to others, but for
// its header; nil when it is not of heads or one of them is lost. Conflicts of
// other records stay here: which of two agents counts is what the head covers.
func (c *Conflict) Proof() *Fork {
	if c.Slot.Type != TypeHead || c.Lower == nil || c.Higher == nil {
		return nil
	}
	return &Fork{Subject: c.Slot.Portal, A: c.Lower, B: c.Higher}
}
