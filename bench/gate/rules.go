package main

import (
	"regexp"
	"slices"
)

// maxRepeated is the number of failed tests up to which each is run again alone. With more failures at
// once an accident is unlikely, so none is repeated.
const maxRepeated = 3

// A rule describes failures that are never run again, because one occurrence
// proves a defect. A failure matches a rule by the output of its package, by
// the package, or by the name of the test.
type rule struct {
	reason   string
	output   *regexp.Regexp // nil: the rule does not look at the output
	packages []string
	tests    *regexp.Regexp // nil: the rule does not look at the name
}

// rules lists all rules; the first that matches gives the reason. The output of a package counts for
// each of its tests, because a race or a leak is often reported in the output of another test than the
// one that caused it.
var rules = []rule{
	{
		reason: "data race",
		output: regexp.MustCompile(`WARNING: DATA RACE|race detected during execution of test`),
	},
	{
		// These lines are printed by goleak.VerifyTestMain, goleak.VerifyNone and testing/synctest.
		reason: "leaked goroutines",
		output: regexp.MustCompile(`goleak: Errors on successful test run|found unexpected goroutines|` +
			`blocked goroutines remain`),
	},
	{
		reason: "time limit of the package",
		output: regexp.MustCompile(`(?m)^panic: test timed out after`),
	},
	{
		reason: "panic",
		output: regexp.MustCompile(`(?m)^(panic|fatal error): `),
	},
	{
		// The tests of these packages check that each row is there exactly once.
		reason:   "lost or doubled rows",
		packages: []string{"agentsite/store", "agentsite/bench/chaos"},
		tests:    regexp.MustCompile(`Acknowledged|Duplicate|ExactlyOnce|Lost|Resumes|Twice`),
	},
	{
		reason:   "accepted lie",
		packages: []string{"agentsite/internal/testing/evil", "agentsite/bench/evil"},
	},
}

// detectorCrash matches the output of a test binary that the race detector itself ended, without a race
// and without a test that failed: with testing/synctest a check inside the detector of Go 1.26 fails once
// in some hundred runs (golang/go issue 78156). The whole package is run again then.
var detectorCrash = regexp.MustCompile(`(?m)^ThreadSanitizer: CHECK failed: `)

// neverRepeated returns the reason why the failure must not be run again, or
// "" if it may be.
func neverRepeated(pkg, test, output string) string {
	for _, r := range rules {
		if r.output != nil && r.output.MatchString(output) ||
			r.tests != nil && r.tests.MatchString(test) ||
			slices.Contains(r.packages, pkg) {
			return r.reason
		}
	}
	return ""
}
