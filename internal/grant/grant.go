// Package grant keeps the decisions of people about the tools that agents use for them: which agent may use which tool,
// or ask which other agent, without asking the person each time. A decision is made from the person's grants alone by
// a pure function; the person is asked about a call that no grant covers.
package grant

import (
	"slices"
	"strings"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/plaintext"
)

// The tools that the portal itself offers to agents. Other tools are named by their MCP server.
const (
	Find   = "find"   // searches for agents
	Ask    = "ask"    // asks another agent
	Memory = "memory" // keeps facts about the person and gets them back
	// Library stands in the tools of an agent for the two below.
	Library      = "library"
	LibraryRead  = "library_read"  // lists and reads files of the person
	LibraryWrite = "library_write" // writes and reads files of the person
)

// PortalTools are the tools of the portal that an agent may declare.
var PortalTools = []string{Find, Ask, Memory, Library}

// WholeLibrary as the Target of a grant for the library covers all files; another one that ends with a slash covers a
// folder.
const WholeLibrary = "/"

// AnyPublic as the Target of a grant for Ask covers every public agent.
const AnyPublic = "public"

// MaxGrants is the number of grants that one person can have. It bounds the rows of an account; no person meets it by
// hand.
const MaxGrants = 1000

// CheckTools returns a cleaned list of tools of the portal, and reports others to c.
func CheckTools(c *fault.Check, tools []string) []string {
	tools = plaintext.CleanList(tools, true)
	for _, name := range tools {
		c.Field(slices.Contains(PortalTools, name), "config.tools",
			"%.80q is no tool of the portal; use %s", name, strings.Join(PortalTools, ", "))
	}
	return tools
}

// Person is an account, or a person of another portal.
type Person struct{ Kind, ID string }

// Binding are the facts about an agent for which a grant was given. The grant lapses when one of them changes.
type Binding struct {
	// Owner is the name of the owner's account. A name is never given to another account.
	Owner string
	// Origin is the scheme and host of the agent's endpoint or, without one, the host of its model, "" for this portal.
	Origin string
	// Needs are the tools that the owner declares, in the order of their names.
	Needs string
}

// Grant is one decision of a person about an agent.
type Grant struct {
	ID     string
	Person Person
	// AgentID is the agent that uses the tool, Agent its handle.
	AgentID, Agent string
	// Tool is Find, Ask, Memory, LibraryRead, LibraryWrite, or a tool of an MCP server. Target is the handle of the
	// agent that has the tool or is asked, AnyPublic, a file, folder or WholeLibrary, or "" for Find and Memory.
	Tool, Target string
	// ConversationID restricts the grant to one conversation, "" to none.
	ConversationID string
	// Allow is false for a decision that the agent must never use the tool.
	Allow bool
	// Calls is the number of calls that the grant allows, 0 for any; Used are those that were made.
	Calls, Used int
	// Until is the time at which the grant ends, zero for never.
	Until     time.Time
	Binds     Binding
	CreatedAt time.Time
}

// Use is a call of a tool that needs a decision.
type Use struct {
	Person         Person
	AgentID, Agent string
	Tool, Target   string
	// Public is true if all people may ask the target.
	Public         bool
	ConversationID string
	// Binds are the present facts about the agent.
	Binds Binding
}

// Decision is the result for a use.
type Decision int

// Undecided means that the person has to be asked.
const (
	Undecided Decision = iota
	Allowed
	Denied
)

// Decide returns the decision for a use at a time, and the grant that it follows from. A grant that denies wins over
// those that allow, and one for a single conversation is used before one for all.
func Decide(list []Grant, u Use, now time.Time) (Decision, Grant) {
	var best *Grant
	for i, g := range list {
		if !g.covers(u) || g.Ended(now) {
			continue
		}
		if !g.Allow {
			return Denied, g
		}
		// A denial stays in force when the agent changes, a permission does not.
		if g.Binds != u.Binds || best != nil && (best.ConversationID != "" || g.ConversationID == "") {
			continue
		}
		best = &list[i]
	}
	if best == nil {
		return Undecided, Grant{}
	}
	return Allowed, *best
}

// covers reports whether the grant is about the use, whatever its limits.
func (g Grant) covers(u Use) bool {
	if u.isFile() {
		return g.coversFile(u)
	}
	return g.Person == u.Person && g.AgentID == u.AgentID && g.Tool == u.Tool &&
		(g.Target == u.Target || g.Tool == Ask && g.Target == AnyPublic && (u.Public || !g.Allow)) &&
		(g.ConversationID == "" || g.ConversationID == u.ConversationID)
}

// isFile reports whether the use is about files of a library.
func (u Use) isFile() bool { return u.Tool == LibraryRead || u.Tool == LibraryWrite }

// coversFile is covers for files: a grant for a folder covers all in it, and one that allows writing allows reading. A
// denial without a slash at its end is about the file and the folder of that name.
func (g Grant) coversFile(u Use) bool {
	return g.Person == u.Person && g.AgentID == u.AgentID &&
		(g.Tool == u.Tool || g.Allow && g.Tool == LibraryWrite && u.Tool == LibraryRead) &&
		(g.Target == u.Target || g.Target == WholeLibrary ||
			strings.HasSuffix(g.Target, "/") && strings.HasPrefix(u.Target, g.Target) ||
			!g.Allow && strings.HasPrefix(u.Target, g.Target+"/")) &&
		(g.ConversationID == "" || g.ConversationID == u.ConversationID)
}

// FolderOf returns the target of a grant that a person gives for a file: its folder, or the file alone at the top.
func FolderOf(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i+1]
	}
	return path
}

// placeOf returns a target of the library in words.
func placeOf(target string) string {
	if target == WholeLibrary {
		return "your whole library"
	}
	return target + " in your library"
}

// Act returns the act that the grant is about, in words that follow "may" or "may never".
func (g Grant) Act() string {
	switch {
	case g.Tool == Find:
		return "search for agents"
	case g.Tool == Memory && g.Target == "":
		return "remember what you say"
	case g.Tool == LibraryRead:
		return "read " + placeOf(g.Target)
	case g.Tool == LibraryWrite:
		return "read and write " + placeOf(g.Target)
	case g.Tool == Ask && g.Target == AnyPublic:
		return "ask every public agent"
	case g.Tool == Ask:
		return "ask " + g.Target
	}
	return "use " + g.Tool + " of " + g.Target
}

// Ended reports whether the grant has expired or allows no more calls.
func (g Grant) Ended(now time.Time) bool {
	return !g.Until.IsZero() && !now.Before(g.Until) || g.Calls > 0 && g.Used >= g.Calls
}

// Lapsed returns the reason why a grant does not count for an agent of these facts, "" if it counts.
func (g Grant) Lapsed(now Binding) string {
	switch {
	case !g.Allow || g.Binds == now:
		return ""
	case g.Binds.Owner != now.Owner:
		return "The agent has another owner now."
	case g.Binds.Origin != now.Origin:
		return "The agent runs at another address now."
	}
	return "The agent uses other tools now."
}

// NeedsOf returns the Needs of an agent that declares tools.
func NeedsOf(tools []string) string {
	list := slices.Sorted(slices.Values(tools))
	out := ""
	for i, t := range slices.Compact(list) {
		if i > 0 {
			out += " "
		}
		out += t
	}
	return out
}
