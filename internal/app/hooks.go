package app

import (
	"errors"
	"net/netip"
	"net/url"
	"slices"
)

// hookURL returns the check of webhook addresses, with errors for a form. Events are private to their owner, so an
// address must use https, unless the portal itself is only on this machine or the operator allowed the exact
// network.
func (p *Portal) hookURL(loopback bool, allow []netip.Prefix) func(string) error {
	return func(address string) error {
		if err := (addressPolicy{p.egress}).CheckURL(address); err != nil {
			return err
		}
		u, err := url.Parse(address)
		if err != nil {
			return err
		}
		if u.Scheme == "https" || loopback {
			return nil
		}
		if a, err := netip.ParseAddr(u.Hostname()); err == nil &&
			slices.ContainsFunc(allow, func(n netip.Prefix) bool { return n.Contains(a.Unmap()) }) {
			return nil
		}
		return errors.New("use https, because the events are private")
	}
}
