package federation

import "net/url"

// HostOf returns the host of an origin as it stands in handles: with the port, unless it is the default
// of the scheme.
func HostOf(origin string) string {
	u, err := url.Parse(origin)
	if err != nil {
		return ""
	}
	return u.Host
}
