package a2a

import "strings"

// The extensions that agents of this portal have (§4.6), as documented in the
// manual (docs/connect.md). Each is a URI, by which a caller asks for it.
const (
	// ExtEvents numbers the events of a stream and gives a reader who comes
	// back what they missed.
	ExtEvents = "https://agentsite.dev/ext/events/v1"
	// ExtOnce makes sending a message again harmless where it has no context.
	ExtOnce = "https://agentsite.dev/ext/once/v1"
	// ExtSpeaker says who spoke, where several do.
	ExtSpeaker = "https://agentsite.dev/ext/speaker/v1"
	// ExtListing is what the portal knows of an agent, on its extended card.
	ExtListing = "https://agentsite.dev/ext/listing/v1"
)

// extensions are those that every card offers.
var extensions = []CardExtension{
	{URI: ExtEvents, Description: "Events of streams have dense numbers; who subscribes again with Last-Event-ID gets what was missed, or is told of a gap."},
	{URI: ExtOnce, Description: "A message without contextId that is sent again, with the same messageId by the same account, is answered with the first task."},
	{URI: ExtSpeaker, Description: "Messages say in their metadata who spoke."},
}

// ExtensionsHeader names the extensions that a request asks for, and an answer
// those it follows.
const ExtensionsHeader = "A2A-Extensions"

// ReadExtensions are the URIs of the header's values, at most maxListed.
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

// Speaker is who spoke, in the metadata of a message under ExtSpeaker.
type Speaker struct {
	// Kind is person, guest or agent.
	Kind   string `json:"kind"`
	Handle string `json:"handle"`
	// Portal is the host that the speaker has an account or a record at.
	Portal string `json:"portal"`
	// Verified is whether the portal that sends this knows it to be true.
	Verified bool `json:"verified"`
}

// NewSpeaker is who spoke with a handle on the portal at host own, or with
// name@host elsewhere.
func NewSpeaker(kind, handle, own string) Speaker {
	s := Speaker{Kind: kind, Handle: handle, Portal: own, Verified: kind != "guest"}
	if _, host, elsewhere := strings.Cut(handle, "@"); elsewhere {
		s.Portal, s.Verified = host, host == own
	}
	return s
}
