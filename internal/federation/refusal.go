package federation

import (
	"fmt"
	"net/http"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/record"
)

// Reason is the code of a refusal on the wire, see docs/design/peering.md.
type Reason string

// The reasons for refusals. For denied, quarantined and pending portals they are the names of the states.
const (
	ReasonUnsigned    Reason = "unsigned"
	ReasonUnknown     Reason = "unknown_portal"
	ReasonSignature   Reason = "signature"
	ReasonClock       Reason = "clock"
	ReasonReplayed    Reason = "replayed"
	ReasonNetwork     Reason = "network"
	ReasonDenied      Reason = Reason(Denied)
	ReasonQuarantined Reason = Reason(Quarantined)
	ReasonPending     Reason = Reason(Pending)
	ReasonLimit       Reason = "limit"
	ReasonBusy        Reason = "busy"
	ReasonMalformed   Reason = "malformed"
	ReasonSize        Reason = "size"
	ReasonAbsent      Reason = "absent"
)

// statusOf has the HTTP status and the fault kind for each reason.
var statusOf = map[Reason]struct {
	status int
	kind   fault.Kind
}{
	ReasonUnsigned:    {http.StatusUnauthorized, fault.Unauthenticated},
	ReasonUnknown:     {http.StatusUnauthorized, fault.Unauthenticated},
	ReasonSignature:   {http.StatusUnauthorized, fault.Unauthenticated},
	ReasonClock:       {http.StatusUnauthorized, fault.Unauthenticated},
	ReasonReplayed:    {http.StatusUnauthorized, fault.Unauthenticated},
	ReasonNetwork:     {http.StatusForbidden, fault.Forbidden},
	ReasonDenied:      {http.StatusForbidden, fault.Forbidden},
	ReasonQuarantined: {http.StatusForbidden, fault.Forbidden},
	ReasonPending:     {http.StatusForbidden, fault.Forbidden},
	ReasonLimit:       {http.StatusTooManyRequests, fault.RateLimited},
	ReasonBusy:        {http.StatusServiceUnavailable, fault.Unavailable},
	ReasonMalformed:   {http.StatusBadRequest, fault.Invalid},
	ReasonSize:        {http.StatusRequestEntityTooLarge, fault.Invalid},
	ReasonAbsent:      {http.StatusNotFound, fault.NotFound},
}

// Refusal is the error with which a portal refuses a request of another. It unwraps to a fault.Error
// with a text that gives the other portal's operator the remedy.
type Refusal struct {
	Reason Reason
	fault  *fault.Error
}

// Refuse returns a Refusal; the message states the problem and the remedy for the other side.
func Refuse(why Reason, format string, args ...any) *Refusal {
	return &Refusal{why, fault.New(statusOf[why].kind, format, args...)}
}

// RefuseFor is Refuse for a request that can be repeated after a wait.
func RefuseFor(why Reason, wait time.Duration, format string, args ...any) *Refusal {
	r := Refuse(why, format, args...)
	r.fault.RetryAfter = wait
	return r
}

// Error implements error.
func (r *Refusal) Error() string { return fmt.Sprintf("refused, %s: %s", r.Reason, r.fault.Safe) }

// Unwrap returns the fault with the message for people.
func (r *Refusal) Unwrap() error { return r.fault }

// Status returns the HTTP status with which the refusal is sent.
func (r *Refusal) Status() int { return statusOf[r.Reason].status }

// RefusalOf converts any error to the refusal to send: a Refusal stays, other errors get the reason for
// their fault kind. Internal errors are sent as busy, without details.
func RefusalOf(err error) *Refusal {
	if r, ok := err.(*Refusal); ok {
		return r
	}
	f := fault.As(err)
	why := ReasonBusy
	switch f.Kind {
	case fault.Invalid, fault.Conflict:
		why = ReasonMalformed
	case fault.Unauthenticated:
		why = ReasonSignature
	case fault.Forbidden:
		why = ReasonDenied
	case fault.NotFound:
		why = ReasonAbsent
	case fault.RateLimited:
		why = ReasonLimit
	case fault.Internal:
		f.RetryAfter = time.Minute
	}
	if record.ReasonOf(err) == record.Quarantined {
		why = ReasonQuarantined
	}
	return &Refusal{why, f}
}
