package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

// AnonymousDomain is the namespace for anonymous publishers on a portal on loopback. The official
// registry has the same one for tests.
const AnonymousDomain = "anonymous.modelcontextprotocol.io"

// Namespace returns a host's namespace in the MCP registry: its labels in reverse order, without a
// port. example.com becomes com.example. The colons of an IPv6 address become hyphens.
func Namespace(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(strings.ReplaceAll(strings.Trim(strings.ToLower(host), "[]"), ":", "-"), "-.")
	labels := strings.Split(host, ".")
	slices.Reverse(labels)
	return strings.Join(labels, ".")
}

// Namespace returns the portal's own namespace, under which agents are listed that were registered
// here.
func (s *Service) Namespace() string { return Namespace(s.cfg.Portal) }

// grant is an actor's right to publish under a name. The zero value is no right.
type grant struct {
	site   string // site or account that the quota of new servers counts against
	domain string // proved domain; empty under the portal's own namespace
	own    bool   // true if the namespace is the portal's own
}

// mayRelease returns the right of an actor to publish under a name. It returns an Invalid,
// Unauthenticated or Forbidden fault when the actor has none; the Forbidden one lists the
// namespaces that the actor has.
func (s *Service) mayRelease(ctx context.Context, actor ident.Actor, name string) (grant, error) {
	space, short, _ := strings.Cut(name, "/")
	if space == "" || short == "" || strings.Contains(short, "/") || len(name) > maxReleaseName {
		return grant{}, fault.New(fault.Invalid,
			"The name of a server is a namespace and a name with one slash between, such as com.example/weather, of at most %d characters.", maxReleaseName)
	}
	own := s.Namespace()
	var spaces []string
	switch {
	case actor.Kind == ident.Publisher && actor.Name != "":
		at := Namespace(actor.Name)
		if space != own && (space == at || actor.Below && strings.HasPrefix(space, at+".")) {
			g := grant{site: siteOf(actor.Name), domain: actor.Name}
			if actor.Name == AnonymousDomain {
				g.domain = ""
			}
			return g, nil
		}
		if spaces = append(spaces, at+"/*"); actor.Below {
			spaces = append(spaces, at+".*")
		}
		if space == own {
			return grant{}, fault.New(fault.Forbidden,
				"%s/* belongs to this portal. Publish under it with an API token of your account, of the scope %s.",
				own, ident.AgentsWrite)
		}
	case actor.IsPerson():
		if err := hub.RequireWriter(actor); err != nil {
			return grant{}, err
		}
		if space == own {
			return grant{site: "account:" + actor.ID, own: true}, nil
		}
		domains, err := s.store.Domains(ctx, actor.ID)
		if err != nil {
			return grant{}, err
		}
		spaces = append(spaces, own+"/*")
		for _, d := range domains {
			if ProvesNamespace(d.Domain, s.cfg.Loopback) != nil {
				continue
			}
			if at := Namespace(d.Domain); at == space {
				return grant{site: "account:" + actor.ID, domain: d.Domain}, nil
			} else if len(spaces) < 10 {
				spaces = append(spaces, at+"/*")
			}
		}
	default:
		return grant{}, fault.New(fault.Unauthenticated,
			"Log in first: mcp-publisher login http or dns proves a domain, and an API token of an account with the scope %s may publish too.", ident.AgentsWrite)
	}
	return grant{}, fault.New(fault.Forbidden,
		"You do not have permission to publish this server. You have permission to publish: %s. Attempting to publish: %.200s", strings.Join(spaces, ", "), name)
}

// siteOf returns the key of the quota of a domain: its registrable domain, because names below one
// cost nothing.
func siteOf(domain string) string {
	if h, _, err := net.SplitHostPort(domain); err == nil {
		domain = h
	}
	if site, err := publicsuffix.EffectiveTLDPlusOne(domain); err == nil {
		domain = site
	}
	return "domain:" + domain
}

// agentNames returns names for the agent of a published server, best first: a readable one, and one
// with a hash that is hardly ever taken. Names that are not valid are left out.
func agentNames(name string) []string {
	space, short, _ := strings.Cut(name, "/")
	labels := strings.Split(space, ".")
	slices.Reverse(labels)
	sum := sha256.Sum256([]byte(name))
	full := plainName(short + "-" + strings.Join(labels, "-"))
	unique := plainName(short)
	unique = strings.Trim(unique[:min(len(unique), 29)], "-") + "-" + hex.EncodeToString(sum[:5])
	return slices.DeleteFunc([]string{full, unique}, func(n string) bool { return ident.CheckName(n) != nil })
}

// plainName turns a text into a valid agent name: a to z, digits and single hyphens, with a letter
// first. It may be too long.
func plainName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(s))
	for strings.Contains(s, "--") {
		s = strings.ReplaceAll(s, "--", "-")
	}
	s = strings.Trim(s, "-")
	if s == "" || s[0] < 'a' {
		s = "mcp-" + s
	}
	return strings.Trim(s, "-")
}
