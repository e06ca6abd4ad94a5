package federation

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"agentsite/internal/fault"
	"agentsite/internal/record"
	"agentsite/internal/weborigin"
)

// Policy holds the operator's decisions for all portals; a Rule is the exception for one. Its JSON form
// is used by the API and the database.
type Policy struct {
	// Mode is the admission mode: one of Modes.
	Mode string `json:"mode"`
	// Vouchers is how many pinned portals must vouch for a portal in ModeVouched.
	Vouchers int `json:"vouchers"`
	// Service is ServiceOn, ServiceReadOnly or ServiceOff.
	Service string `json:"service"`
	// AllowDomains and DenyDomains are domains of portal origins, including all subdomains. If both
	// match, the longer entry counts.
	AllowDomains []string `json:"allow_domains"`
	DenyDomains  []string `json:"deny_domains"`
	// DenyKeys are ids of operational keys that are refused whichever portal lists them, for example stolen keys.
	DenyKeys []record.KeyID `json:"deny_keys"`
	// AllowNets and DenyNets are networks of requesters and of targets of origins. If both match, the smaller counts.
	AllowNets []netip.Prefix `json:"allow_networks"`
	DenyNets  []netip.Prefix `json:"deny_networks"`
	// The quotas of one portal: its agents and bytes stored here, and its answered requests in a second, on average.
	MaxAgents int   `json:"max_agents"`
	MaxBytes  int64 `json:"max_bytes"`
	PerSecond int   `json:"requests_per_second"`
	// CallsIn and CallsOut allow calls of local agents by other portals, and calls of agents on other
	// portals from here.
	CallsIn  bool   `json:"calls_in"`
	CallsOut bool   `json:"calls_out"`
	Export   Export `json:"export"`
	Import   Import `json:"import"`
}

// The values of Policy.Mode.
const (
	ModeOpen      = "open"      // every portal that is not denied
	ModeVouched   = "vouched"   // portals for which enough pinned portals vouch
	ModeAllowlist = "allowlist" // portals with a rule or an allowed domain
	ModeClosed    = "closed"    // no portal, even with an allow rule
)

// Modes returns the admission modes, from open to closed.
func Modes() []string { return []string{ModeOpen, ModeVouched, ModeAllowlist, ModeClosed} }

// The values of Policy.Service: what this portal does for others.
const (
	ServiceOn = "on"
	// ServiceReadOnly: the portal answers requests for records, but takes in no new ones and allows no
	// calls in either direction.
	ServiceReadOnly = "read-only"
	// ServiceOff: maintenance; the portal neither answers nor sends requests.
	ServiceOff = "maintenance"
)

// Export selects which agents of this portal are published to others. Owners take part by the tags of their agents.
type Export struct {
	// What is ExportAll, ExportTagged or ExportNone.
	What string `json:"what"`
	// Tags: with ExportTagged, an agent needs one of them.
	Tags []string `json:"tags"`
	// Except: an agent with one of these tags is never published.
	Except []string `json:"except"`
	// Languages: an agent that names its languages needs one of these; empty for no condition.
	Languages []string `json:"languages"`
}

// The values of Export.What: all public agents, those with one of the tags, or none.
const (
	ExportAll    = "all"
	ExportTagged = "tagged"
	ExportNone   = "none"
)

// Import selects which agents of other portals are shown here. An empty list is no condition.
type Import struct {
	// Protocols are protocols of endpoints, such as a2a; an agent needs one of them.
	Protocols []string `json:"protocols"`
	// Tags are compared with capabilities and tags of skills: an agent needs one of Tags and none of Except.
	Tags      []string `json:"tags"`
	Except    []string `json:"except"`
	Languages []string `json:"languages"`
}

// The defaults of the quotas and the greatest values that can be set.
const (
	defaultMaxAgents = 50_000
	defaultMaxBytes  = 128 << 20
	defaultPerSecond = 50
	maxAgentsOfOne   = 10_000_000
	maxBytesOfOne    = 64 << 30
	maxPerSecond     = 100_000
	maxListed        = 1_000 // entries in each list of a policy
	maxVouchers      = 100
)

// DefaultPolicy returns the policy of a new portal: all portals are admitted, and all public agents are published.
func DefaultPolicy() Policy {
	return Policy{Mode: ModeOpen, Vouchers: 2, Service: ServiceOn, MaxAgents: defaultMaxAgents,
		MaxBytes: defaultMaxBytes, PerSecond: defaultPerSecond,
		CallsIn: true, CallsOut: true, Export: Export{What: ExportAll, Except: []string{"local-only"}}}
}

var (
	domainForm = regexp.MustCompile(`^([a-z0-9_]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9_]([a-z0-9-]{0,61}[a-z0-9])?$`)
	keyForm    = regexp.MustCompile(`^[a-z2-7]{16}$`)
	tagForm    = regexp.MustCompile(`^[^\s,]{1,64}$`)
)

// normalize returns the policy with sorted, lower-case lists without duplicates; an Invalid fault for an
// invalid policy.
func (p Policy) normalize() (Policy, error) {
	var c fault.Check
	c.Field(slices.Contains(Modes(), p.Mode), "mode", "use open, vouched, allowlist or closed")
	c.Field(p.Vouchers >= 1 && p.Vouchers <= maxVouchers, "vouchers", "use 1 to %d", maxVouchers)
	c.Field(p.Service == ServiceOn || p.Service == ServiceReadOnly || p.Service == ServiceOff, "service",
		"use on, read-only or maintenance")
	c.Field(p.MaxAgents >= 1 && p.MaxAgents <= maxAgentsOfOne, "max_agents", "use 1 to %d", maxAgentsOfOne)
	c.Field(p.MaxBytes >= 1<<20 && p.MaxBytes <= maxBytesOfOne, "max_bytes", "use 1 MiB to 64 GiB")
	c.Field(p.PerSecond >= 1 && p.PerSecond <= maxPerSecond, "requests_per_second", "use 1 to %d", maxPerSecond)
	c.Field(p.Export.What == ExportAll || p.Export.What == ExportTagged || p.Export.What == ExportNone, "export",
		"use all, tagged or none")
	c.Field(p.Export.What != ExportTagged || len(p.Export.Tags) > 0, "export_tags", "name at least one tag")
	words := func(field string, list *[]string, form *regexp.Regexp, what string) {
		*list = tidyList(*list)
		c.Field(len(*list) <= maxListed, field, "at most %d", maxListed)
		for _, s := range *list {
			c.Field(form.MatchString(s) && len(s) <= 253, field, "%.80q is not %s", s, what)
		}
	}
	p.AllowDomains, p.DenyDomains = weborigin.ReadHosts(p.AllowDomains), weborigin.ReadHosts(p.DenyDomains)
	words("allow_domains", &p.AllowDomains, domainForm, "a domain")
	words("deny_domains", &p.DenyDomains, domainForm, "a domain")
	for _, s := range p.AllowDomains {
		c.Field(!slices.Contains(p.DenyDomains, s), "deny_domains", "%s is allowed too", s)
	}
	words("export_tags", &p.Export.Tags, tagForm, "a tag")
	words("export_except", &p.Export.Except, tagForm, "a tag")
	words("export_languages", &p.Export.Languages, tagForm, "a language")
	words("import_protocols", &p.Import.Protocols, tagForm, "a protocol")
	words("import_tags", &p.Import.Tags, tagForm, "a tag")
	words("import_except", &p.Import.Except, tagForm, "a tag")
	words("import_languages", &p.Import.Languages, tagForm, "a language")
	keys := make([]string, len(p.DenyKeys))
	for i, k := range p.DenyKeys {
		keys[i] = string(k)
	}
	words("deny_keys", &keys, keyForm, "the id of a key, 16 characters")
	p.DenyKeys = make([]record.KeyID, len(keys))
	for i, k := range keys {
		p.DenyKeys[i] = record.KeyID(k)
	}
	nets := func(field string, list *[]netip.Prefix) {
		c.Field(len(*list) <= maxListed, field, "at most %d", maxListed)
		out := make([]netip.Prefix, 0, len(*list))
		for _, n := range *list {
			c.Field(n.IsValid(), field, "%s is not a network", n)
			out = append(out, n.Masked())
		}
		slices.SortStableFunc(out, func(a, b netip.Prefix) int { return strings.Compare(a.String(), b.String()) })
		*list = slices.Compact(out)
	}
	nets("allow_networks", &p.AllowNets)
	nets("deny_networks", &p.DenyNets)
	return p, c.Err()
}

// tidyList returns the list in lower case, sorted, without duplicates, never nil.
func tidyList(list []string) []string {
	out := make([]string, 0, len(list))
	for _, s := range list {
		if s = strings.ToLower(strings.Trim(s, " \t\r\n.")); s != "" {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ParseNets parses networks and single addresses in text form; an Invalid fault names the first invalid one.
func ParseNets(list []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, s := range list {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		n, err := netip.ParsePrefix(s)
		if a, aerr := netip.ParseAddr(s); err != nil && aerr == nil {
			n, err = a.Prefix(a.BitLen())
		}
		if err != nil {
			return nil, fault.New(fault.Invalid, "%.80q is not a network: write it like 192.0.2.0/24 or 2001:db8::/32", s)
		}
		out = append(out, n)
	}
	return out, nil
}

// matchDomain returns the longest entry of the domain lists that equals the host or a parent domain, ""
// if none does, and whether it is in AllowDomains.
func (p *Policy) matchDomain(host string) (entry string, allows bool) {
	for d := host; d != ""; {
		if slices.Contains(p.DenyDomains, d) {
			return d, false
		}
		if slices.Contains(p.AllowDomains, d) {
			return d, true
		}
		_, d, _ = strings.Cut(d, ".")
	}
	return "", false
}

// deniesAddr returns the network of DenyNets that denies an address; false if the address is allowed.
func (p *Policy) deniesAddr(a netip.Addr) (netip.Prefix, bool) {
	a = a.Unmap().WithZone("")
	deny, allow := smallestPrefix(p.DenyNets, a), smallestPrefix(p.AllowNets, a)
	return deny, deny.IsValid() && (!allow.IsValid() || allow.Bits() < deny.Bits())
}

func smallestPrefix(list []netip.Prefix, a netip.Addr) (found netip.Prefix) {
	for _, n := range list {
		if n.Contains(a) && (!found.IsValid() || n.Bits() > found.Bits()) {
			found = n
		}
	}
	return found
}

// exportsAgent implements Filter.Exports for this policy.
func (p *Policy) exportsAgent(tags, languages []string) bool {
	if p.Export.What == ExportNone || haveCommon(p.Export.Except, tags) || p.Export.What == ExportTagged &&
		!haveCommon(p.Export.Tags, tags) {
		return false
	}
	return len(p.Export.Languages) == 0 || len(languages) == 0 || haveCommon(p.Export.Languages, languages)
}

// importsAgent implements Filter.Imports for this policy.
func (p *Policy) importsAgent(a *record.Agent) bool {
	in := &p.Import
	if len(in.Protocols)+len(in.Tags)+len(in.Except)+len(in.Languages) == 0 {
		return true
	}
	tags := slices.Clone(a.Caps)
	for _, s := range a.Skills {
		tags = append(tags, s.Tags...)
	}
	protocols := make([]string, len(a.Endpoints))
	for i, e := range a.Endpoints {
		protocols[i] = e.Protocol
	}
	return !haveCommon(in.Except, tags) && (len(in.Tags) == 0 || haveCommon(in.Tags, tags)) &&
		(len(in.Protocols) == 0 || haveCommon(in.Protocols, protocols)) &&
		(len(in.Languages) == 0 || len(a.Languages) == 0 || haveCommon(in.Languages, a.Languages))
}

// haveCommon reports whether has and list have an entry in common; list is in lower case, the case of
// has does not matter.
func haveCommon(list, has []string) bool {
	return len(list) > 0 && slices.ContainsFunc(has,
		func(s string) bool { return slices.Contains(list, strings.ToLower(s)) })
}

// Filled returns the policy with empty instead of nil lists, so that JSON has [] instead of null.
func (p Policy) Filled() Policy {
	if out, err := p.normalize(); err == nil {
		return out
	}
	return p
}
