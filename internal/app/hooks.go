package app

import (
	"agentsite/internal/egress"
	"errors"
	"net/netip"
	"net/url"
	"slices"
)

// hookPolicy decides to which addresses events may be sent. It implements hub.AddressPolicy. Events are private to their
// owner, so an address must use https, unless the portal itself is only on this machine or the operator allowed the
// exact network.
type hookPolicy struct {
	client   *egress.Client
	loopback bool           // of the portal
	allow    []netip.Prefix // private addresses that may be called
}

// CheckURL implements hub.AddressPolicy, with errors for a form.
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
