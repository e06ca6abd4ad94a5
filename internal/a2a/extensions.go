package a2a

import "strings"

// The extensions of this portal's agents (§4.6), documented in the manual (docs/connect.md). A caller
// asks for one by its URI.
const (
	// ExtEvents adds a number to each event of a stream, so that a client that reconnects gets the
	// events it missed.
	ExtEvents = "https://agentsite.dev/ext/events/v1"
	// ExtOnce allows a client to repeat a message without a context: the portal recognizes the message
	// id and runs it once.
	ExtOnce = "https://agentsite.dev/ext/once/v1"
	// ExtSpeaker adds the author to each message, for conversations with several members.
	ExtSpeaker = "https://agentsite.dev/ext/speaker/v1"
	// ExtCost adds the cost to a task, a status update or a message that is the answer: a task.Claim in its metadata.
	ExtCost = "https://agentsite.dev/ext/cost/v1"
	// ExtListing adds the portal's directory data of an agent to its extended card.
	ExtListing = "https://agentsite.dev/ext/listing/v1"
	// ExtTools is declared by agents elsewhere that want the portal's tools: each message then has, in its metadata
	// under this URI, the address of an MCP server and a token for it, see Tools.
	ExtTools = "https://agentsite.dev/ext/tools/v1"
)

// extensions lists the extensions that every card announces.
var extensions = []CardExtension{
	{URI: ExtEvents, Description: "Events of streams have dense numbers; a client that subscribes again with " +
		"Last-Event-ID gets the missed events or a notice of a gap."},
	{URI: ExtOnce, Description: "A message without contextId that is sent again, with the same messageId by the " +
		"same account, is answered with the first task."},
	{URI: ExtSpeaker, Description: "The metadata of a message names its author."},
	{URI: ExtCost, Description: "The metadata of a task says what its models cost, as far as this portal knows."},
}

// ExtensionsHeader is the HTTP header that lists extensions: in a request those that the client asks
// for, in an answer those that are applied.
const ExtensionsHeader = "A2A-Extensions"

// ReadExtensions returns the URIs in the values of ExtensionsHeader, at most maxListed.
func ReadExtensions(values []string) []string {
	var out []string
	for _, v := range values {
		for uri := range strings.SplitSeq(v, ",") {
			if uri = strings.TrimSpace(uri); uri != "" && len(out) < maxListed {
				out = append(out, uri)
			}
		}
	}
	return out
}

// Speaker is the author of a message, in the message's metadata under ExtSpeaker.
type Speaker struct {
	// Kind is "person", "guest" or "agent".
	Kind   string `json:"kind"`
	Handle string `json:"handle"`
	// Portal is the host of the portal where the speaker has an account or a record.
	Portal string `json:"portal"`
	// Verified is true if the sending portal has verified the speaker's identity.
	Verified bool `json:"verified"`
}

// Tools is the access to the portal's tools, in a message's metadata under ExtTools: the address of an MCP server, and
// the bearer token that it accepts until the task ends.
type Tools struct {
	URL   string `json:"url"`
	Token string `json:"token"`
}

// NewSpeaker returns the Speaker for a handle: name for a member of the portal at host own, name@host
// for one of another portal.
func NewSpeaker(kind, handle, own string) Speaker {
	s := Speaker{Kind: kind, Handle: handle, Portal: own, Verified: kind != "guest"}
	if _, host, elsewhere := strings.Cut(handle, "@"); elsewhere {
		s.Portal, s.Verified = host, host == own
	}
	return s
}
