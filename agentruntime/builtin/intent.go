package builtin

import (
	"regexp"
	"strings"

	"agentsite/internal/task"
)

// intent is the kind of a message to guide.
type intent int

const (
	unsure    intent = iota // no form is recognized: search agents and manual
	seek                    // a request for an agent
	ask                     // a question about the portal
	more                    // a request for further results
	greet                   // hello
	thank                   // thanks, bye
	introduce               // asks for the abilities of guide
	listing                 // which agents are there
)

var (
	// seekCue matches a request for an agent.
	seekCue = regexp.MustCompile(`\b(?:(?:an?|any|some|the|which|what|best|good) (?:\w+ ){0,2}?(?:agent|bot|assistant|expert)s? (?:that|which|who|to|for|can|could|able|with)\b|` +
		`(?:need|want|find|finds?|recommend|suggest|looking for|search for|show me|give me|is there|are there|get me|know) (?:me )?(?:an? |any |some |the )?(?:\w+ ){0,2}?(?:agent|bot|assistant|expert)s?\b|` +
		`(?:someone|somebody|anyone|anybody) (?:that |who |to |can |here )|who (?:can|could|would|will|here|knows|speaks|is able|helps|does|offers)\b|` +
		`(?:find|recommend|suggest|get) me\b|looking for\b|(?:can|could) (?:any|some|an)(?:one|body|y agent)\b|(?:an )?agents? (?:that|to|for) )`)
	// askCue matches a question about the portal.
	askCue = regexp.MustCompile(`^(?:and |but |so |ok |okay )*(?:how|what|whats|why|where|wheres|when|which|whose|is|are|does|do|did|can|may|could|should|must|will|has|have|am)\b|\b(?:how (?:do|can|to|does|should|many|much|long|often)|what (?:does|is|are|happens|if|do)|where (?:do|is|are|can)|why (?:is|does|do|am|are|can|did))\b`)
	// doCue matches a task in the form of a question, unless it is about a thing of the portal.
	doCue = regexp.MustCompile(`^(?:and |but |so |ok |okay )*(?:can|could|will|would) you (?:please )?[a-z]+`)
	// "Can" with a person asks for an agent, unless the sentence is about a thing of the portal.
	whoMay        = regexp.MustCompile(`^(?:and |but |so )?who (?:can|could|will|would)\b`)
	portalMatters = wordSet(`account accounts conversation conversations token tokens password passwords portal backup backups key keys message messages guest guests
		chat chats profile session sessions operator admin log logs database room rooms invite link`)
	questionWords = wordSet("how what where why when which whether explain tell show")
	greeting      = wordSet("hi hello hey hallo hola moin yo greetings good morning afternoon evening day there " +
		"guide dear again nice to meet you all everybody how are doing is it going whats up")
	greetFirst = wordSet("hi hello hey hallo hola moin yo greetings good morning how whats")
	thanks     = wordSet("thanks thank you thx ty cheers great cool perfect nice super wonderful awesome bye " +
		"goodbye ciao ok okay good very much so a lot many that was is helpful works it guide all for now your " +
		"help have day see later danke done got")
	thanksCore = wordSet("thanks thank thx ty cheers great cool perfect nice super wonderful awesome bye " +
		"goodbye ciao ok okay danke helpful")
	moreWords = wordSet(`another one ones more something anything someone somebody anyone else other others different next any agent agents result results option options
		show me give find please are there is what about the a some not that no i want do you have alternative alternatives suggestion suggestions try again and of them list these those`)
	moreCore = wordSet("another more else other others different next alternative alternatives")
	aboutMe  = regexp.MustCompile(`^(?:what (?:can|do|could) you do.*|who are you|what are you|what is this|help(?: me)?(?: please)?|please help(?: me)?|i need help|how (?:can|do) you (?:help|work).*|what can i (?:ask|do)(?: you| here)?|what (?:is|does) (?:the )?guide(?: do)?|commands|menu|start|info)$`)
	allOf    = regexp.MustCompile(`^(?:show|list|give|tell|find|see|get)?(?: me)? ?(?:all|every|which|what|the|any|some|an)? ?(?:of )?(?:the )?(?:available )?agents?(?: (?:are|is|do you have|exist|can i talk to|available|there|here|on this portal|please))*$`)
)

// plainLine returns a message in small letters with single spaces and no punctuation.
func plainLine(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(noApostrophes.Replace(s)), notLetter), " ")
}

// classifyMessage returns the intent of a message by its form alone, without a search.
func classifyMessage(message string) intent {
	line := plainLine(message)
	ws := strings.Fields(line)
	switch {
	case aboutMe.MatchString(line):
		return introduce
	case len(ws) <= 8 && containsOnly(ws, moreWords) && containsSome(ws, moreCore):
		return more
	case len(ws) <= 6 && containsOnly(ws, greeting) && greetFirst[ws[0]]:
		return greet
	case len(ws) <= 8 && containsOnly(ws, thanks) && containsSome(ws, thanksCore):
		return thank
	case allOf.MatchString(line):
		return listing
	}
	seeks, asks := seekCue.MatchString(line), askCue.MatchString(line)
	switch {
	case seeks && whoMay.MatchString(line) && containsSome(ws, portalMatters):
		return ask // an example: can others read my conversation
	case seeks:
		return seek
	case doCue.MatchString(line) && !containsSome(ws, portalMatters) && !containsSome(ws, questionWords):
		return unsure // an example: can you translate a letter
	case asks:
		return ask
	}
	return unsure
}

func containsOnly(ws []string, of map[string]bool) bool {
	for _, w := range ws {
		if !of[w] {
			return false
		}
	}
	return len(ws) > 0
}

func containsSome(ws []string, of map[string]bool) bool {
	for _, w := range ws {
		if of[w] {
			return true
		}
	}
	return false
}

// lastQuestion returns the question that guide's last answers refer to, skipping requests for more, and
// the paths in those answers. question is "" if there is none.
func lastQuestion(history []task.Turn) (question string, shown map[string]bool) {
	shown = make(map[string]bool)
	for i := len(history) - 1; i >= 0; i-- {
		text := task.PlainText(history[i].Parts)
		if history[i].Mine {
			for _, m := range linkTarget.FindAllStringSubmatch(text, -1) {
				shown[m[1]] = true
			}
			continue
		}
		if i+1 == len(history) || !history[i+1].Mine {
			continue // The question has no answer, or one of another agent.
		}
		text = withoutMention(text, guideName)
		switch classifyMessage(text) {
		case more, greet, thank, introduce:
			continue
		}
		return text, shown
	}
	return "", shown
}

// linkTarget finds the paths of agents and sections in guide's answers, with or without the portal's URL
// before them.
var linkTarget = regexp.MustCompile(`\]\((?:https?://[^/\s)]+)?(/(?:agents|docs)/[^)\s]+)\)`)
