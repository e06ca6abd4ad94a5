package goals

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"agentsite/internal/team"
	"agentsite/internal/team/flow"
	"agentsite/templates"
)

// memberWords are the states of members for people.
var memberWords = map[flow.MemberState]string{flow.Invited: "invited", flow.IsMember: "joined",
	flow.HasRefuse: "refused", flow.IsOffline: "not reachable"}

// The tree has one row for each member, shifted to the right for each team below, so that it also fits on a phone.
const (
	treeWidth = 360
	treeRow   = 52
	treeStep  = 30
	treeLeft  = 22
	treeTop   = 26
	// treeLetters is the number of letters that fit into a row that is not shifted.
	treeLetters = 40
)

// drawTree returns the picture of a team and of the teams below it.
func drawTree(v team.View) templates.GoalTree {
	t := templates.GoalTree{Width: treeWidth}
	addTeam(&t, v, 0, "lead")
	t.Height = len(t.Nodes)*treeRow + treeTop/2
	return t
}

// addTeam adds the lead of a team and its members below.
func addTeam(t *templates.GoalTree, v team.View, depth int, lead string) {
	about := "of this portal, " + stateWords[v.State.Phase.Public()]
	at := addNode(t, templates.TreeNode{Kind: "lead", Name: lead, About: about}, depth)
	for _, k := range v.State.Members {
		addMember(t, v, k, depth+1, at)
	}
}

// addMember adds a member, and below it the members of its own teams.
func addMember(t *templates.GoalTree, v team.View, k flow.Member, depth, parent int) {
	n := templates.TreeNode{Kind: string(k.State), About: memberWords[k.State]}
	n.Name, _, _ = strings.Cut(k.Handle, "@")
	if k.State == flow.IsMember {
		var kind string
		if n.About, kind = describeWork(v.State, k.Handle); kind != "" {
			n.Kind = kind
		}
	}
	if host := portalOf(k.Handle); host != "" {
		n.About = host + " · " + n.About
	} else {
		n.About = "here · " + n.About
	}
	at := addNode(t, n, depth)
	linkNodes(t, parent, at)
	for _, b := range v.Below {
		if b.ParentTask >= 1 && b.ParentTask <= len(v.State.Tasks) && v.State.Tasks[b.ParentTask-1].Owner == k.Handle {
			for _, below := range b.State.Members {
				addMember(t, b, below, depth+1, at)
			}
		}
	}
}

// describeWork returns the work of a member, and the kind of its node if that is not the state of the member.
func describeWork(s flow.State, handle string) (text, kind string) {
	var done, failed int
	for _, t := range s.Tasks {
		if t.Owner != handle {
			continue
		}
		switch t.Status {
		case flow.Input:
			return fmt.Sprintf("asks you about task %d", t.N), "asks"
		case flow.Completed:
			done++
		case flow.Broken, flow.Dropped:
			failed++
		default:
			return fmt.Sprintf("works on task %d", t.N), "works"
		}
	}
	switch {
	case failed > 0:
		return fmt.Sprintf("%d done, %d failed", done, failed), "failed"
	case done > 0:
		return fmt.Sprintf("%d done", done), "done"
	}
	return "joined, has no task", ""
}

func addNode(t *templates.GoalTree, n templates.TreeNode, depth int) int {
	depth = min(depth, 5)
	n.X, n.Y = treeLeft+depth*treeStep, treeTop+len(t.Nodes)*treeRow
	letters := treeLetters - depth*4
	n.Name, n.About = shorten(n.Name, letters-6), shorten(n.About, letters)
	t.Nodes = append(t.Nodes, n)
	return len(t.Nodes) - 1
}

func linkNodes(t *templates.GoalTree, from, to int) {
	a, b := t.Nodes[from], t.Nodes[to]
	t.Lines = append(t.Lines, fmt.Sprintf("M%d %dV%dq0 10 10 10H%d", a.X, a.Y+11, b.Y-10, b.X-11))
}

func shorten(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// againHref returns the address of the form with the goal and its limits, "" if they are too long for an address.
func againHref(v team.View) string {
	o := v.State.Open
	if len(o.Goal) > 2000 || v.ParentID != "" {
		return ""
	}
	q := url.Values{"goal": {o.Goal}, "recruit": {string(o.Recruit)}, "max_members": {strconv.Itoa(o.Limits.Members)},
		"max_turns": {strconv.Itoa(o.Limits.Turns)}, "max_depth": {strconv.Itoa(o.Limits.Depth)},
		"minutes":        {strconv.Itoa(max(1, int(o.Limits.Time.Minutes()+.5)))},
		"person_minutes": {strconv.Itoa(max(1, int(o.Limits.PersonTime.Minutes()+.5)))}}
	if o.Limits.Tokens > 0 {
		q.Set("tokens", strconv.FormatInt(o.Limits.Tokens, 10))
	}
	if o.Limits.Money > 0 {
		q.Set("cost", formatCost(o.Limits.Money))
	}
	if len(o.Members) > 0 {
		q.Set("members", strings.Join(o.Members, ", "))
	}
	if o.RequireAll {
		q.Set("require_all", "1")
	}
	return "/goals/new?" + q.Encode()
}
