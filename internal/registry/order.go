package registry

import (
	"cmp"
	"strings"
)

// NewerRelease orders two releases as the MCP registry does: semantic versions
// by their precedence and above all others, the others by when they were
// published. It is positive when a is the newer one.
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

// latestOf is the newest release that is not deleted, or the newest if all
// are; nil of none.
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

// semver is a version of Semantic Versioning 2.0 without its build metadata.
type semver struct {
	core [3]string // numbers without leading zeros, of any length
	pre  []string
}

// parseSemver reads major.minor.patch with an optional v before it.
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

// number reports whether s is a number as versions write it.
func number(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == "" && (s == "0" || s[0] != '0')
}

// identifiers checks those after a version, §9 and §10; strict refuses
// numbers with leading zeros.
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

// compare is the precedence of §11.
func (v semver) compare(w semver) int {
	for i := range v.core {
		if c := compareNumbers(v.core[i], w.core[i]); c != 0 {
			return c
		}
	}
	switch {
	case len(v.pre) == 0 || len(w.pre) == 0:
		return cmp.Compare(len(w.pre), len(v.pre)) // a pre-release comes before
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
