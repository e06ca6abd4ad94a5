package replication

import "strings"

// state says how much of one remote portal is kept here. A portal is in exactly one state at a time;
// next is the only function that moves it to another.
type state uint8

const (
	// absent: at most the head is known; no agent records of the portal are in use.
	absent state = iota
	// summary: only head and summary are kept, because the tier of this portal requires it.
	summary
	// pulling: a goroutine pulls the log, or waits before it tries again.
	pulling
	// partial: a part of the log is held and no pull runs. Either the pull was ended, or the records match
	// the head except for some that no source has; those are requested again later.
	partial
	// complete: the records held have the root hash of the newest head.
	complete
	// overQuota: its log is larger than its quota. Head and summary are kept.
	overQuota

	stateCount
)

var stateNames = [stateCount]string{"absent", "summary", "pulling", "partial", "complete", "overQuota"}

func (s state) String() string { return stateNames[s] }

// event is an input of next: something that happened to a remote portal or to its records here.
type event uint8

const (
	// newHead: a newer head of the portal was admitted.
	newHead event = iota
	// newSource: one more portal sent the newest head.
	newSource
	// logWhole: the pull completed the log of the newest head.
	logWhole
	// logPartial: the pull completed the log except for records that no source has.
	logPartial
	// pullAgain: the pull ended and has to be repeated at once, because the newest head, the quota or the
	// policy changed meanwhile.
	pullAgain
	// pullFailed: no source had the log; the goroutine waits and tries again.
	pullFailed
	// pullStopped: the pull ended without success and its goroutine ends too.
	pullStopped
	// shutOut: the policy forbids new records of the portal.
	shutOut
	// quotaExceeded: the log is larger than the quota.
	quotaExceeded
	// quotaChanged: the quota of the portal is another one, or the records held exceed it.
	quotaChanged
	// recordsLost: the records held are deleted or no longer valid.
	recordsLost
	// summaryChosen: the tier allows only head and summary; the records held are deleted.
	summaryChosen
	// logChosen: the tier allows the log again.
	logChosen
	// retryDue: upkeep found that a pull is due.
	retryDue

	eventCount
)

var eventNames = [eventCount]string{"newHead", "newSource", "logWhole", "logPartial", "pullAgain", "pullFailed",
	"pullStopped", "shutOut", "quotaExceeded", "quotaChanged", "recordsLost", "summaryChosen", "logChosen",
	"retryDue"}

func (e event) String() string { return eventNames[e] }

// actions is the bit set of tasks that the caller of next has to perform.
type actions uint8

const (
	// startPull starts the goroutine that pulls the log.
	startPull actions = 1 << iota
	// wakePull ends the wait of that goroutine before its next attempt.
	wakePull
	// cancelPull cancels the running attempt of that goroutine.
	cancelPull
	// report writes the state to the registry, see Syncer.Report.
	report
	// advertise sends hints of the newest head to other portals.
	advertise
	// fetchSummary wakes the summaryKeeper to fetch the summary that the newest head names.
	fetchSummary

	actionBits = iota
)

var actionNames = [actionBits]string{"startPull", "wakePull", "cancelPull", "report", "advertise", "fetchSummary"}

func (a actions) has(b actions) bool { return a&b != 0 }

func (a actions) String() string {
	var list []string
	for i, name := range actionNames {
		if a.has(1 << i) {
			list = append(list, name)
		}
	}
	return strings.Join(list, "+")
}

// next returns the state after an event and what has to be done then. It is pure: its result depends on
// its arguments alone.
//
//	event \ from   absent   summary  pulling    partial  complete overQuota
//	newHead        pulling  -        -          pulling  pulling  -
//	newSource      pulling  -        -          pulling  -        -
//	logWhole       -        -        complete   -        -        -
//	logPartial     -        -        partial    -        -        -
//	pullAgain      -        -        -          -        -        -
//	pullFailed     -        -        -          -        -        -
//	pullStopped    -        -        partial    -        -        -
//	shutOut        -        -        -          -        -        -
//	quotaExceeded  -        -        overQuota  -        -        -
//	quotaChanged   pulling  -        -          pulling  pulling  pulling
//	recordsLost    -        -        -          absent   absent   -
//	summaryChosen  summary  -        summary    summary  summary  summary
//	logChosen      -        pulling  -          -        -        -
//	retryDue       pulling  -        -          pulling  -        pulling
//
// A pull that runs while records are lost notices it at its end and starts over, so recordsLost does not end
// it. Only pulling has a goroutine that pulls; each transition to pulling from another state starts one.
func next(s state, e event) (state, actions) {
	switch e {
	case newHead:
		return nextByHead(s)
	case newSource:
		return nextBySource(s)
	case logWhole, logPartial, pullAgain, pullFailed, pullStopped, shutOut, quotaExceeded:
		if s == pulling {
			return nextByPull(e)
		}
	case quotaChanged:
		switch s {
		case absent, partial, complete, overQuota:
			return pulling, startPull
		}
	case recordsLost:
		if s == partial || s == complete {
			return absent, 0
		}
	case summaryChosen:
		if s != summary {
			return summary, report | advertise | fetchSummary
		}
	case logChosen:
		if s == summary {
			return pulling, startPull
		}
	case retryDue:
		switch s {
		case absent, partial, overQuota:
			return pulling, startPull
		}
	}
	return s, 0
}

// nextByHead is next for a newer head. A portal with a complete log advertises the head only after the
// pull, because it cannot serve the log earlier.
func nextByHead(s state) (state, actions) {
	switch s {
	case summary:
		return summary, report | advertise | fetchSummary
	case overQuota:
		return overQuota, report | fetchSummary
	case pulling:
		return pulling, report | wakePull
	}
	return pulling, report | startPull
}

// nextBySource is next for one more source of the newest head: a waiting pull tries again with it.
func nextBySource(s state) (state, actions) {
	switch s {
	case absent, partial:
		return pulling, startPull
	case pulling:
		return pulling, wakePull
	}
	return s, 0
}

// nextByPull is next for the result of a pull; the state is pulling.
func nextByPull(e event) (state, actions) {
	switch e {
	case logWhole:
		return complete, report | advertise
	case logPartial:
		return partial, report
	case pullStopped:
		return partial, 0
	case quotaExceeded:
		return overQuota, report | fetchSummary
	case shutOut:
		return pulling, cancelPull
	}
	return pulling, report
}
