package app

import (
	"errors"
	"net/netip"
	"net/url"
	"slices"
)

// hookURL is what says, in words for a form, why an address may not be told of
// events. What is told is for its owner's eyes, so that it goes by https,
// unless the portal itself is on this machine only or the operator named the
// very network.
func (p *Portal) hookURL(loopback bool, allow []netip.Prefix) func(string) error {
	return func(address string) error {
		if err := p.checkURL(address); err != nil {
			return err
		}
		u, err := url.Parse(address)
		if err != nil {
			return err
		}
		if u.Scheme == "https" || loopback {
			return nil
		}
		if a, err := netip.ParseAddr(u.Hostname()); err == nil && slices.ContainsFunc(allow, func(n netip.Prefix) bool { return n.Contains(a.Unmap()) }) {
			return nil
		}
		return errors.New("use https, because what is sent there is not for everybody")
	}
}
