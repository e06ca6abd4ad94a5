package templates

import (
	"html"
	"net/url"
	"strconv"
	"strings"

	"github.com/a-h/templ"
)

// Page holds the parts of every page around its own content.
type Page struct {
	Title        string // of the tab; the portal's name is added
	Description  string // for search engines and link previews
	Path         string // of this page, marks the current entry of the navigation
	PortalName   string
	PortalHandle string // the portal's host, the part after @ in a handle
	User         *User  // nil: not logged in
	Guest        bool   // a guest who already has conversations
	CanSignUp    bool
	Flash        string // one sentence about the result of the last action
	FlashKind    string // "ok" (default), "info", "warn" or "error"
	Version      string
	Notices      int             // unread notifications of the user
	Feed         string          // address of an Atom feed of the listed items, may be empty
	Head         templ.Component // extra elements for <head>, may be nil
	Preview      *Preview        // preview for links to the page, may be nil
}

// User is the account that is logged in.
type User struct {
	Name     string
	Operator bool
	Unread   int
}

// SafeHTML is HTML that may be inserted unescaped, because the server made it from Markdown and
// sanitised it, or because it is part of this program. Never convert anything else to it.
type SafeHTML string

// Time is a moment for people and for machines. Text alone is enough; with ISO (RFC 3339) scripts show
// it in the reader's own time zone.
type Time struct {
	Text string // "12 May, 14:05"
	ISO  string // "2026-05-12T14:05:00.000Z"
}

// Provenance is shown beside the name of every agent or portal.
type Provenance struct {
	Portal     string // host of the portal; "" when it is this one
	Verified   bool
	Live       string // alive, needs_auth, wrong_protocol, unreachable, unknown; "" shows no live state (people)
	LiveReason string // one short sentence, may be empty
}

// Link is a labelled address.
type Link struct {
	Label, Href string
}

// Option is one choice of a list.
type Option struct {
	Value, Label, Hint string
	Selected           bool
}

// FieldErrors maps field names to problems of a form. The empty name is for the form as a whole.
type FieldErrors map[string]string

// AgentCard is an agent as lists show it.
type AgentCard struct {
	Ref         string // "name" here, "name@portal" on other portals: the value for /agents/ and the field "agent"
	Title       string
	Handle      string // with its @, for people: "guide@example.org"
	Description string // one line
	Kind        string // label of the kind
	State       string // draft, deprecated or withdrawn; "" when active
	Icon        string // hash of its picture; "" draws one from the name
	Provenance  Provenance
	Tags        []string
	Examples    []string // prompts to ask with one click
	Matched     string   // "name, tags"; "" outside of search results
	Why         string   // the correction of a misspelt word, may be empty
}

// Skill is one thing an agent can do.
type Skill struct {
	ID, Name, Description string
	Tags, Examples        []string
}

const (
	tagsOnCard     = 3
	examplesOnCard = 2
)

func agentHref(ref string) string { return "/agents/" + ref }

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

func firstOf(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

// ErrorFallback is a whole plain error page for a failure to render the real one. It needs nothing but
// this function.
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
