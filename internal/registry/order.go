package registry

import (
	"cmp"
	"strings"
)

// NewerRelease compares two releases as the MCP registry does and returns a positive number if a is
// newer, a negative one if b is. Semantic versions are compared by precedence and are newer than
// all other versions; the others are compared by the time of publishing.
func NewerRelease(a, b Release) int {
	x, xok := parseSemver(a.Version)
	y, yok := parseSemver(b.Version)
	switch {
	case xok && yok:
		return x.compare(y)
	case xok:
		return 1
	case yok:
		return -1
	}
	return a.PublishedAt.Compare(b.PublishedAt)
}

// latestOf returns the newest release that is not deleted, or the newest if all are deleted; nil
// for an empty list. The result points into the list.
func latestOf(list []Release) *Release {
	var best *Release
	for i := range list {
		r := &list[i]
		if best == nil || (best.Status == ReleaseDeleted) != (r.Status == ReleaseDeleted) &&
			best.Status == ReleaseDeleted ||
			(best.Status == ReleaseDeleted) == (r.Status == ReleaseDeleted) && NewerRelease(*r, *best) > 0 {
			best = r
		}
	}
	return best
}

// semver is a version of Semantic Versioning 2.0 without its build metadata, which has no
// precedence.
type semver struct {
	core [3]string // major, minor, patch: decimal digits without leading zeros, of any length
	pre  []string
}

// parseSemver parses a semantic version, with an optional v before it; false if s is none.
func parseSemver(s string) (semver, bool) {
	s = strings.TrimPrefix(s, "v")
	s, build, built := strings.Cut(s, "+")
	core, pre, early := strings.Cut(s, "-")
	var v semver
	parts := strings.Split(core, ".")
	if len(parts) != 3 || built && !identifiers(build, false) || early && !identifiers(pre, true) {
		return v, false
	}
	for i, p := range parts {
		if !number(p) {
			return v, false
		}
		v.core[i] = p
	}
	if early {
		v.pre = strings.Split(pre, ".")
	}
	return v, true
}

// number reports whether s is a numeric identifier of Semantic Versioning (§2): digits without a
// leading zero.
func number(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == "" && (s == "0" || s[0] != '0')
}

// identifiers reports whether s is a valid list of pre-release (§9) or build (§10) identifiers with
// dots between. strict, for pre-releases, refuses numbers with leading zeros.
func identifiers(s string, strict bool) bool {
	for part := range strings.SplitSeq(s, ".") {
		if part == "" || strict && strings.Trim(part, "0123456789") == "" && !number(part) {
			return false
		}
		for _, c := range []byte(part) {
			if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-') {
				return false
			}
		}
	}
	return true
}

// compare orders versions by their precedence (Semantic Versioning §11): negative, 0 or positive.
func (v semver) compare(w semver) int {
	for i := range v.core {
		if c := compareNumbers(v.core[i], w.core[i]); c != 0 {
			return c
		}
	}
	switch {
	case len(v.pre) == 0 || len(w.pre) == 0:
		return cmp.Compare(len(w.pre), len(v.pre)) // a pre-release comes before its release
	}
	for i := range min(len(v.pre), len(w.pre)) {
		a, b := v.pre[i], w.pre[i]
		an, bn := number(a), number(b)
		c := strings.Compare(a, b)
		switch {
		case an && bn:
			c = compareNumbers(a, b)
		case an != bn && an:
			c = -1
		case an != bn:
			c = 1
		}
		if c != 0 {
			return c
		}
	}
	return cmp.Compare(len(v.pre), len(w.pre))
}

func compareNumbers(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}
