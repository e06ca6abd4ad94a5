package record

import (
	"encoding/json"
	"errors"
)

// check looks at what all records begin with. That the times fit the clock is
// not here but in timely: a record that is out of date is still well formed.
func (h *Header) check(f *fields) {
	_, ok := h.Portal.Digest()
	f.Field(ok, "portal", "is not the id of a portal")
	f.Field(h.Seq >= 1 && h.Seq <= maxInt, "seq", "1 or more")
	f.Field(h.Issued >= 1 && h.Issued <= maxInt, "iss", "milliseconds since 1970")
	f.Field(h.Expires > h.Issued && h.Expires <= maxInt, "exp", "after iss")
	// A thief of a key could otherwise take the last epoch there is, and the
	// portal could never speak again.
	f.Field(h.Epoch >= 1 && h.Epoch <= h.Issued, "epoch", "milliseconds since 1970, not after iss")
}

// read decodes a payload that is canonical and checks its fields. Canonical
// leaves encoding/json nothing to be lenient about: no member twice, none in
// another case.
func read(body Body, payload []byte) error {
	if a, ok := body.(*Agent); ok {
		if readAgent(a, payload) {
			return valid(a)
		}
		*a = Agent{}
	}
	if err := json.Unmarshal(payload, body); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
			return refuse(BadField, "%s: a %s does not belong there", wrong.Field, wrong.Value)
		}
		return refuse(BadField, "the payload does not fit its type: %v", err)
	}
	return valid(body)
}

func valid(body Body) error {
	var f fields
	body.header().check(&f)
	body.check(&f)
	return f.refused()
}

// timely says what is wrong with the record's times at now, in milliseconds.
func (r *Record) timely(now int64) error {
	if err := r.brief(); err != nil {
		return err
	}
	switch {
	case r.Issued > now+maxSkew:
		return refuse(FromFuture, "it was issued %d s from now; compare the clocks", (r.Issued-now)/1000)
	case r.Expires <= now:
		return refuse(Expired, "it ended %d s ago", (now-r.Expires)/1000)
	}
	return nil
}

// brief refuses a record that lives longer than its type may.
func (r *Record) brief() error {
	if life := r.Expires - r.Issued; life > r.maxLife() {
		return refuse(TooLong, "it lives for %d s, %s for at most %d", life/1000, r.Type, r.maxLife()/1000)
	}
	return nil
}

func (r *Record) maxLife() int64 {
	rule, _ := ruleOf(r.Type)
	if r.Tombstone() {
		return rule.life + grace
	}
	return rule.life
}
