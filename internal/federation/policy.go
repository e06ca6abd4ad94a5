package federation

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"agentsite/internal/fault"
	"agentsite/internal/record"
)

// Policy holds the operator's decisions for all portals. Rules are the exceptions for single
// portals. Its JSON is the format of the API and the database.
type Policy struct {
	// Mode is the admission mode: one of the Modes.
	Mode string `json:"mode"`
	// Vouchers is how many pinned portals must vouch for one in ModeVouched.
	Vouchers int `json:"vouchers"`
	// Service is ServiceOn, ServiceReadOnly or ServiceOff.
	Service string `json:"service"`
	// AllowDomains and DenyDomains are of the origins of portals, each with
	// all domains below it. Where both fit, the longer one counts.
	AllowDomains []string `json:"allow_domains"`
	DenyDomains  []string `json:"deny_domains"`
	// DenyKeys are ids of operational keys that were stolen, or of whoever
	// must not speak again whatever portal lists the key.
	DenyKeys []record.KeyID `json:"deny_keys"`
	// AllowNets and DenyNets are networks that ask, or that origins lead to.
	// Where both fit, the smaller one counts.
	AllowNets []netip.Prefix `json:"allow_networks"`
	DenyNets  []netip.Prefix `json:"deny_networks"`
	// The quotas of one portal: agents and bytes held here, and the average rate of its requests
	// that are answered, per second.
	MaxAgents int   `json:"max_agents"`
	MaxBytes  int64 `json:"max_bytes"`
	PerSecond int   `json:"requests_per_second"`
	// CallsIn and CallsOut are whether agents may be used across the border.
	CallsIn  bool   `json:"calls_in"`
	CallsOut bool   `json:"calls_out"`
	Export   Export `json:"export"`
	Import   Import `json:"import"`
}

// The modes of a Policy.
const (
	ModeOpen      = "open"      // whoever is not denied
	ModeVouched   = "vouched"   // portals with enough vouching pinned portals
	ModeAllowlist = "allowlist" // portals with a rule or an allowed domain
	ModeClosed    = "closed"    // no portal, whatever the rules are
)

// Modes returns the modes, from open to closed.
func Modes() []string { return []string{ModeOpen, ModeVouched, ModeAllowlist, ModeClosed} }

// The services of this portal for others.
const (
	ServiceOn = "on"
	// ServiceReadOnly: the portal answers and shows its records, takes in nothing new and allows
	// no calls across the border.
	ServiceReadOnly = "read-only"
	// ServiceOff: it is being worked on, and neither answers nor asks.
	ServiceOff = "maintenance"
)

// Export selects the published agents of this portal. Owners choose by giving an agent a tag that
// is in one of the lists.
type Export struct {
	// The value is ExportAll, ExportTagged or ExportNone.
	What string `json:"what"`
	// Tags are those of which an agent needs one, for ExportTagged.
	Tags []string `json:"tags"`
	// Except are tags that keep an agent here, whatever else holds.
	Except []string `json:"except"`
	// Languages, when there are any, are those of which an agent that names
	// its languages needs one.
	Languages []string `json:"languages"`
}

// The values of an Export.
const (
	ExportAll    = "all"
	ExportTagged = "tagged"
	ExportNone   = "none"
)

// Import is which agents of other portals are shown. Empty lists leave nothing
// out.
type Import struct {
	// Protocols are those of endpoints, such as a2a.
	Protocols []string `json:"protocols"`
	// Tags are of capabilities and skills; Except lists the unwanted ones.
	Tags      []string `json:"tags"`
	Except    []string `json:"except"`
	Languages []string `json:"languages"`
}

// Defaults and the most that may be set.
const (
	defaultMaxAgents = 50_000
	defaultMaxBytes  = 128 << 20
	defaultPerSecond = 50
	maxAgentsOfOne   = 10_000_000
	maxBytesOfOne    = 64 << 30
	maxPerSecond     = 100_000
	maxListed        = 1_000 // entries of each list
	maxVouchers      = 100
)

// DefaultPolicy admits all portals and publishes all public agents.
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

// normalize returns the policy with sorted lower-case lists, or an error for an invalid policy.
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

// tidyList returns a list in lower case, in order, each once, never nil.
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

// ParseNets reads networks and single addresses as people write them.
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
			return nil, fault.New(fault.Invalid, "%.80q is not a network: write it like 192.0.2.0/24 or 2001:db8::/32",
				s)
		}
		out = append(out, n)
	}
	return out, nil
}

// matchDomain looks a host up in the lists: it returns the longest entry that equals the host or a
// parent domain, and whether the entry allows.
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

// deniesAddr returns the network that keeps an address out, if one does.
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

// exportsAgent is Filter.Exports.
func (p *Policy) exportsAgent(tags, languages []string) bool {
	if p.Export.What == ExportNone || haveCommon(p.Export.Except, tags) || p.Export.What == ExportTagged &&
		!haveCommon(p.Export.Tags, tags) {
		return false
	}
	return len(p.Export.Languages) == 0 || len(languages) == 0 || haveCommon(p.Export.Languages, languages)
}

// importsAgent is Filter.Imports.
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

// haveCommon reports whether has, in any case, holds one of list, which is in
// lower case.
func haveCommon(list, has []string) bool {
	return len(list) > 0 && slices.ContainsFunc(has,
		func(s string) bool { return slices.Contains(list, strings.ToLower(s)) })
}

// Filled returns the policy without lists that are nil, as JSON has it.
func (p Policy) Filled() Policy {
	if out, err := p.normalize(); err == nil {
		return out
	}
	return p
}
