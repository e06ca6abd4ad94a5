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
