package weborigin

import (
	"net/url"
	"strings"
)

// WithScheme returns the addresses that a text of a person may mean, best first: the text itself or, without a scheme,
// the address with https and, for a host on loopback, with http. It checks nothing else.
func WithScheme(address string) []string {
	if address == "" || strings.Contains(address, "://") {
		return []string{address}
	}
	list := []string{"https://" + address}
	if u, err := url.Parse(list[0]); err == nil && IsLoopback(u.Hostname()) {
		list = append(list, "http://"+address)
	}
	return list
}

// CompleteAddress returns an address that is stored without being tried, with the scheme that it may lack: http for a
// host on loopback, where no certificate can be had, and https for others. Texts that name no host, such as mailto:a, and
// words that a person can have typed by mistake, without a dot or a port, are returned unchanged, so that the checks of
// addresses refuse them.
func CompleteAddress(address string) string {
	list := WithScheme(address)
	whole := list[len(list)-1]
	u, err := url.Parse(whole)
	if err != nil || u.Hostname() == "" || u.User != nil {
		return address
	}
	if u.Port() == "" && u.Hostname() != "localhost" && !strings.ContainsAny(u.Hostname(), ".:") {
		return address
	}
	return whole
}
