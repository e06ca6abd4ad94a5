package app

import "agentsite/internal/settings"

// Config holds all settings of an operator.
type Config = settings.Config

// The named values of settings.
const (
	DefaultNetwork = settings.DefaultNetwork
	NoNetwork      = settings.NoNetwork
	GossipHTTPS    = settings.GossipHTTPS
	GossipOff      = settings.GossipOff
	TierAuto       = settings.TierAuto
)

// Defaults returns the settings of a portal without configuration.
func Defaults() Config { return settings.Defaults() }

// Version is the release with the revision it was built from.
func Version() string { return settings.Version() }

// Release is the version without a revision.
func Release() string { return settings.Release() }

// Revision is the start of the commit of the build, or empty if the build did not record it.
func Revision() string { return settings.Revision() }
