package app

import "agentsite/internal/settings"

// Config is everything an operator decides.
type Config = settings.Config

// The values of settings that have a name.
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

// Revision is the start of the commit the binary was built from; empty when the
// build did not say.
func Revision() string { return settings.Revision() }
