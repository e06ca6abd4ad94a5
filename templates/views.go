package templates

import (
	"html"
	"net/url"
	"strconv"
	"strings"

	"github.com/a-h/templ"
)

// Page holds the parts of a page that are outside its main content.
type Page struct {
	Title        string // title of the browser tab; the portal's name is appended
	Description  string // for search engines and link previews
	Path         string // path of this page, which marks the current entry of the navigation
	PortalName   string
	PortalHandle string // the portal's host, the part after @ in a handle
	User         *User  // the account that is logged in, nil for none
	Guest        bool   // the visitor has no account but has conversations
	CanSignUp    bool
	Theme        string // light or dark, "" follows the system
	Flash        string // sentence about the result of the last action, "" for none
	FlashKind    string // "ok" (default), "info", "warn" or "error"
	Version      string
	SearchHost   string          // host of the operator's server that gets the words of searches, "" for none
	PrivateHost  string          // the same, if it also gets texts of conversations and goals
	Notices      int             // unread notifications of the user
	Feed         string          // address of an Atom feed of the listed items, "" for none
	Head         templ.Component // more elements for <head>, nil for none
	Preview      *Preview        // preview that is shown where the page is linked, nil for none
}

// User is the account that is logged in, as the header shows it.
type User struct {
	Name     string
	Picture  string // address of its picture, "" for none
	Operator bool
	Unread   int
}

// SafeHTML is HTML that may be inserted unescaped, because the server made it from Markdown and
// sanitised it, or because it is part of this program. Never convert anything else to it.
type SafeHTML string

// Time is a moment for people and for machines. Text alone is enough; with ISO (RFC 3339) scripts show
// it in the reader's own time zone.
type Time struct {
	Text string // for people, "12 May, 14:05"
	ISO  string // for scripts, "2026-05-12T14:05:00.000Z"
}

// Provenance shows where an agent or portal is and whether it works, beside its name.
type Provenance struct {
	Portal     string // host of the agent's portal; "" for this portal
	Verified   bool   // the address of that portal is proven
	Proof      string // of the agent's address: proved or unproven; "" if it needs none or only its portal claims one
	Live       string // alive, needs_auth, wrong_protocol, unreachable, unknown; "" shows no live state (people)
	LiveReason string // one short sentence on the liveness, may be empty
}

// Link is the text and the address of a link.
type Link struct {
	Label, Href string
}

// Option is one choice of a list in a form.
type Option struct {
	Value, Label, Hint string
	Selected           bool
}

// FieldErrors maps the names of form fields to problems. The problem of the empty name is about the
// whole form.
type FieldErrors map[string]string

// AgentCard is an agent as lists of agents show it.
type AgentCard struct {
	Ref         string // "name" here, "name@portal" on other portals: the value for /agents/ and the field "agent"
	Title       string
	Handle      string // with the host, for people: "guide@example.org"
	Description string // one line
	Kind        string // name of the kind for people
	State       string // draft, deprecated or withdrawn; "" when active
	Icon        string // hash of its picture; "" draws an avatar from the name
	Provenance  Provenance
	Tags        []string
	Examples    []string // questions that one click asks
	Matched     string   // fields that the search matched, "name, tags"; "" outside of search
	Why         string   // note on a corrected spelling, may be empty
	Own         bool     // one of the portal's own agents
	Lookalike   bool     // of another portal, with the title of an own one
	By, ByHref  string   // the owner or publisher, and the page about them, both may be empty
	Users       int      // people that used it this week
}

// Skill is one thing an agent can do, as its page shows it.
type Skill struct {
	ID, Name, Description string
	Tags, Examples        []string
}

const (
	tagsOnCard     = 3
	examplesOnCard = 1
)

func agentHref(ref string) string { return "/agents/" + ref }

// shortRef returns the name of an agent without its portal, which stands beside it.
func shortRef(ref string) string {
	name, _, _ := strings.Cut(ref, "@")
	return name
}

// unprovenTitle explains the mark "unproven" of an agent's address.
func unprovenTitle(v Provenance) string {
	if v.Portal != "" {
		return "Its portal does not say that its owner may list it"
	}
	return "Its owner has not proven that the address belongs to them"
}

func tagHref(tag string) string { return "/agents?" + url.Values{"tag": {tag}}.Encode() }

func firstN(list []string, n int) []string {
	return list[:min(n, len(list))]
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// isolated returns the text of a person or an agent in the characters that keep its direction to itself, for places
// where no element can: the labels and titles of pictures.
func isolated(text string) string {
	if text == "" {
		return ""
	}
	return "\u2068" + text + "\u2069"
}

func firstOf(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

// ErrorFallback returns a complete error page in plain HTML, for the case that the real error page
// fails to render. It uses no template.
func ErrorFallback(status int, message, requestID string) string {
	code := strconv.Itoa(status)
	var b strings.Builder
	b.WriteString("<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" " +
		"content=\"width=device-width\"><title>Error ")
	b.WriteString(code + "</title><h1>Error " + code + "</h1><p>" + html.EscapeString(message) + "</p>")
	if requestID != "" {
		b.WriteString("<p>Request <code>" + html.EscapeString(requestID) + "</code></p>")
	}
	b.WriteString("<p><a href=\"/\">Go to the start page</a></p></html>\n")
	return b.String()
}
