package registry

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Patterns of versions that name more than one release, such as ranges and "latest"; packages must name
// exactly one.
var (
	comparedVersion = regexp.MustCompile(`^\s*(?:\^|~|>=|<=|>|<|=)\s*v?\d+(?:\.\d+){0,3}(?:-[0-9A-Za-z.-]+)?\s*$`)
	hyphenVersion   = regexp.MustCompile(`^\s*v?\d+(?:\.\d+){0,3}(?:-[0-9A-Za-z.-]+)?\s-\s*v?\d+(?:\.\d+){0,3}(?:-[0-9A-Za-z.-]+)?\s*$`)
	orVersion       = regexp.MustCompile(`^\s*(?:v?\d+(?:\.\d+){0,3}(?:-[0-9A-Za-z.-]+)?\s*)(?:\|\|\s*v?\d+(?:\.\d+){0,3}(?:-[0-9A-Za-z.-]+)?\s*)+$`)
	dottedVersion   = regexp.MustCompile(`^\s*(?:v?\d+|x|X|\*)(?:\.(?:\d+|x|X|\*)){1,2}(?:-[0-9A-Za-z.-]+)?\s*$`)

	hashPattern     = regexp.MustCompile(`^[a-f0-9]{64}$`)
	templatePattern = regexp.MustCompile(`\{([^}]+)\}`)
	portTemplate    = regexp.MustCompile(`:(\{[^}]+\})(/|$)`)
)

func (f *findings) checkVersion(path, v string) {
	v = strings.TrimSpace(v)
	switch {
	case v == "latest":
		f.addIssue("semantic", path, "reserved-version-string",
			"version string 'latest' is reserved and cannot be used")
	case len(v) > maxVersion:
	case comparedVersion.MatchString(v), hyphenVersion.MatchString(v), orVersion.MatchString(v),
		dottedVersion.MatchString(v) && strings.ContainsAny(v, "xX*"):
		f.addIssue("semantic", path, "version-looks-like-range", "version must be a specific version, not a range: %q",
			cutText(v, 100))
	}
}

func (f *findings) checkPack(path string, p serverPack) {
	f.requireSchema(p.RegistryType != "", path+".registryType", "registry-type-required",
		"registryType is required, such as npm, pypi, oci, nuget, cargo or mcpb")
	f.requireSchema(p.Identifier != "" && len(p.Identifier) <= maxURL, path+".identifier", "identifier-required",
		"identifier is required, of at most %d characters", maxURL)
	f.requireSemantic(!strings.Contains(p.Identifier, " "), path+".identifier", "package-name-has-spaces",
		"package name cannot contain spaces")
	f.requireSchema(len(p.Version) <= maxVersion, path+".version", "version-length",
		"version has at most %d characters", maxVersion)
	f.checkVersion(path+".version", p.Version)
	f.requireSchema(p.FileSHA256 == "" || hashPattern.MatchString(p.FileSHA256), path+".fileSha256", "file-sha256",
		"fileSha256 is 64 digits of lower-case hex")
	f.requireSchema(p.RegistryBaseURL == "" || plainURL(p.RegistryBaseURL) && webURL(p.RegistryBaseURL),
		path+".registryBaseUrl", "registry-base-url",
		"registryBaseUrl is an address such as https://registry.npmjs.org")
	var known []string
	for _, l := range []struct {
		name string
		list []argument
		env  bool
	}{{"runtimeArguments", p.RuntimeArguments, false}, {"packageArguments", p.PackageArguments, false},
		{"environmentVariables", p.EnvironmentVariables, true}} {
		f.checkCount(len(l.list), path+"."+l.name)
		for i, a := range l.list[:min(len(l.list), maxList)] {
			at := fmt.Sprintf("%s.%s[%d]", path, l.name, i)
			if a.Name != "" {
				known = append(known, a.Name)
			}
			if a.ValueHint != nil && *a.ValueHint != "" && !l.env {
				known = append(known, *a.ValueHint)
			}
			if l.env {
				f.checkVariable(at, a)
			} else {
				f.checkArgument(at, a)
			}
		}
	}
	t := p.Transport
	switch t.Type {
	case stdio:
		f.requireSemantic(t.URL == "", path+".transport.url", "stdio-transport-url-not-empty",
			"url must be empty for stdio transport type, got: %s", cutText(t.URL, 200))
	case streamable, sse:
		f.requireSemantic(t.URL != "", path+".transport.url", "streamable-transport-url-required",
			"url is required for %s transport type", t.Type)
		if t.URL != "" {
			f.checkTemplate(path+".transport.url", "invalid package transport URL", t.URL, known)
		}
	default:
		f.addIssue("semantic", path+".transport.type", "unsupported-transport-type", "unsupported transport type: %s",
			cutText(t.Type, 80))
	}
	f.checkHeaders(path+".transport", t)
}

func (f *findings) checkHeaders(path string, t transport) {
	f.checkCount(len(t.Headers), path+".headers")
	for i, h := range t.Headers[:min(len(t.Headers), maxList)] {
		f.checkVariable(fmt.Sprintf("%s.headers[%d]", path, i), h)
	}
	f.checkCount(len(t.Variables), path+".variables")
}

// checkVariable adds findings about one HTTP header or environment variable.
func (f *findings) checkVariable(path string, a argument) {
	f.requireSchema(a.Name != "", path+".name", "name-required", "name is required")
	f.requireSchema(a.Type == "" && a.ValueHint == nil && !a.IsRepeated, path, "unexpected-property",
		"headers and environment variables have no type, valueHint or isRepeated")
	f.checkFormat(path, a.Format)
}

func (f *findings) checkFormat(path, format string) {
	f.requireSchema(slices.Contains([]string{"", "string", "number", "boolean", "filepath"}, format), path+".format",
		"input-format", "format is string, number, boolean or filepath")
}

func (f *findings) checkArgument(path string, a argument) {
	value := ""
	if a.Value != nil {
		value = *a.Value
	}
	f.checkFormat(path, a.Format)
	switch a.Type {
	case "named":
		if a.Name == "" {
			f.addIssue("semantic", path+".name", "named-argument-name-required", "named argument name is required")
			return
		}
		f.requireSemantic(!strings.ContainsAny(a.Name, "<> $"), path+".name", "invalid-named-argument-name",
			"invalid named argument name format: %s", cutText(a.Name, 100))
		f.requireSemantic(!strings.HasPrefix(value, a.Name), path+".value", "argument-value-starts-with-name",
			"argument value cannot start with the argument name: %s", cutText(a.Name, 100))
		f.requireSemantic(!strings.HasPrefix(a.Default, a.Name), path+".default", "argument-default-starts-with-name",
			"argument default cannot start with the argument name: %s", cutText(a.Name, 100))
	case "positional":
		f.requireSemantic(a.Value != nil || a.ValueHint != nil, path, "positional-argument-value-required",
			"positional argument must provide a value or a valueHint")
	default:
		f.addIssue("semantic", path+".type", "invalid-argument-type", "argument type must be 'positional' or 'named'")
	}
}

// checkRemote adds findings about the address of a running server. The portal must be allowed to call the
// address; variables are replaced by samples first.
func (d *Handler) checkRemote(f *findings, path string, t transport) {
	switch t.Type {
	case streamable, sse:
	default:
		f.addIssue("semantic", path+".type", "unsupported-remote-transport-type",
			"unsupported transport type for remotes: %s (only streamable-http and sse are supported)",
			cutText(t.Type, 80))
		return
	}
	if t.URL == "" {
		f.addIssue("semantic", path+".url", "remote-transport-url-required", "url is required for %s transport type",
			t.Type)
		return
	}
	var known []string
	for name := range t.Variables {
		known = append(known, name)
	}
	slices.Sort(known)
	f.checkHeaders(path, t)
	if !f.checkTemplate(path+".url", "invalid remote URL", t.URL, known) {
		return
	}
	sample := fillTemplate(t.URL)
	if !d.Loopback && !strings.HasPrefix(sample, "https://") {
		f.addIssue("semantic", path+".url", "invalid-remote-url",
			"invalid remote URL: %s: only https addresses are taken", cutText(t.URL, 200))
	} else if err := d.Addresses.CheckURL(sample); err != nil {
		f.addIssue("semantic", path+".url", "invalid-remote-url", "invalid remote URL: %s: %s", cutText(t.URL, 200),
			err)
	}
}

// checkTemplate adds a finding unless address is a valid URL whose variables in braces are all known; it
// returns false then. wrong is the beginning of the message.
func (f *findings) checkTemplate(path, wrong, address string, known []string) bool {
	if len(address) > maxURL || !plainURL(fillTemplate(address)) || !webURL(fillTemplate(address)) {
		f.addIssue("semantic", path, "invalid-templated-url", "%s: %s", wrong, cutText(address, 200))
		return false
	}
	for _, name := range templateNames(address) {
		if !slices.Contains(known, name) {
			f.addIssue("semantic", path, "invalid-templated-url",
				"%s: template variables in URL %s reference undefined variables. Available variables: %v", wrong,
				cutText(address, 200), known)
			return false
		}
	}
	return true
}

func webURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil
}

// templateNames returns the variable names in braces in an address. A single brace yields the name "",
// which is never defined.
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

// fillTemplate replaces the variables of an address by sample values, so that the rest can be checked.
func fillTemplate(address string) string {
	address = strings.NewReplacer("{host}", "example.com", "{port}", "8080", "{path}", "api", "{protocol}", "https",
		"{scheme}", "https").Replace(address)
	address = portTemplate.ReplaceAllString(address, ":8080$2")
	return templatePattern.ReplaceAllString(address, "placeholder")
}
