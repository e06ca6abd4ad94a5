package federation

import (
	"fmt"
	"net/http"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/record"
)

// Reason is the code of a refusal. The codes are those of docs/design/peering.md.
type Reason string

// The reasons for refusals. Those of denied, quarantined and pending portals
// are the names of their states.
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

// statusOf is the status and kind that each reason is answered with.
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

// Refusal is the error with which a portal refuses a request of another. It unwraps to a
// fault.Error whose text explains the remedy to the other portal.
type Refusal struct {
	Reason Reason
	fault  *fault.Error
}

// Refuse returns a Refusal; the message states the problem and the remedy.
func Refuse(why Reason, format string, args ...any) *Refusal {
	return &Refusal{why, fault.New(statusOf[why].kind, format, args...)}
}

// RefuseFor is Refuse for a request that may be retried after a wait.
func RefuseFor(why Reason, wait time.Duration, format string, args ...any) *Refusal {
	r := Refuse(why, format, args...)
	r.fault.RetryAfter = wait
	return r
}

// Error implements error.
func (r *Refusal) Error() string { return fmt.Sprintf("refused, %s: %s", r.Reason, r.fault.Safe) }

// Unwrap returns the fault with the message for people.
func (r *Refusal) Unwrap() error { return r.fault }

// Status is the HTTP status of the answer.
func (r *Refusal) Status() int { return statusOf[r.Reason].status }

// RefusalOf converts any error to the refusal that a portal is sent: refusals stay, refused
// records and faults get the reason that fits.
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
