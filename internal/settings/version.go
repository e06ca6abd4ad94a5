package settings

import "runtime/debug"

// release is the version of this source tree.
const release = "0.1.0"

// Version is the release with the revision it was built from.
func Version() string {
	if r := Revision(); r != "" {
		return release + "+" + r
	}
	return release
}

// Release is the version without a revision.
func Release() string { return release }

// Revision is the start of the commit the binary was built from, with
// "-dirty" when the tree had changes; empty when the build did not say.
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
