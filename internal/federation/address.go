package federation

import "net/url"

// HostOf is the part of handles that means the portal at an origin: host, and
// port if it is not the scheme's own.
func HostOf(origin string) string {
	u, err := url.Parse(origin)
	if err != nil {
		return ""
	}
	return u.Host
}
