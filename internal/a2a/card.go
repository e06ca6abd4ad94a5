package a2a

import (
	"cmp"
	"encoding/json"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"agentsite/internal/agentname"
	"agentsite/internal/hub"
	"agentsite/internal/lenientjson"
	"agentsite/internal/team/aware"
	"agentsite/internal/weborigin"
)

// Bounds of the texts and lists taken from a remote agent's card.
const (
	maxTitle       = 100
	maxDescription = 4000
	maxSkills      = 32
	maxSkillText   = 1000
	maxTags        = 10
	maxTag         = 32
	maxExamples    = 5
	maxExample     = 300
	maxModes       = 16
	maxInterfaces  = 16
)

// Interface is one address of an agent with the binding and version to use there. Tenant is "" if none
// is needed.
type Interface struct {
	URL     string
	Binding string
	Version string
	Tenant  string
}

// Card is the part of an agent card that is needed to call the agent.
type Card struct {
	// URL is the address that the card was read from.
	URL string
	// Interface is the best of the card's interfaces that this portal implements: 1.0 before 0.3,
	// JSON-RPC before HTTP+JSON.
	Interface Interface
	// Addresses are the addresses of all its interfaces, at most 33.
	Addresses []string
	Streaming bool
	// NeedsAuth is true when the card names security requirements. AuthHeader is the header of an API
	// key when that is the only scheme.
	NeedsAuth  bool
	AuthHeader string
	Version    string // version of the agent, in the agent's own scheme
	Provider   string
	// Raw is the card as received, at most 256 KiB, for checking signatures.
	Raw json.RawMessage
}

// wireCard holds the fields of both versions' cards. Its field types tolerate malformed values that do
// no harm.
type wireCard struct {
	Name         str               `json:"name"`
	Description  str               `json:"description"`
	Version      str               `json:"version"`
	Skills       []json.RawMessage `json:"skills"`
	InputModes   strs              `json:"defaultInputModes"`
	OutputModes  strs              `json:"defaultOutputModes"`
	Provider     provider          `json:"provider"`
	Capabilities struct {
		Streaming  flag              `json:"streaming"`
		Extensions []json.RawMessage `json:"extensions"`
	} `json:"capabilities"`
	Schemes json.RawMessage `json:"securitySchemes"`

	Interfaces   []json.RawMessage `json:"supportedInterfaces"`
	Requirements []json.RawMessage `json:"securityRequirements"`

	// Fields of A2A 0.3.
	URL                str               `json:"url"`
	PreferredTransport str               `json:"preferredTransport"`
	ProtocolVersion    str               `json:"protocolVersion"`
	Additional         []json.RawMessage `json:"additionalInterfaces"`
	Security           []json.RawMessage `json:"security"`
}

// provider is an object, or the name of the organization alone.
type provider struct {
	Organization str `json:"organization"`
	Name         str `json:"name"`
}

// SetText implements lenientjson.TextSetter.
func (p *provider) SetText(s string) { p.Organization = str(s) }

// parseCard reads a card that was fetched from address. ok is false if b is not a card at all. If the
// card cannot be used, err states the reason in words for users.
func parseCard(b []byte, address string) (c Card, d hub.Described, ok bool, err error) {
	var w wireCard
	b = lenientjson.TrimMark(b)
	if !isObject(b) || lenientjson.Decode(b, &w) != nil {
		return c, d, false, nil
	}
	if w.Name == "" || len(w.Interfaces) == 0 && w.URL == "" && len(w.Skills) == 0 {
		return c, d, false, nil
	}
	c = Card{
		URL: address, Raw: b, Streaming: bool(w.Capabilities.Streaming),
		Version: Line(string(w.Version), 40), Provider: Line(string(cmp.Or(w.Provider.Organization, w.Provider.Name)), maxTitle),
		NeedsAuth: len(w.Requirements)+len(w.Security) > 0,
	}
	c.AuthHeader = keyHeader(w.Schemes)
	for _, i := range listInterfaces(w) {
		if u, problem := sameAgent(i.URL, address); problem == "" {
			c.Addresses = append(c.Addresses, u)
		}
	}
	if c.Interface, err = chooseInterface(w, address); err != nil {
		return c, d, true, err
	}
	d = hub.Described{
		Title:       Line(string(w.Name), maxTitle),
		Description: Text(string(w.Description), maxDescription),
		Kind:        hub.A2A,
		Endpoint:    c.Interface.URL,
		InputModes:  readInputModes(w),
		OutputModes: filterModes(w.OutputModes),
		Skills:      readSkills(w.Skills),
	}
	d.Name = agentname.Propose(d.Title, address)
	if d.Title == "" {
		d.Title = d.Name
	}
	d.Config, err = json.Marshal(hub.A2AConfig{
		CardURL: address, Binding: c.Interface.Binding, Version: c.Interface.Version,
		Tenant: c.Interface.Tenant, Streaming: c.Streaming, AuthHeader: c.AuthHeader,
		TakesTools: declaresExtension(w.Capabilities.Extensions, ExtTools),
	})
	return c, d, true, err
}

// readInputModes returns the input modes of a card. An agent that declares the extension for teams takes its documents.
func readInputModes(w wireCard) []string {
	modes := filterModes(w.InputModes)
	if !declaresExtension(w.Capabilities.Extensions, aware.Extension) || aware.TakesDocuments(modes) {
		return modes
	}
	if len(modes) == 0 {
		modes = []string{"text/plain"}
	}
	return append(modes[:min(len(modes), maxModes-1)], aware.MediaType)
}

// declaresExtension reports whether a list of extensions of a card has one with that URI. Entries of another form are
// ignored.
func declaresExtension(list []json.RawMessage, uri string) bool {
	return slices.ContainsFunc(list[:min(len(list), maxListed)], func(b json.RawMessage) bool {
		var e struct {
			URI str `json:"uri"`
		}
		return json.Unmarshal(b, &e) == nil && string(e.URI) == uri
	})
}

// chooseInterface returns the best interface that this portal implements and may call. Its error states
// why the last unusable one was rejected.
func chooseInterface(w wireCard, address string) (Interface, error) {
	best, rank := Interface{}, len(ranking)
	why := "its card names no interface"
	for _, i := range listInterfaces(w) {
		r, speaks := ranking[i.Version+" "+i.Binding]
		if !speaks {
			why = "it speaks only " + Line(i.Binding+" "+i.Version, 60) + ", which this portal does not"
			continue
		}
		u, problem := sameAgent(i.URL, address)
		if problem != "" {
			why = problem
			continue
		}
		if r < rank {
			i.URL = u
			best, rank = i, r
		}
	}
	if best.URL == "" {
		return best, shapeError(0, "the agent cannot be called: %s", why)
	}
	return best, nil
}

var ranking = map[string]int{
	Version10 + " " + BindingRPC: 0, Version10 + " " + BindingREST: 1,
	Version03 + " " + BindingRPC: 2, Version03 + " " + BindingREST: 3,
}

// listInterfaces lists the interfaces of the card in both formats, those of 1.0 first.
func listInterfaces(w wireCard) []Interface {
	var out []Interface
	for _, b := range w.Interfaces[:min(len(w.Interfaces), maxInterfaces)] {
		var i struct {
			URL     str `json:"url"`
			Binding str `json:"protocolBinding"`
			Version str `json:"protocolVersion"`
			Tenant  str `json:"tenant"`
		}
		if json.Unmarshal(b, &i) == nil && len(i.Tenant) <= maxID {
			out = append(out, Interface{string(i.URL), parseBinding(string(i.Binding)),
				parseVersion(string(i.Version), Version10), string(i.Tenant)})
		}
	}
	v := parseVersion(string(w.ProtocolVersion), Version03)
	if w.URL != "" {
		t := string(w.PreferredTransport)
		if t == "" {
			t = BindingRPC
		}
		out = append(out, Interface{URL: string(w.URL), Binding: parseBinding(t), Version: v})
	}
	for _, b := range w.Additional[:min(len(w.Additional), maxInterfaces)] {
		var i struct {
			URL       str `json:"url"`
			Transport str `json:"transport"`
		}
		if json.Unmarshal(b, &i) == nil {
			out = append(out, Interface{URL: string(i.URL), Binding: parseBinding(string(i.Transport)), Version: v})
		}
	}
	return out
}

func parseBinding(s string) string {
	switch u := strings.ToUpper(s); u {
	case "JSONRPC", "JSON-RPC", "JSON_RPC":
		return BindingRPC
	case "HTTP+JSON", "HTTP_JSON", "REST":
		return BindingREST
	}
	return s
}

// parseVersion maps versions such as "1.0.2" to Version10, and "0.2" and "0.3" to Version03. Other
// versions are returned unchanged. An empty version means def.
func parseVersion(s, def string) string {
	s = strings.TrimPrefix(s, "v")
	switch {
	case s == "":
		return def
	case s == "1" || strings.HasPrefix(s, "1."):
		return Version10
	case strings.HasPrefix(s, "0.2") || strings.HasPrefix(s, "0.3"):
		return Version03
	}
	return s
}

// sameAgent checks an interface's URL against the card's URL, because a card may only describe its own
// host. Another host is accepted only when both are https, so that the card cannot have been changed on
// the way. A card that names itself by a loopback name ("localhost", "0.0.0.0") means the host that it
// was read from, if that is loopback too. It returns the URL to use, or the problem.
func sameAgent(target, card string) (string, string) {
	t, err := resolveAddress(strings.TrimSpace(target), card)
	if err != nil || len(target) > 2048 || t.Host == "" || t.User != nil || t.Scheme != "http" && t.Scheme != "https" {
		return "", "its card names an address that is not http or https"
	}
	c, err := url.Parse(card)
	if err != nil {
		return "", "the card's own address cannot be read"
	}
	t.Fragment = ""
	switch {
	case c.Scheme == "https" && t.Scheme == "http":
		return "", "its card is on https but names an unencrypted address"
	case strings.EqualFold(t.Hostname(), c.Hostname()):
		return t.String(), ""
	case loopbackName(t.Hostname()) && loopbackName(c.Hostname()):
		host := c.Hostname()
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		if p := t.Port(); p != "" {
			host = net.JoinHostPort(c.Hostname(), p)
		}
		t.Host = host
		return t.String(), ""
	case c.Scheme == "https" && t.Scheme == "https":
		return t.String(), ""
	}
	return "", "its card names an address on another host, " + Line(t.Host, 100)
}

// resolveAddress parses an address in a card: absolute, relative to the card, or a host without a scheme,
// which has that of the card.
func resolveAddress(target, card string) (*url.URL, error) {
	base, err := url.Parse(card)
	if err != nil || target == "" || strings.Contains(target, "://") {
		return url.Parse(target)
	}
	if strings.HasPrefix(target, "/") { // also //host/path
		return base.Parse(target)
	}
	first, _, _ := strings.Cut(target, "/")
	if at, err := url.Parse(base.Scheme + "://" + first); err == nil && isHost(at, base) {
		return url.Parse(base.Scheme + "://" + target)
	}
	return base.Parse(target)
}

// isHost reports whether the first part of an address without a scheme is a host: it has a port, or is the
// card's host, this machine, an IP address, or a name with a top-level domain.
func isHost(at, card *url.URL) bool {
	h := at.Hostname()
	if _, err := netip.ParseAddr(h); err == nil || at.Port() != "" || loopbackName(h) ||
		strings.EqualFold(h, card.Hostname()) {
		return true
	}
	i := strings.LastIndexByte(h, '.')
	if i <= 0 || h[0] == '.' {
		return false
	}
	switch strings.ToLower(h[i+1:]) {
	case "json", "php", "aspx", "ashx", "asp", "jsp", "do", "cgi", "py", "html", "htm", "js", "rb", "pl":
		return false
	}
	return true
}

func loopbackName(h string) bool {
	a, err := netip.ParseAddr(h)
	return weborigin.IsLoopback(h) || err == nil && a.IsUnspecified()
}

// keyHeader returns the header for an API key, or "" if the card offers a bearer scheme or no key in a
// header. b is the card's securitySchemes.
func keyHeader(b json.RawMessage) string {
	var schemes map[string]json.RawMessage
	if json.Unmarshal(b, &schemes) != nil {
		return ""
	}
	header := ""
	for _, raw := range schemes {
		type key struct {
			Location str `json:"location"`
			In       str `json:"in"`
			Name     str `json:"name"`
		}
		var s struct {
			APIKey *key            `json:"apiKeySecurityScheme"`
			HTTP   json.RawMessage `json:"httpAuthSecurityScheme"`
			OAuth  json.RawMessage `json:"oauth2SecurityScheme"`
			OpenID json.RawMessage `json:"openIdConnectSecurityScheme"`
			Type   str             `json:"type"`
			key
		}
		if json.Unmarshal(raw, &s) != nil {
			continue
		}
		switch {
		case s.Type == "http", s.Type == "oauth2", s.Type == "openIdConnect",
			isObject(s.HTTP), isObject(s.OAuth), isObject(s.OpenID):
			return ""
		case s.Type == "apiKey":
			s.APIKey = &s.key
		}
		k := s.APIKey
		if k == nil || k.Location+k.In != "header" || !usableHeader(string(k.Name)) {
			continue
		}
		// Of several keys take the first by name, because the order of a map varies.
		if header == "" || string(k.Name) < header {
			header = string(k.Name)
		}
	}
	if strings.EqualFold(header, "Authorization") {
		return ""
	}
	return header
}

func readSkills(list []json.RawMessage) []hub.Skill {
	var out []hub.Skill
	for _, b := range list {
		var w struct {
			ID          str  `json:"id"`
			Name        str  `json:"name"`
			Description str  `json:"description"`
			Tags        strs `json:"tags"`
			Examples    strs `json:"examples"`
		}
		if len(out) == maxSkills {
			break
		}
		if !isObject(b) || json.Unmarshal(b, &w) != nil {
			continue
		}
		s := hub.Skill{
			ID: Line(string(w.ID), 64), Name: Line(string(w.Name), maxTitle),
			Description: Text(string(w.Description), maxSkillText),
			Tags:        cleanLines(w.Tags, maxTags, maxTag), Examples: cleanLines(w.Examples, maxExamples, maxExample),
		}
		if s.ID == "" {
			s.ID = agentname.Slug(s.Name)
		}
		if s.Name == "" {
			s.Name = s.ID
		}
		if s.ID != "" {
			out = append(out, s)
		}
	}
	return out
}

func cleanLines(in []string, n, max int) []string {
	out := []string{}
	seen := make(map[string]bool)
	for _, s := range in {
		if s = Line(s, max); s != "" && !seen[s] && len(out) < n {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// filterModes returns the strings that have the form of a media type.
func filterModes(in []string) []string {
	var out []string
	for _, s := range cleanLines(in, maxModes, 100) {
		if s == "text" {
			s = "text/plain"
		}
		if strings.Count(s, "/") == 1 && !strings.ContainsAny(s, " <>\"'") {
			out = append(out, s)
		}
	}
	return out
}

// strs is a list of strings from a foreign JSON text. Elements of other types are dropped; a value that
// is not an array gives an empty list.
type strs []string

// UnmarshalJSON never fails, so that one malformed field does not make a whole card unusable.
func (s *strs) UnmarshalJSON(b []byte) error {
	var list []json.RawMessage
	if err := lenientjson.Decode(b, &list); err != nil {
		return err
	}
	for _, v := range list {
		if t := lenientjson.TextOf(v); t != "" && v[0] != '[' {
			*s = append(*s, t)
		}
	}
	return nil
}
