package endpoint

import "slices"

// Versions of MCP by their date; Modern is the first without a handshake.
const (
	Modern = "2026-07-28"

	v2025Nov = "2025-11-25"
	v2025Jun = "2025-06-18"
	v2025Mar = "2025-03-26"
	v2024Nov = "2024-11-05"
)

// versions are the supported versions of MCP, the newest first. All but the first start with a handshake.
var versions = []string{Modern, v2025Nov, v2025Jun, v2025Mar, v2024Nov}

// Versions returns the supported versions of MCP, the newest first. The caller may change the list.
func Versions() []string { return slices.Clone(versions) }

// handshake are the versions in which a client first calls initialize to agree on a version and
// capabilities.
var handshake = versions[1:]

func isHandshake(version string) bool { return slices.Contains(handshake, version) }

// agreeVersion returns the version to answer to initialize: the requested one if it is supported,
// otherwise the newest with a handshake.
func agreeVersion(version string) string {
	if isHandshake(version) {
		return version
	}
	return v2025Nov
}

// hasBatches reports whether clients of the version may send several messages in one body. 2025-06-18
// removed this.
func hasBatches(version string) bool { return version == v2025Mar || version == v2024Nov }

// hasLinks reports whether results may contain links to resources in the version.
func hasLinks(version string) bool { return version != v2025Mar && version != v2024Nov }

// hasAudio reports whether results may contain audio in the version.
func hasAudio(version string) bool { return version != v2024Nov }
