package record

import "encoding/json"

// Fork proves that a portal signed two heads of one version, which means that it showed different
// logs to different portals. Any portal may publish it, and it needs no trust in the publisher.
type Fork struct {
	Header
	Subject PortalID `json:"subject"` // signer of both heads
	// A and B are the encoded heads, the one with the lower hash first.
	A json.RawMessage `json:"a"`
	B json.RawMessage `json:"b"`
}

func (k *Fork) recordType() Type { return TypeFork }
func (k *Fork) slotKey() string  { return string(k.Subject) }

func (k *Fork) checkFields(f *fields) {
	_, ok := k.Subject.Digest()
	f.Field(ok, "subject", "is not the id of a portal")
	f.Field(k.Subject != k.Portal, "subject", "a portal cannot accuse itself")
}

// openHeads decodes the two heads and returns an error if they prove nothing. It does not check
// their signatures.
func (k *Fork) openHeads(network string) (a, b *Record, err error) {
	if a, err = k.openHead(network, k.A); err != nil {
		return nil, nil, err
	}
	if b, err = k.openHead(network, k.B); err != nil {
		return nil, nil, err
	}
	switch {
	case a.Version() != b.Version():
		return nil, nil, refuse(BadEvidence, "the heads are of two versions")
	case !a.Hash.isLess(b.Hash):
		return nil, nil, refuse(BadEvidence, "the heads are one, or in the wrong order")
	}
	return a, b, nil
}

func (k *Fork) openHead(network string, wire []byte) (*Record, error) {
	r, err := Open(network, wire)
	if err != nil {
		return nil, refuse(BadEvidence, "a record in the place of a head was %v", err)
	}
	if r.Type != TypeHead || r.Portal != k.Subject {
		return nil, refuse(BadEvidence, "there is something else than a head of %s", k.Subject)
	}
	return r, r.checkLife()
}

// verifyHeads checks the signatures of both heads with the keys of their portal. An expired head
// still counts. A head of a key that the portal's card no longer lists does not, because otherwise
// the thief of a key could ruin the portal that has replaced it.
func (k *Fork) verifyHeads(network string, ring *Ring, now int64) (a, b *Record, err error) {
	if a, b, err = k.openHeads(network); err != nil {
		return nil, nil, err
	}
	for _, r := range [...]*Record{a, b} {
		pub, err := ring.Key(r, now)
		if err != nil {
			return nil, nil, err
		}
		if !r.signedBy(pub) {
			return nil, nil, refuse(BadEvidence, "a head is not signed by %s", k.Subject)
		}
	}
	return a, b, nil
}

// Conflict is a pair of different records with the same slot and version.
type Conflict struct {
	Slot Slot
	Version
	// Lower and Higher are the encoded records, ordered by their hashes. The one that was seen
	// first is nil if only its hash was kept.
	Lower, Higher []byte
}

// Proof returns the body of a Fork that proves the conflict to other portals, without its header;
// nil if the records are not heads or one of them is lost. Conflicts of other records are not
// published: the head decides which of two agents counts.
func (c *Conflict) Proof() *Fork {
	if c.Slot.Type != TypeHead || c.Lower == nil || c.Higher == nil {
		return nil
	}
	return &Fork{Subject: c.Slot.Portal, A: c.Lower, B: c.Higher}
}
