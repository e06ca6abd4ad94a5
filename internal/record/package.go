package record

import "encoding/hex"

// KindPackage is Agent.Kind of a record that describes a package, see Agent.Package.
const KindPackage = "package"

// Limits of the record of a package. Texts are limited in bytes.
const (
	MaxVersion     = 64
	MaxLicence     = 64
	MaxEntry       = 64
	MaxGrants      = 16
	MaxGrant       = 128
	MaxGrantReason = 400
	MaxReadme      = 4000
	maxMemoryMiB   = 4096
	maxSeconds     = 3600
	maxModule      = 64 << 20
)

// PackageKilled is Package.State of a version that must not run any more.
const PackageKilled = "killed"

// Package is one version of a hosted program that a portal offers to others: its manifest, and its module by hash. It
// is a part of an Agent, so that it is in the log of its portal, covered by the head, and passed on by portals that do
// not know packages. Name, summary, languages and author of the package are those of the Agent.
type Package struct {
	Version string `json:"version"` // by Semantic Versioning, without a v
	Licence string `json:"licence"` // SPDX expression
	Entry   string `json:"entry"`   // exported function that is called for each message
	Module  Hash   `json:"module"`  // SHA-256 of the module
	Size    int64  `json:"size"`    // bytes of the module
	// Grants are the functions that the program needs, each with the reason for operators.
	Grants []PackageGrant `json:"grants,omitempty"`
	// MemoryMiB and Seconds bound the need of one run; 0 if not stated.
	MemoryMiB int64  `json:"memory_mib,omitempty"`
	Seconds   int64  `json:"seconds,omitempty"`
	Readme    string `json:"readme,omitempty"` // Markdown
	// State is empty or PackageKilled; Agent.StatusNote has the reason.
	State string `json:"state,omitempty"`
}

// PackageGrant is a function of the portal that a program needs: find, ask, memory, library, model, or host: with a
// host.
type PackageGrant struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// PackageRun says that an agent runs the module of a package.
type PackageRun struct {
	Name    string   `json:"name"` // of the package at its portal
	Version string   `json:"version"`
	Portal  PortalID `json:"portal"` // that publishes the package
	Module  Hash     `json:"module"`
}

func (p *Package) checkFields(f *fields) {
	f.Field(isTag(p.Version, MaxVersion), "package.version", "a version of at most %d", MaxVersion)
	f.Field(isFilledLine(p.Licence, MaxLicence), "package.licence", "one line of at most %d bytes", MaxLicence)
	f.Field(isFilledLine(p.Entry, MaxEntry), "package.entry", "one line of at most %d bytes", MaxEntry)
	f.Field(p.Module != Hash{}, "package.module", "the hash of the module")
	f.Field(p.Size >= 1 && p.Size <= maxModule, "package.size", "from 1 to %d", maxModule)
	f.Field(len(p.Grants) <= MaxGrants, "package.grants", "at most %d", MaxGrants)
	for _, g := range p.Grants {
		f.Field(isFilledLine(g.Name, MaxGrant) && isFilledLine(g.Why, MaxGrantReason), "package.grants",
			"a name and a reason of one line each")
	}
	f.Field(p.MemoryMiB >= 0 && p.MemoryMiB <= maxMemoryMiB, "package.memory_mib", "from 0 to %d", maxMemoryMiB)
	f.Field(p.Seconds >= 0 && p.Seconds <= maxSeconds, "package.seconds", "from 0 to %d", maxSeconds)
	f.Field(isText(p.Readme, MaxReadme), "package.readme", "at most %d bytes", MaxReadme)
	f.Field(p.State == "" || p.State == PackageKilled, "package.state", "leave it out, or say killed")
}

func (r *PackageRun) checkFields(f *fields) {
	f.Field(len(r.Name) >= 2 && len(r.Name) <= maxAgentName && plainName(r.Name), "runs.name",
		"use 2 to %d of a–z, 0–9 and -", maxAgentName)
	f.Field(isTag(r.Version, MaxVersion), "runs.version", "a version of at most %d", MaxVersion)
	_, ok := r.Portal.Digest()
	f.Field(ok, "runs.portal", "the id of a portal")
	f.Field(r.Module != Hash{}, "runs.module", "the hash of the module")
}

// Hex returns the hash in hexadecimal, as modules are named.
func (h Hash) Hex() string { return hex.EncodeToString(h[:]) }

// HashFromHex is the inverse of Hash.Hex.
func HashFromHex(s string) (h Hash, ok bool) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(h) {
		return Hash{}, false
	}
	return Hash(b), true
}
