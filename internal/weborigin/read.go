package weborigin

import (
	"slices"
	"strings"
)

// ReadHost returns a host that a person or program wrote, with or without a port, as it is kept and compared: in the
// form of DNS, lower case, without spaces around it.
func ReadHost(s string) string { return strings.ToLower(ASCIIHost(strings.TrimSpace(s))) }

// ReadHosts returns a copy of a list of hosts, each as ReadHost returns it.
func ReadHosts(list []string) []string {
	list = slices.Clone(list)
	for i, s := range list {
		list[i] = ReadHost(s)
	}
	return list
}

// ReadName returns the name of a portal, agent, person or site as it is kept and compared: a host, an address such as
// https://host/path, name@host, @host, or a name alone. Spaces around it go; the case of addresses and names stays.
func ReadName(s string) string {
	s = strings.TrimSpace(s)
	if strings.Contains(s, "://") {
		return ASCIIAddress(s)
	}
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		return s[:i+1] + ReadHost(s[i+1:])
	}
	return ASCIIHost(s)
}
