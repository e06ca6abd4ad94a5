package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"agentsite/internal/testing/apptest"
)

// Elements that no page of the portal has, and attributes that hold addresses.
var (
	foreignElements = strings.Fields("iframe frame object embed applet base style math marquee video audio img image picture foreignobject animate set")
	addresses       = strings.Fields("href src srcset action formaction data poster background xlink:href")
	ownCode         = regexp.MustCompile(`^/agents/[a-z0-9-]+/qr[.]svg$`)
	spaces          = regexp.MustCompile(`[\x00-\x20]`)
	badScheme       = regexp.MustCompile(`^(javascript|data|vbscript|blob|file):`)
)

// intactHTML returns the parts of a page that could run or fetch something, as
// the script intact does in a browser. It is for pages before their scripts.
func intactHTML(page string, at *url.URL) (wrong []string) {
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return []string{err.Error()}
	}
	own := func(address string) bool {
		u, err := at.Parse(address)
		return err == nil && u.Scheme == at.Scheme && u.Host == at.Host
	}
	count := make(map[string]int)
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		tag := strings.ToLower(n.Data)
		count[tag]++
		if tag == "main" && n.Parent.Data == "body" {
			count["body > main"]++
		}
		flag := func(format string, args ...any) {
			wrong = append(wrong, fmt.Sprintf(format, args...)+" in "+tag+" "+fmt.Sprint(n.Attr))
		}
		attr := make(map[string]string)
		for _, a := range n.Attr {
			key := strings.ToLower(a.Key)
			if a.Namespace != "" {
				key = a.Namespace + ":" + key
			}
			attr[key] = a.Val
			if strings.HasPrefix(key, "on") || strings.HasPrefix(key, "hx-") || key == "style" || key == "srcdoc" || key == "ping" {
				flag("attribute %s", key)
			}
			if slices.Contains(addresses, key) && tag != "option" && badScheme.MatchString(strings.ToLower(spaces.ReplaceAllString(a.Val, ""))) {
				flag("address %s", a.Val)
			}
		}
		href, linked := attr["href"]
		switch {
		case tag == "img" && n.Parent.Data == "figure" && ownCode.MatchString(attr["src"]) && attr["srcset"] == "":
		case slices.Contains(foreignElements, tag), tag == "meta" && attr["http-equiv"] != "":
			flag("element")
		case tag == "script" && !(own(attr["src"]) && strings.Contains(attr["src"], "/static/js/")):
			flag("script")
		case tag == "link" && !own(href), tag == "form" && !own(attr["action"]):
			flag("address elsewhere")
		case tag == "a" && linked && !own(href) && !strings.Contains(attr["rel"], "noopener"):
			flag("link without noopener")
		}
	}
	if count["main"] != 1 || count["h1"] != 1 || count["body > main"] != 1 {
		wrong = append(wrong, "the page lost its shape")
	}
	return wrong
}

// gets fetches a page of the portal and fails when anything on it could run.
// It returns the page.
func gets(t *testing.T, p *apptest.Portal, c *apptest.Client, path string) string {
	t.Helper()
	at, err := url.Parse(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	a := c.Do(http.MethodGet, path, nil)
	if a.Status != http.StatusOK && a.Status != http.StatusBadRequest {
		t.Errorf("%s: %d %.300s", path, a.Status, a.Body)
	}
	for _, w := range intactHTML(a.Body, at) {
		t.Errorf("%s: %s", path, w)
	}
	return a.Body
}

// opensSafely checks that nothing runs on any of the pages, and nothing could.
// In the reduced form the browser opens one of stride pages.
func (b *tab) opensSafely(p *apptest.Portal, c *apptest.Client, stride int, paths ...string) {
	b.t.Helper()
	for i, path := range paths {
		gets(b.t.(*testing.T), p, c, path)
		if full() || i%stride == 0 {
			b.open(path)
			b.safe(path)
		}
	}
}

// linkOn returns the address of the first link on a page for which match is
// true, or "" where there is none.
func linkOn(page string, match func(a *html.Node) bool) string {
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return ""
	}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && n.Data == "a" && match(n) && !inTemplate(n) {
			return attribute(n, "href")
		}
	}
	return ""
}

func inTemplate(n *html.Node) bool {
	for up := range n.Ancestors() {
		if up.Data == "template" {
			return true
		}
	}
	return false
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// nextPage and earlierPage match the links of a list and of a conversation.
func nextPage(a *html.Node) bool { return attribute(a, "rel") == "next" }
func earlierPage(a *html.Node) bool {
	return slices.ContainsFunc(a.Parent.Attr, func(x html.Attribute) bool { return x.Key == "data-earlier" })
}
