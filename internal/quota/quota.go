// Package quota decides whether an account, an agent, a network of guests or another portal may store
// more. It is pure: the store counts the bytes, and the settings give the bounds.
package quota

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"agentsite/internal/fault"
)

// Kind is the kind of an owner of stored bytes.
type Kind string

// The kinds of owners. An address is a network of guests, see Network; an agent's bytes also count for
// the account that owns it.
const (
	Account Kind = "account"
	Agent   Kind = "agent"
	Address Kind = "address"
	Portal  Kind = "portal"
)

// Kinds returns all kinds, in the order of pages.
func Kinds() []Kind { return []Kind{Account, Agent, Address, Portal} }

// Bound limits the bytes of one owner: all that are stored, and those added on one day (UTC). Zero is
// no limit.
type Bound struct{ Total, Daily int64 }

// Limits has the bounds by kind of owner.
type Limits map[Kind]Bound

// Usage is the number of bytes that are stored for one owner.
type Usage struct {
	Kind Kind
	ID   string
	// Total counts the stored bytes, Today those added today, with the data deleted since.
	Total, Today int64
	Bound        Bound
}

// Owner is an owner of stored bytes with its name: of an account or agent, "" for others.
type Owner struct {
	Usage
	Name string
}

// Free returns the bytes that may still be added now; the largest int64 without a bound.
func (u Usage) Free() int64 {
	free := int64(1<<63 - 1)
	if u.Bound.Total > 0 {
		free = min(free, u.Bound.Total-u.Total)
	}
	if u.Bound.Daily > 0 {
		free = min(free, u.Bound.Daily-u.Today)
	}
	return max(free, 0)
}

// totalRetry is the advised wait of an owner whose total is used up: time passes nothing, but deleted
// files leave within a day.
const totalRetry = time.Hour

// Check returns a RateLimited fault unless add more bytes fit. subject begins the sentence, for example
// "You have"; remedy says how to get room, for example "Delete files that you do not need."
func (u Usage) Check(add int64, now time.Time, subject, remedy string) error {
	switch {
	case u.Bound.Total > 0 && u.Total+add > u.Bound.Total:
		return fault.Limited(totalRetry, "%s stored %s of %s on this portal, and this needs %s. %s", subject,
			Text(u.Total), Text(u.Bound.Total), Text(add), remedy)
	case u.Bound.Daily > 0 && u.Today+add > u.Bound.Daily:
		midnight := now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
		return fault.Limited(midnight.Sub(now), "%s stored %s today, of %s a day, and this needs %s. Try again after %s UTC.",
			subject, Text(u.Today), Text(u.Bound.Daily), Text(add), midnight.Format("2006-01-02 15:04"))
	}
	return nil
}

// Text returns a number of bytes for people, for example "1.5 MiB".
func Text(n int64) string {
	if n < 1<<10 {
		return strconv.FormatInt(n, 10) + " bytes"
	}
	units := []string{"KiB", "MiB", "GiB", "TiB"}
	v := float64(n)
	for i, unit := range units {
		if v /= 1 << 10; v < 1<<10 || i == len(units)-1 {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") + " " + unit
		}
	}
	return ""
}

// Network returns the network whose guests share a quota: the /24 of an IPv4 address, the /64 of an IPv6
// address. It returns "" for a text that is no address.
func Network(addr string) string {
	a, err := netip.ParseAddr(addr)
	if err != nil {
		p, err := netip.ParsePrefix(addr)
		if err != nil {
			return ""
		}
		a = p.Addr()
	}
	bits := 64
	if a = a.Unmap().WithZone(""); a.Is4() {
		bits = 24
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return ""
	}
	return p.String()
}
