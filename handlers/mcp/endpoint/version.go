package endpoint

import "slices"

// The versions of the protocol.
const (
	Modern = "2026-07-28"

	v2025Nov = "2025-11-25"
	v2025Jun = "2025-06-18"
	v2025Mar = "2025-03-26"
	v2024Nov = "2024-11-05"
)

// versions are the supported versions, the newest first. All but the first start with a handshake.
var versions = []string{Modern, v2025Nov, v2025Jun, v2025Mar, v2024Nov}

// Versions returns the supported versions of the protocol.
func Versions() []string { return slices.Clone(versions) }

// handshake are the versions that start with initialize.
var handshake = versions[1:]

func isHandshake(version string) bool { return slices.Contains(handshake, version) }

// agreeVersion returns the version for initialize: the requested one, or the newest with a
// handshake.
func agreeVersion(version string) string {
	if isHandshake(version) {
		return version
	}
	return v2025Nov
}

// hasBatches reports whether the version has batches of messages, which were removed in 2025-06-18.
func hasBatches(version string) bool { return version == v2025Mar || version == v2024Nov }

// hasLinks reports whether the version has links to resources in results.
func hasLinks(version string) bool { return version != v2025Mar && version != v2024Nov }

// hasAudio reports whether the version has audio in results.
func hasAudio(version string) bool { return version != v2024Nov }
