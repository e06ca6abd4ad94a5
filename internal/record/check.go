package record

import (
	"encoding/json"
	"errors"

	"agentsite/internal/record/canonical"
)

// checkHeader checks the common fields of all records. It does not compare the times with the clock
// (checkTimes does), because an expired record is still well-formed.
func (h *Header) checkHeader(f *fields) {
	_, ok := h.Portal.Digest()
	f.Field(ok, "portal", "is not the id of a portal")
	f.Field(h.Seq >= 1 && h.Seq <= maxInt, "seq", "1 or more")
	f.Field(h.Issued >= 1 && h.Issued <= maxInt, "iss", "milliseconds since 1970")
	f.Field(h.Expires > h.Issued && h.Expires <= maxInt, "exp", "after iss")
	// Otherwise a stolen key could sign a record with the greatest possible epoch, and the portal could
	// never publish a newer one.
	f.Field(h.Epoch >= 1 && h.Epoch <= h.Issued, "epoch", "milliseconds since 1970, not after iss")
}

// Canonical returns nil if b is a payload in canonical form, else a *Refused with the reason.
func Canonical(b []byte) error {
	err := canonical.Check(b)
	if form, ok := errors.AsType[*canonical.Error](err); ok {
		return refuse(Reason(form.Reason), "%s", form.Text)
	}
	return err
}

// decodeBody decodes a canonical payload without checking its fields. Canonical must have accepted the
// payload: it excludes what encoding/json tolerates (duplicate members, other letter case).
func decodeBody(body Body, payload []byte) error {
	if a, ok := body.(*Agent); ok {
		if readAgent(a, payload) {
			return nil
		}
		*a = Agent{}
	}
	if err := json.Unmarshal(payload, body); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
			return refuse(BadField, "%s: a %s does not belong there", wrong.Field, wrong.Value)
		}
		return refuse(BadField, "the payload does not fit its type: %v", err)
	}
	return nil
}

func checkBody(body Body) error {
	var f fields
	body.asHeader().checkHeader(&f)
	body.checkFields(&f)
	return f.asError()
}

// checkTimes refuses a record that is expired at now, or issued later than now plus maxSkew; now is in
// milliseconds.
func (r *Record) checkTimes(now int64) error {
	if err := r.checkLife(); err != nil {
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

// checkLife refuses a record whose validity is longer than its type allows.
func (r *Record) checkLife() error {
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
