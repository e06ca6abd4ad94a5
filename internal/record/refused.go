package record

import (
	"errors"
	"fmt"

	"agentsite/internal/fault"
)

// Reason says in one word why a record was refused; metrics count by it and
// the vectors name it.
type Reason string

// The reasons, in the order in which they are looked for.
const (
	TooLarge      Reason = "size"         // longer than its type may be
	NotEnvelope   Reason = "envelope"     // not the one form of an envelope
	Unknown       Reason = "type"         // a type that is not known here
	NotJSON       Reason = "json"         // the payload is not one JSON object
	NotCanonical  Reason = "canonical"    // JSON, but not in its canonical form
	BadNumber     Reason = "number"       // not an integer below 2^53
	BadText       Reason = "text"         // invalid UTF-8, or a NUL
	BadName       Reason = "name"         // the name of a member
	Duplicate     Reason = "duplicate"    // a member twice
	HasNull       Reason = "null"         // absent is said by leaving it out
	TooDeep       Reason = "depth"        // nested too deep
	BadField      Reason = "field"        // a field's value is not allowed
	FromFuture    Reason = "future"       // issued later than now
	Expired       Reason = "expired"      // its time is over
	TooLong       Reason = "life"         // lives longer than its type may
	NoPortal      Reason = "portal"       // no current card of its portal is known
	NoKey         Reason = "key"          // the card does not list its key
	KeyTime       Reason = "key_time"     // lives outside of its key's time
	BadSignature  Reason = "signature"    // does not hold
	BadEvidence   Reason = "evidence"     // a fork proof that proves nothing
	Quarantined   Reason = "quarantined"  // its portal was seen to lie
	Stale         Reason = "stale"        // a newer version was seen
	Equivocation  Reason = "fork"         // another record of this very version was seen
	NotConsistent Reason = "inconsistent" // does not fit the head or the log it came with
)

// Refused is the error of a record that is not admitted. It unwraps to a
// fault.Error with a kind that fits.
type Refused struct {
	Reason Reason
	Text   string // what is wrong, for people
	fault  *fault.Error
}

// Error implements error.
func (r *Refused) Error() string { return "record refused, " + string(r.Reason) + ": " + r.Text }

// Unwrap returns the fault that doors answer with.
func (r *Refused) Unwrap() error { return r.fault }

// ReasonOf returns why err refuses a record, or "" when it is another error.
func ReasonOf(err error) Reason {
	if r, ok := errors.AsType[*Refused](err); ok {
		return r.Reason
	}
	return ""
}

func refuse(why Reason, format string, args ...any) *Refused {
	text := fmt.Sprintf(format, args...)
	kind := fault.Invalid
	switch why {
	case NoPortal, NoKey, KeyTime, BadSignature:
		kind = fault.Unauthenticated
	case Quarantined:
		kind = fault.Forbidden
	case Stale, Equivocation, NotConsistent:
		kind = fault.Conflict
	}
	return &Refused{why, text, fault.New(kind, "The record is refused (%s): %s.", why, text)}
}

// fields collects what is wrong with a record's fields.
type fields struct{ fault.Check }

func (f *fields) refused() error {
	err := f.Err()
	if err == nil {
		return nil
	}
	return refuse(BadField, "%s", fault.As(err).Safe)
}
