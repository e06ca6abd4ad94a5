package settings

import "runtime/debug"

// release is the version of this source tree, raised by hand with each release.
const release = "0.1.0"

// Version returns the release and, if known, the revision after a plus sign, as in build metadata
// of Semantic Versioning.
func Version() string {
	if r := Revision(); r != "" {
		return release + "+" + r
	}
	return release
}

// Release returns the version without the revision, for other programs that compare versions.
func Release() string { return release }

// Revision returns the first 12 digits of the commit that the binary was built from, with "-dirty"
// if the source had changes; empty if the build did not record it.
func Revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	rev, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			rev = s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	if rev == "" {
		return ""
	}
	return rev + dirty
}
