package registry

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/weborigin"
)

// issue is one error or warning about a server.json. If the official registry has the same rule, message
// and reference are the same as there.
type issue struct {
	Type      string `json:"type"` // json, schema or semantic
	Path      string `json:"path"`
	Message   string `json:"message"`
	Severity  string `json:"severity"` // error or warning
	Reference string `json:"reference"`
}

// findings holds all errors of a server.json, at most maxIssues.
type findings struct {
	Valid  bool    `json:"valid"`
	Issues []issue `json:"issues"`
}

const maxIssues = 100

func (f *findings) addIssue(kind, path, reference, format string, args ...any) {
	f.Valid = false
	if len(f.Issues) < maxIssues {
		f.Issues = append(f.Issues, issue{kind, path, fmt.Sprintf(format, args...), "error", reference})
	}
}

func (f *findings) requireSchema(ok bool, path, reference, format string, args ...any) {
	if !ok {
		f.addIssue("schema", path, reference, format, args...)
	}
}

func (f *findings) requireSemantic(ok bool, path, reference, format string, args ...any) {
	if !ok {
		f.addIssue("semantic", path, reference, format, args...)
	}
}

// The accepted schema versions; the first one is the current one, which generated documents use.
var schemaVersions = []string{"2025-12-11", "2025-10-17", "2025-10-11", "2025-09-29", "2025-09-16", "2025-07-09"}

// Bounds of a server.json.
const (
	maxName        = 200
	maxDescription = 100 // runes
	maxTitle       = 100 // runes
	maxVersion     = 255
	maxList        = 100 // entries of one list of packages, remotes, icons, arguments, headers or variables
	maxIconURL     = 255
	maxURL         = 2048
	maxProvided    = 4 << 10
)

var (
	schemaPath    = regexp.MustCompile(`/schemas/([A-Za-z0-9_~.-]+)/server\.schema\.json`)
	spacePattern  = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9.-]*[a-zA-Z0-9]$`)
	namePattern   = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]*[a-zA-Z0-9]$`)
	sizePattern   = regexp.MustCompile(`^(\d+x\d+|any)$`)
	githubPattern = regexp.MustCompile(`^https?://(www\.)?github\.com/[\w.-]+/[\w.-]+/?$`)
	gitlabPattern = regexp.MustCompile(`^https?://(www\.)?gitlab\.com/[\w.-]+(/[\w.-]+)+/?$`)
	folderPattern = regexp.MustCompile(`^[a-zA-Z0-9\-_./]+$`)
)

// serveValidate answers with the findings about a server.json, and stores nothing. Requests are limited
// by address, because no credential is needed.
func (d *Handler) serveValidate(w http.ResponseWriter, r *http.Request) error {
	if wait, ok := d.checks.Allow(request.ClientAddr(r)); !ok {
		return fault.Limited(wait, "You checked often in a short time. Wait a moment.")
	}
	raw, err := readDocument(w, r)
	if err != nil {
		return err
	}
	var s serverJSON
	if err := decodeStrict(raw, &s); err != nil {
		return err
	}
	return respond.WriteJSON(w, http.StatusOK, d.checkServer(&s))
}

// checkServer returns all findings about a server.json, so that a publisher can correct them at once.
func (d *Handler) checkServer(s *serverJSON) findings {
	f := findings{Valid: true, Issues: []issue{}}
	f.checkSchema(s.Schema)
	f.checkName(s.Name)
	f.requireSchema(s.Description != "" && utf8.RuneCountInString(s.Description) <= maxDescription, "description",
		"description-length", "description is required, of at most %d characters", maxDescription)
	f.requireSchema(s.Version != "" && len(s.Version) <= maxVersion, "version", "version-length",
		"version is required, of at most %d characters", maxVersion)
	f.requireSemantic(!strings.ContainsFunc(s.Version,
		func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }), "version",
		"version-characters", "version must not hold control characters")
	f.checkVersion("version", s.Version)
	f.requireSchema(utf8.RuneCountInString(s.Title) <= maxTitle, "title", "title-length",
		"title has at most %d characters", maxTitle)
	f.requireSemantic(s.Title == "" || strings.TrimSpace(s.Title) != "", "title", "title-whitespace-only",
		"title cannot be only whitespace")
	f.requireSemantic(strings.TrimSpace(s.Description) != "" || s.Description == "", "description",
		"description-whitespace-only", "description cannot be only whitespace")
	if s.Repository != nil {
		f.checkRepository(*s.Repository)
	}
	s.WebsiteURL = weborigin.ReadName(s.WebsiteURL)
	if s.WebsiteURL != "" {
		f.checkWebsite(s.WebsiteURL)
	}
	f.checkCount(len(s.Icons), "icons")
	for i, c := range s.Icons[:min(len(s.Icons), maxList)] {
		f.checkIcon(fmt.Sprintf("icons[%d]", i), c)
	}
	f.checkCount(len(s.Packages), "packages")
	for i, p := range s.Packages[:min(len(s.Packages), maxList)] {
		f.checkPack(fmt.Sprintf("packages[%d]", i), p)
	}
	f.checkCount(len(s.Remotes), "remotes")
	for i, t := range s.Remotes[:min(len(s.Remotes), maxList)] {
		d.checkRemote(&f, fmt.Sprintf("remotes[%d]", i), t)
	}
	if s.Meta != nil {
		b, err := json.Marshal(s.Meta.Provided)
		f.requireSemantic(err == nil && len(b) <= maxProvided,
			"_meta.io.modelcontextprotocol.registry/publisher-provided", "publisher-provided-size",
			"_meta.io.modelcontextprotocol.registry/publisher-provided extension exceeds 4KB limit (%d bytes)", len(b))
	}
	return f
}

func (f *findings) checkCount(n int, path string) {
	f.requireSchema(n <= maxList, path, "list-length", "%d are too many; at most %d", n, maxList)
}

func (f *findings) checkSchema(address string) {
	if address == "" {
		f.addIssue("semantic", "schema", "schema-field-required", "$schema field is required")
		return
	}
	m := schemaPath.FindStringSubmatch(address)
	switch {
	case m == nil || len(address) > maxURL:
		f.addIssue("schema", "schema", "schema-version-extraction-error",
			"failed to extract schema version from URL: invalid schema URL format: %s", cutText(address, 200))
	case !slices.Contains(schemaVersions, m[1]):
		f.addIssue("schema", "schema", "schema-version-not-available", "schema version %s not available; use %s",
			cutText(m[1], 80), schemaVersions[0])
	case m[1] != schemaVersions[0]:
		f.Issues = append(f.Issues, issue{"semantic", "schema",
			fmt.Sprintf("schema version %s is not the current version (%s). Consider updating to the latest schema version", m[1], schemaVersions[0]), "warning", "schema-version-deprecated"})
	}
}

func (f *findings) checkName(name string) {
	const reference = "invalid-server-name"
	space, short, ok := strings.Cut(name, "/")
	switch {
	case name == "":
		f.addIssue("semantic", "name", reference, "server name is required and must be a string")
	case !ok || space == "" || short == "":
		f.addIssue("semantic", "name", reference,
			"server name must be in format 'dns-namespace/name' (e.g., 'com.example.api/server')")
	case strings.Contains(short, "/"):
		f.addIssue("semantic", "name", reference, "server name cannot contain multiple slashes")
	case !spacePattern.MatchString(space):
		f.addIssue("semantic", "name", reference,
			"server name format is invalid: namespace '%s' is invalid. Namespace must start and end with alphanumeric characters, and may contain dots and hyphens in the middle", cutText(space, 100))
	case !namePattern.MatchString(short):
		f.addIssue("semantic", "name", reference,
			"server name format is invalid: name '%s' is invalid. Name must start and end with alphanumeric characters, and may contain dots, underscores, and hyphens in the middle", cutText(short, 100))
	}
	f.requireSchema(len(name) <= maxName, "name", "name-length", "name has at most %d characters", maxName)
}

func (f *findings) checkRepository(r repository) {
	f.requireSemantic(r.URL != "", "repository.url", "repository-url-required",
		"repository url is required when repository is provided")
	f.requireSemantic(r.Source != "", "repository.source", "repository-source-required",
		"repository source is required when repository is provided")
	if r.URL != "" && r.Source != "" {
		ok := r.Source == "github" && githubPattern.MatchString(r.URL) ||
			r.Source == "gitlab" && gitlabPattern.MatchString(r.URL) && !strings.Contains(r.URL+"/", "/-/")
		f.requireSemantic(ok && len(r.URL) <= maxURL, "repository.url", "invalid-repository-url",
			"invalid repository URL: %s", cutText(r.URL, 200))
	}
	if r.Subfolder != "" {
		ok := folderPattern.MatchString(r.Subfolder) && len(r.Subfolder) <= maxURL
		for part := range strings.SplitSeq(r.Subfolder, "/") {
			ok = ok && part != "" && part != "." && part != ".."
		}
		f.requireSemantic(ok, "repository.subfolder", "invalid-subfolder-path", "invalid subfolder path: %s",
			cutText(r.Subfolder, 200))
	}
}

// checkWebsite adds a finding if the website is no http(s) address that is safe as a link.
func (f *findings) checkWebsite(address string) {
	address = weborigin.ReadName(address)
	u, err := url.Parse(address)
	switch {
	case err != nil || len(address) > maxURL:
		f.addIssue("semantic", "websiteUrl", "invalid-website-url",
			"invalid websiteUrl: give an address like https://example.com of at most %d characters", maxURL)
	case !u.IsAbs() || u.Host == "":
		f.addIssue("semantic", "websiteUrl", "website-url-must-be-absolute",
			"websiteUrl must be absolute (include scheme): %s", cutText(address, 200))
	case u.Scheme != "https":
		f.addIssue("semantic", "websiteUrl", "website-url-invalid-scheme", "websiteUrl must use https scheme: %s",
			cutText(address, 200))
	case u.User != nil || !plainURL(address):
		f.addIssue("semantic", "websiteUrl", "website-url-invalid-characters",
			"websiteUrl contains an invalid character or a user name; percent-encode it: %s", cutText(address, 200))
	}
}

// plainURL reports whether an address contains no characters that are special in HTML, shells or
// templates. Such characters must be percent-encoded.
func plainURL(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f ||
			strings.ContainsRune("\"'<>\\^`{|}", r)
	})
}

func (f *findings) checkIcon(path string, c icon) {
	u, err := url.Parse(c.Src)
	switch {
	case err != nil || len(c.Src) > maxIconURL || !plainURL(c.Src):
		f.addIssue("semantic", path+".src", "icon-src-invalid-url",
			"invalid icon src URL: give an address of at most %d characters", maxIconURL)
	case !u.IsAbs() || u.Host == "":
		f.addIssue("semantic", path+".src", "icon-src-not-absolute",
			"icon src must be an absolute URL (include scheme): %s", cutText(c.Src, 200))
	case u.Scheme != "https":
		f.addIssue("semantic", path+".src", "icon-src-invalid-scheme", "icon src must use https scheme (got %s): %s",
			u.Scheme, cutText(c.Src, 200))
	}
	f.requireSchema(slices.Contains([]string{"", "image/png", "image/jpeg", "image/jpg", "image/svg+xml", "image/webp"},
		c.MimeType), path+".mimeType", "icon-mime-type",
		"mimeType is none of image/png, image/jpeg, image/jpg, image/svg+xml, image/webp")
	f.requireSchema(slices.Contains([]string{"", "light", "dark"}, c.Theme), path+".theme", "icon-theme",
		"theme is light or dark")
	f.checkCount(len(c.Sizes), path+".sizes")
	for _, s := range c.Sizes[:min(len(c.Sizes), maxList)] {
		f.requireSchema(sizePattern.MatchString(s), path+".sizes", "icon-sizes", "a size is written like 48x48, or any")
	}
}
