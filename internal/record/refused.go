package record

import (
	"errors"
	"fmt"

	"agentsite/internal/fault"
)

// Reason is the code for a refusal; metrics count by it and the vectors name it.
type Reason string

// The reasons, in the order of the checks.
const (
	TooLarge      Reason = "size"         // record or payload larger than its type allows
	NotEnvelope   Reason = "envelope"     // not in the fixed form of an envelope
	Unknown       Reason = "type"         // an unknown type
	NotJSON       Reason = "json"         // the payload is not one JSON object
	NotCanonical  Reason = "canonical"    // JSON, but not in its canonical form
	BadNumber     Reason = "number"       // number that is not an integer below 2^53
	BadText       Reason = "text"         // invalid UTF-8, or a NUL
	BadName       Reason = "name"         // member name with characters that are not allowed
	Duplicate     Reason = "duplicate"    // a duplicate member
	HasNull       Reason = "null"         // null instead of leaving the member out
	TooDeep       Reason = "depth"        // nested too deep
	BadField      Reason = "field"        // a field's value is not allowed
	FromFuture    Reason = "future"       // issued later than now
	Expired       Reason = "expired"      // expired
	TooLong       Reason = "life"         // validity longer than its type allows
	NoPortal      Reason = "portal"       // no current card of its portal is known
	NoKey         Reason = "key"          // the card does not list its key
	KeyTime       Reason = "key_time"     // validity not within that of its key
	BadSignature  Reason = "signature"    // invalid signature
	BadEvidence   Reason = "evidence"     // a fork proof that proves nothing
	Quarantined   Reason = "quarantined"  // its portal is an equivocator
	Stale         Reason = "stale"        // a newer version was seen
	Equivocation  Reason = "fork"         // another record of the same version was seen
	NotConsistent Reason = "inconsistent" // does not fit the head or the log that it came with
)

// Refused is the error for a record that is not admitted. It unwraps to a fault.Error whose kind fits
// the reason.
type Refused struct {
	Reason Reason
	Text   string // description of the error for people
	fault  *fault.Error
}

// Error implements error.
func (r *Refused) Error() string { return "record refused, " + string(r.Reason) + ": " + r.Text }

// Unwrap returns the fault, whose kind fits API answers.
func (r *Refused) Unwrap() error { return r.fault }

// ReasonOf returns the reason for which err refuses a record, or "" for another error.
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

// fields collects the errors of a record's fields; see fault.Check.
type fields struct{ fault.Check }

func (f *fields) asError() error {
	err := f.Err()
	if err == nil {
		return nil
	}
	return refuse(BadField, "%s", fault.As(err).Safe)
}
