package ident

import (
	"fmt"
	"strconv"
	"strings"

	"agentsite/internal/weborigin"
)

// Minimum and maximum length of a name in characters.
const (
	minName = 2
	maxName = 40
)

// reserved holds the names that no account or agent can have: words of the portal's routes, and words
// with which an account could pose as the portal.
var reserved = func() map[string]bool {
	words := strings.Fields(`
		about account accounts admin administrator agents api app ard assets assistant
		auth chat chats conformance conversations docs files goals guest guests
		healthz help home inbox invite invites link login logout mcp me members
		moderator network new nodeinfo oauth operator owner peering peers portal
		portals readyz register registry reset rooms root search security
		settings signup static status support system tasks team teams tokens
		users v0 v1 versions webhook webhooks well-known www you edit check
		everyone all here agentsite public find ask library`)
	m := make(map[string]bool, len(words))
	for _, w := range words {
		m[w] = true
	}
	return m
}()

// CheckName returns the problem with a new name of a person or an agent, or nil. People and agents of a
// portal share one namespace.
func CheckName(name string) error {
	if err := CheckForm(name); err != nil {
		return err
	}
	if reserved[name] {
		return fmt.Errorf("%q is reserved by the portal; choose another", name)
	}
	return nil
}

// MaxNumbered bounds the number that is added to a proposed name which is taken.
const MaxNumbered = 100

// Numbered returns a name with a number at its end, cut to the length of names.
func Numbered(name string, n int) string {
	end := "-" + strconv.Itoa(n)
	return strings.TrimRight(name[:min(len(name), maxName-len(end))], "-") + end
}

// CheckForm is CheckName for names that the portal gives its own agents: these may be reserved words.
func CheckForm(name string) error {
	if len(name) < minName || len(name) > maxName {
		return fmt.Errorf("use %d to %d characters", minName, maxName)
	}
	if name[0] < 'a' || name[0] > 'z' {
		return fmt.Errorf("start with a letter from a to z (lower case)")
	}
	for i := range len(name) {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-') {
			return fmt.Errorf("use only a–z, 0–9 and -")
		}
	}
	return nil
}

// Handle is the address of an agent or person for people to read and type: name@portal, or only the name
// on its own portal. It is not an identity; that is the public key.
type Handle struct {
	Name   string
	Portal string // host, with the port if it is not the default; "" is this portal
}

// ParseHandle parses "name", "@name", "name@host" or "@name@host", lower-cases both parts, and writes a host in another
// script in the form of DNS. Portal
// becomes "" if it is own. ok is false for an empty or too long handle; the name is not checked
// otherwise.
func ParseHandle(s, own string) (Handle, bool) {
	s = strings.TrimPrefix(strings.TrimSpace(s), "@")
	name, portal, _ := strings.Cut(s, "@")
	portal = weborigin.ASCIIHost(portal)
	if strings.EqualFold(portal, own) {
		portal = ""
	}
	h := Handle{Name: strings.ToLower(name), Portal: strings.ToLower(portal)}
	return h, h.Name != "" && len(s) <= maxName+1+255
}

// String returns name or name@portal, which ParseHandle accepts.
func (h Handle) String() string {
	if h.Portal == "" {
		return h.Name
	}
	return h.Name + "@" + h.Portal
}
