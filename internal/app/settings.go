package app

import "agentsite/internal/settings"

// Config holds the operator's settings; the fields are described in package settings.
type Config = settings.Config

// Special values of settings, described in package settings.
const (
	DefaultNetwork = settings.DefaultNetwork
	NoNetwork      = settings.NoNetwork
	GossipHTTPS    = settings.GossipHTTPS
	GossipOff      = settings.GossipOff
	TierAuto       = settings.TierAuto
)

// Defaults returns the settings that apply if the operator configures nothing.
func Defaults() Config { return settings.Defaults() }

// Version returns the release with the source revision of the build.
func Version() string { return settings.Version() }

// Release returns the version number without the revision.
func Release() string { return settings.Release() }

// Revision returns the first characters of the build's commit, or "" if the build did not record it.
func Revision() string { return settings.Revision() }
