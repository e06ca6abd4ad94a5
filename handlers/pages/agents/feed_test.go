package agents_test

import (
	"encoding/xml"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/hub"
	"agentsite/internal/testing/sitetest"
)

// parsedFeed is a feed as a reader sees it.
type parsedFeed struct {
	XMLName xml.Name `xml:"http://www.w3.org/2005/Atom feed"`
	ID      string   `xml:"id"`
	Title   string   `xml:"title"`
	Updated string   `xml:"updated"`
	Author  struct {
		Name string `xml:"name"`
	} `xml:"author"`
	Links []struct {
		Rel  string `xml:"rel,attr"`
		Href string `xml:"href,attr"`
	} `xml:"link"`
	Entries []struct {
		ID      string `xml:"id"`
		Title   string `xml:"title"`
		Updated string `xml:"updated"`
		Summary string `xml:"summary"`
		Link    struct {
			Href string `xml:"href,attr"`
		} `xml:"link"`
		Author struct {
			Name string `xml:"name"`
		} `xml:"author"`
	} `xml:"entry"`
}

func feedOf(t *testing.T, p sitetest.Page) (f parsedFeed) {
	t.Helper()
	if p.Is(http.StatusOK); p.Header.Get("Content-Type") != "application/atom+xml; charset=utf-8" {
		t.Fatalf("the feed is %s", p.Header.Get("Content-Type"))
	}
	if err := xml.Unmarshal([]byte(p.Body), &f); err != nil {
		t.Fatalf("%v in %s", err, p.Body)
	}
	if f.ID == "" || f.Title == "" || f.Author.Name == "" || len(f.Links) != 2 {
		t.Errorf("the feed lacks something: %+v", f)
	}
	ids := make(map[string]bool)
	for _, stamp := range append([]string{f.Updated}, each(f)...) {
		if _, err := time.Parse(time.RFC3339, stamp); err != nil {
			t.Errorf("%q is no time", stamp)
		}
	}
	for _, e := range f.Entries {
		if e.ID == "" || ids[e.ID] || e.Title == "" || e.Link.Href == "" {
			t.Errorf("entry %+v", e)
		}
		ids[e.ID] = true
	}
	return f
}

func each(f parsedFeed) (list []string) {
	for _, e := range f.Entries {
		list = append(list, e.Updated)
	}
	return list
}

func TestFeed_IsAtomOfWhatVisitorsMaySee(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann := s.Person("ann")
	if f := feedOf(t, s.Guest().Get("/agents/feed?q=says")); len(f.Entries) != 0 {
		t.Errorf("a feed of nobody: %+v", f.Entries)
	}
	for _, name := range []string{"echo", "alpha"} {
		s.AgentOf(ann, name, hub.Public)
	}
	s.AgentOf(ann, "secret", hub.Private)
	for _, b := range []*sitetest.Browser{s.Guest(), ann} {
		f := feedOf(t, b.Get("/agents/feed?q=says&kind=a2a&sort=name&cursor=x&limit=1"))
		if len(f.Entries) != 2 || f.Entries[0].Title != "Title of alpha" || f.Entries[0].Link.Href != "http://portal.test/agents/alpha" ||
			f.Entries[0].Summary != "Says alpha. And more." && f.Entries[0].Summary != "Says alpha." || f.Entries[0].Author.Name != "ann" {
			t.Errorf("entries: %+v", f.Entries)
		}
		if f.Links[0].Rel != "self" || f.Links[0].Href != "http://portal.test/agents/feed?kind=a2a&q=says" || f.Links[1].Href != "http://portal.test/agents?kind=a2a&q=says" {
			t.Errorf("links: %+v", f.Links)
		}
		if f.Updated != slices.Max(each(f)) {
			t.Errorf("changed at %s, its entries at %v", f.Updated, each(f))
		}
	}
	// Of all agents, under its own address.
	if f := feedOf(t, s.Guest().Get("/agents/feed")); len(f.Entries) != 3 || f.ID != "http://portal.test/agents/feed" || f.Links[0].Href != f.ID || f.Links[1].Href != "http://portal.test/agents" {
		t.Errorf("the feed of all: %+v", f)
	}
	s.Guest().Get("/agents/feed?sort=name&scope=moon").Is(http.StatusBadRequest)
}

func TestFeed_HostileTextsAreHarmless(t *testing.T) {
	s := sitetest.NewSite(t, account.Open)
	ann := s.Person("ann")
	kind, visibility, endpoint := hub.A2A, hub.Public, "https://evil.example/a2a"
	evil := []string{"]]><script>alert(1)</script>", "<![CDATA[ x ]]>", "&amp;&lt;entry>&#0;", "<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>&e;", "a\u202eb\ufffe\U000e0001c", "--><feed>"}
	for i, title := range evil {
		name := "evil-" + string(rune('a'+i))
		text := "Text " + title
		if _, err := s.Hub.Publish(t.Context(), ann.Actor, hub.Draft{Name: &name, Title: &title, Description: &text, Kind: &kind, Endpoint: &endpoint, Visibility: &visibility}); err != nil {
			t.Logf("%q is refused: %v", title, err)
		}
	}
	p := s.Guest().Get("/agents/feed?q=" + "%3C%2Ftitle%3E%00%1B%5D%5D%3E")
	if p.Status == http.StatusOK {
		feedOf(t, p)
	}
	p = s.Guest().Get("/agents/feed?kind=a2a")
	f := feedOf(t, p)
	if len(f.Entries) < 4 {
		t.Fatalf("%d of the titles were taken", len(f.Entries))
	}
	for _, bad := range []string{"<script", "<![CDATA[", "<!DOCTYPE", "<!ENTITY", "\x00", "\x1b", "\ufffe"} {
		if strings.Contains(p.Body, bad) {
			t.Errorf("the feed holds %q", bad)
		}
	}
	if strings.Count(p.Body, "<entry>") != len(f.Entries) || strings.Count(p.Body, "<feed") != 1 {
		t.Error("a title has become structure")
	}
}
