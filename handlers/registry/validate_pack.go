package registry

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// What names more than one version.
var (
	comparedVersion = regexp.MustCompile(`^\s*(?:\^|~|>=|<=|>|<|=)\s*v?\d+(?:\.\d+){0,3}(?:-[0-9A-Za-z.-]+)?\s*$`)
	hyphenVersion   = regexp.MustCompile(`^\s*v?\d+(?:\.\d+){0,3}(?:-[0-9A-Za-z.-]+)?\s-\s*v?\d+(?:\.\d+){0,3}(?:-[0-9A-Za-z.-]+)?\s*$`)
	orVersion       = regexp.MustCompile(`^\s*(?:v?\d+(?:\.\d+){0,3}(?:-[0-9A-Za-z.-]+)?\s*)(?:\|\|\s*v?\d+(?:\.\d+){0,3}(?:-[0-9A-Za-z.-]+)?\s*)+$`)
	dottedVersion   = regexp.MustCompile(`^\s*(?:v?\d+|x|X|\*)(?:\.(?:\d+|x|X|\*)){1,2}(?:-[0-9A-Za-z.-]+)?\s*$`)

	hashPattern     = regexp.MustCompile(`^[a-f0-9]{64}$`)
	templatePattern = regexp.MustCompile(`\{([^}]+)\}`)
	portTemplate    = regexp.MustCompile(`:(\{[^}]+\})(/|$)`)
)

func (f *findings) version(path, v string) {
	v = strings.TrimSpace(v)
	switch {
	case v == "latest":
		f.add("semantic", path, "reserved-version-string", "version string 'latest' is reserved and cannot be used")
	case len(v) > maxVersion:
	case comparedVersion.MatchString(v), hyphenVersion.MatchString(v), orVersion.MatchString(v), dottedVersion.MatchString(v) && strings.ContainsAny(v, "xX*"):
		f.add("semantic", path, "version-looks-like-range", "version must be a specific version, not a range: %q", cut(v, 100))
	}
}

func (f *findings) pack(path string, p serverPack) {
	f.schema(p.RegistryType != "", path+".registryType", "registry-type-required", "registryType is required, such as npm, pypi, oci, nuget, cargo or mcpb")
	f.schema(p.Identifier != "" && len(p.Identifier) <= maxURL, path+".identifier", "identifier-required", "identifier is required, of at most %d characters", maxURL)
	f.semantic(!strings.Contains(p.Identifier, " "), path+".identifier", "package-name-has-spaces", "package name cannot contain spaces")
	f.schema(len(p.Version) <= maxVersion, path+".version", "version-length", "version has at most %d characters", maxVersion)
	f.version(path+".version", p.Version)
	f.schema(p.FileSHA256 == "" || hashPattern.MatchString(p.FileSHA256), path+".fileSha256", "file-sha256", "fileSha256 is 64 digits of lower-case hex")
	f.schema(p.RegistryBaseURL == "" || plainURL(p.RegistryBaseURL) && webURL(p.RegistryBaseURL), path+".registryBaseUrl", "registry-base-url", "registryBaseUrl is an address such as https://registry.npmjs.org")
	var known []string
	for _, l := range []struct {
		name string
		list []argument
		env  bool
	}{{"runtimeArguments", p.RuntimeArguments, false}, {"packageArguments", p.PackageArguments, false}, {"environmentVariables", p.EnvironmentVariables, true}} {
		f.most(len(l.list), path+"."+l.name)
		for i, a := range l.list[:min(len(l.list), maxList)] {
			at := fmt.Sprintf("%s.%s[%d]", path, l.name, i)
			if a.Name != "" {
				known = append(known, a.Name)
			}
			if a.ValueHint != nil && *a.ValueHint != "" && !l.env {
				known = append(known, *a.ValueHint)
			}
			if l.env {
				f.variable(at, a)
			} else {
				f.argument(at, a)
			}
		}
	}
	t := p.Transport
	switch t.Type {
	case stdio:
		f.semantic(t.URL == "", path+".transport.url", "stdio-transport-url-not-empty", "url must be empty for stdio transport type, got: %s", cut(t.URL, 200))
	case streamable, sse:
		f.semantic(t.URL != "", path+".transport.url", "streamable-transport-url-required", "url is required for %s transport type", t.Type)
		if t.URL != "" {
			f.template(path+".transport.url", "invalid package transport URL", t.URL, known)
		}
	default:
		f.add("semantic", path+".transport.type", "unsupported-transport-type", "unsupported transport type: %s", cut(t.Type, 80))
	}
	f.headers(path+".transport", t)
}

func (f *findings) headers(path string, t transport) {
	f.most(len(t.Headers), path+".headers")
	for i, h := range t.Headers[:min(len(t.Headers), maxList)] {
		f.variable(fmt.Sprintf("%s.headers[%d]", path, i), h)
	}
	f.most(len(t.Variables), path+".variables")
}

// variable checks a header or an environment variable.
func (f *findings) variable(path string, a argument) {
	f.schema(a.Name != "", path+".name", "name-required", "name is required")
	f.schema(a.Type == "" && a.ValueHint == nil && !a.IsRepeated, path, "unexpected-property", "headers and environment variables have no type, valueHint or isRepeated")
	f.format(path, a.Format)
}

func (f *findings) format(path, format string) {
	f.schema(slices.Contains([]string{"", "string", "number", "boolean", "filepath"}, format), path+".format", "input-format", "format is string, number, boolean or filepath")
}

func (f *findings) argument(path string, a argument) {
	value := ""
	if a.Value != nil {
		value = *a.Value
	}
	f.format(path, a.Format)
	switch a.Type {
	case "named":
		if a.Name == "" {
			f.add("semantic", path+".name", "named-argument-name-required", "named argument name is required")
			return
		}
		f.semantic(!strings.ContainsAny(a.Name, "<> $"), path+".name", "invalid-named-argument-name", "invalid named argument name format: %s", cut(a.Name, 100))
		f.semantic(!strings.HasPrefix(value, a.Name), path+".value", "argument-value-starts-with-name", "argument value cannot start with the argument name: %s", cut(a.Name, 100))
		f.semantic(!strings.HasPrefix(a.Default, a.Name), path+".default", "argument-default-starts-with-name", "argument default cannot start with the argument name: %s", cut(a.Name, 100))
	case "positional":
		f.semantic(a.Value != nil || a.ValueHint != nil, path, "positional-argument-value-required", "positional argument must provide a value or a valueHint")
	default:
		f.add("semantic", path+".type", "invalid-argument-type", "argument type must be 'positional' or 'named'")
	}
}

// remote checks an address at which the server runs already: one that this
// portal may call, unless something is to be filled in first.
func (d *Door) remote(f *findings, path string, t transport) {
	switch t.Type {
	case streamable, sse:
	default:
		f.add("semantic", path+".type", "unsupported-remote-transport-type", "unsupported transport type for remotes: %s (only streamable-http and sse are supported)", cut(t.Type, 80))
		return
	}
	if t.URL == "" {
		f.add("semantic", path+".url", "remote-transport-url-required", "url is required for %s transport type", t.Type)
		return
	}
	var known []string
	for name := range t.Variables {
		known = append(known, name)
	}
	slices.Sort(known)
	f.headers(path, t)
	if !f.template(path+".url", "invalid remote URL", t.URL, known) {
		return
	}
	sample := filled(t.URL)
	if !d.Loopback && !strings.HasPrefix(sample, "https://") {
		f.add("semantic", path+".url", "invalid-remote-url", "invalid remote URL: %s: only https addresses are taken", cut(t.URL, 200))
	} else if err := d.CheckURL(sample); err != nil {
		f.add("semantic", path+".url", "invalid-remote-url", "invalid remote URL: %s: %s", cut(t.URL, 200), err)
	}
}

// template checks an address in which {names} stand for what is filled in.
func (f *findings) template(path, wrong, address string, known []string) bool {
	if len(address) > maxURL || !plainURL(filled(address)) || !webURL(filled(address)) {
		f.add("semantic", path, "invalid-templated-url", "%s: %s", wrong, cut(address, 200))
		return false
	}
	for _, name := range templateNames(address) {
		if !slices.Contains(known, name) {
			f.add("semantic", path, "invalid-templated-url", "%s: template variables in URL %s reference undefined variables. Available variables: %v", wrong, cut(address, 200), known)
			return false
		}
	}
	return true
}

func webURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil
}

// templateNames are the names in braces of an address; a single brace counts
// as a name that nobody defined.
func templateNames(address string) []string {
	var out []string
	for _, m := range templatePattern.FindAllStringSubmatch(address, -1) {
		out = append(out, m[1])
	}
	if len(out) == 0 && strings.ContainsAny(address, "{}") {
		out = append(out, "")
	}
	return out
}

// filled puts samples for the names of an address.
func filled(address string) string {
	address = strings.NewReplacer("{host}", "example.com", "{port}", "8080", "{path}", "api", "{protocol}", "https", "{scheme}", "https").Replace(address)
	address = portTemplate.ReplaceAllString(address, ":8080$2")
	return templatePattern.ReplaceAllString(address, "placeholder")
}
