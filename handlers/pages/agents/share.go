package agents

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentsite/handlers/address"
	"agentsite/handlers/qr"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/agentkind"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// askPath returns the path of a new chat with the agent with the text filled in. Opening it sends
// nothing.
func askPath(a hub.Agent, text string) string {
	q := "agent=" + url.QueryEscape(a.Handle())
	if text != "" {
		q += "&text=" + url.QueryEscape(text)
	}
	return "/chat/new?" + q
}

// newChat shows a new chat with the agent and the text of the link. The message is sent only when the
// reader submits the form.
func (d *Profile) newChat(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	name := r.URL.Query().Get("agent")
	if len(request.SplitValues([]string{name})) != 1 {
		q := url.Values{}
		for _, key := range []string{"agent", "text"} {
			if v := r.URL.Query().Get(key); v != "" {
				q.Set(key, v)
			}
		}
		return respond.SeeOther(w, r, strings.TrimSuffix("/chat?"+q.Encode(), "?"))
	}
	a, err := d.hub.Get(r.Context(), actor, strings.TrimSpace(name))
	if err != nil {
		return err
	}
	v := templates.AgentView{Ref: a.Handle(), Title: a.Title, Handle: d.site.FullHandle(a.Handle()), Icon: a.Icon,
		Provenance: d.site.Provenance(a), Kind: agentkind.Of(a.Kind).Label,
		TextGoesTo: d.site.TextGoesTo(a), Text: HandedOver(r), Banners: statusBanners(a, a.MayEdit(actor)),
		Owner: a.OwnerName}
	v.Tagline, _ = d.site.Describe(a.Description)
	v.NoTalk, v.LogIn = d.site.NoTalk(actor, a)
	v.Back = r.URL.RequestURI()
	p := d.site.Frame(r, actor, "Ask "+a.Title)
	p.Preview = d.preview(a, v.Tagline)
	return d.site.Render(w, r, http.StatusOK, templates.NewChat(p, v))
}

// preview returns the description of a profile for programs that preview links. It contains public facts
// only, and is nil for an agent that is not listed publicly.
func (d *Profile) preview(a hub.Agent, tagline string) *templates.Preview {
	if !a.Listable() {
		return nil
	}
	p := &templates.Preview{Title: a.Title, Description: tagline, Site: d.portal.Name(),
		URL: d.portal.URL + "/agents/" + a.Handle()}
	if a.Icon != "" {
		p.Image = d.portal.URL + address.IconPath(a)
	}
	return p
}

func (d *Profile) shareView(a hub.Agent) templates.ShareView {
	return templates.ShareView{Ref: a.Handle(), Title: a.Title, URL: d.portal.URL + "/agents/" + a.Handle(),
		AskURL: d.portal.URL + askPath(a, ""), QR: "/agents/" + a.Handle() + "/qr.svg", Hidden: !a.Listable()}
}

// agentQR answers with the QR code of the address of an agent's page, or with ?text= of the link that
// fills in the text.
func (d *Profile) agentQR(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	a, err := d.hub.Get(r.Context(), actor, request.PathName(r))
	if err != nil {
		return err
	}
	address := d.portal.URL + "/agents/" + a.Handle()
	if text := r.URL.Query().Get("text"); text != "" {
		if !utf8.ValidString(text) {
			return fault.New(fault.Invalid, "text: is not UTF-8.")
		}
		address = d.portal.URL + askPath(a, text)
	}
	if len(address) > qr.MaxText {
		return fault.New(fault.Invalid, "text: is too long for a code that a camera can read. The whole link may have %d bytes.", qr.MaxText)
	}
	who := "public"
	if !a.Listable() {
		who = "private"
	}
	// the tag depends on the address alone, because the same address always yields the same code
	sum := sha256.Sum256([]byte(address))
	tag := `"1-` + hex.EncodeToString(sum[:12]) + `"`
	h := w.Header()
	keep := func() { // called only for answers without an error, which may be cached
		h.Set("ETag", tag)
		h.Set("Cache-Control", who+", max-age=86400")
	}
	if match := r.Header.Get("If-None-Match"); match == "*" || strings.Contains(match, tag) {
		keep()
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	drawer := actor.ID
	if actor.Kind == ident.Guest {
		drawer = request.ClientAddr(r)
	}
	if wait, ok := d.codes.Allow(drawer); !ok {
		return fault.Limited(wait, "You had many codes drawn in a short time. Wait a moment.")
	}
	svg, err := qr.SVG(address)
	if err != nil {
		return err
	}
	keep()
	h.Set("Content-Type", "image/svg+xml")
	h.Set("Content-Length", strconv.Itoa(len(svg)))
	w.WriteHeader(http.StatusOK)
	w.Write(svg) // an error means that the client has disconnected
	return nil
}
