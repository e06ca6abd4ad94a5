package app

import (
	"agentsite/internal/egress"
	"errors"
	"net/netip"
	"net/url"
	"slices"
)

// hookPolicy decides to which addresses webhooks may be sent. It implements hub.AddressPolicy. Events
// are private to their owner, so an address must use https, unless the portal itself is only on this
// machine or the operator allowed the exact network.
type hookPolicy struct {
	client   *egress.Client
	loopback bool           // true if the portal's own address is loopback
	allow    []netip.Prefix // private networks that the operator allowed
}

// CheckURL returns the reason why events may not be sent to an address, worded for a form, or nil.
func (p hookPolicy) CheckURL(address string) error {
	if err := (addressPolicy{p.client}).CheckURL(address); err != nil {
		return err
	}
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	if u.Scheme == "https" || p.loopback {
		return nil
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil &&
		slices.ContainsFunc(p.allow, func(n netip.Prefix) bool { return n.Contains(a.Unmap()) }) {
		return nil
	}
	return errors.New("use https, because the events are private")
}
