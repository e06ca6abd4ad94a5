package chat

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/address"
	"agentsite/handlers/api"
	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// settingsAgain holds the result of a form to show on the settings page: its errors, or the link that it
// created.
type settingsAgain struct {
	code   int
	errs   templates.FieldErrors
	in     url.Values // submitted values, to show them again
	link   string     // address with the secret of the new link, which only this page shows
	linkIs chat.LinkKind
	saved  bool
}

func (d *Room) chatSettings(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.showSettings(w, r, actor, settingsAgain{code: http.StatusOK, saved: r.URL.Query().Has("saved")})
}

func (d *Room) showSettings(w http.ResponseWriter, r *http.Request, actor ident.Actor, a settingsAgain) error {
	ctx, id := r.Context(), chi.URLParam(r, "id")
	c, err := d.chat.Get(ctx, actor, id)
	if err != nil {
		return err
	}
	who, role, s := d.messages.Speakers(ctx, actor), api.RoleIn(actor, c), c.Settings
	v := templates.ChatSettingsView{ID: c.ID, Title: c.Title, Owner: role == chat.RoleOwner,
		Reader: role == chat.RoleReader, Guest: actor.Kind == ident.Guest,
		Speaks: string(s.Speaks), Past: string(s.Past), Hops: strconv.Itoa(s.Hops), Turns: strconv.Itoa(s.Turns),
		Budget:  strconv.Itoa(s.Budget >> 10),
		MaxHops: chat.MaxSettings.Hops, MaxTurns: chat.MaxSettings.Turns, MaxBudget: chat.MaxSettings.Budget >> 10,
		NewLink: a.link, NewLinkIs: string(a.linkIs), Errors: a.errs, Lives: linkLives,
		CanDelete: !slices.ContainsFunc(c.Members,
			func(m chat.Member) bool { return m.Kind != "agent" && !api.IsMe(actor, m) })}
	for _, m := range c.Agents() {
		if m.ID == s.SpeakerID {
			v.Speaker = m.Handle
		}
		v.Agents = append(v.Agents, templates.Option{Value: m.Handle,
			Label: who(chat.Sender{Kind: "agent", ID: m.ID, Handle: m.Handle}).Title + " (@" + m.Handle + ")"})
	}
	if a.in != nil && a.in.Get("form") == "room" {
		v.Speaks, v.Speaker, v.Past = a.in.Get("speaks"), a.in.Get("speaker"), a.in.Get("past")
		v.Hops, v.Turns, v.Budget = a.in.Get("hops"), a.in.Get("turns"), a.in.Get("budget")
	}
	told, err := d.chat.Disclosures(ctx, actor, c.ID)
	if err != nil {
		return err
	}
	for _, x := range told {
		v.Disclosures = append(v.Disclosures,
			templates.DisclosureView{Agent: x.Agent, Title: who(chat.Sender{Kind: "agent", Handle: x.Agent}).Title,
				Host: x.Host, Share: string(x.Share)})
	}
	if !v.Guest && !v.Reader {
		links, err := d.chat.Links(ctx, actor, c.ID)
		if err != nil {
			return err
		}
		for _, l := range links {
			v.Links = append(v.Links, linkView(l))
		}
	}
	p := d.site.Frame(r, actor, "Settings of "+cmp.Or(c.Title, "a conversation"))
	if a.saved {
		p.Flash = "Saved."
	}
	return d.site.Render(w, r, a.code, templates.ChatSettings(p, v))
}

func linkView(l chat.Link) templates.ChatLink {
	v := templates.ChatLink{ID: l.ID, Kind: string(l.Kind), Role: l.Role, By: l.Creator.Handle,
		Created: pages.FormatMoment(l.CreatedAt), Expires: pages.FormatMoment(l.ExpiresAt)}
	switch {
	case l.Kind != chat.JoinLink:
	case l.MaxUses > 0:
		v.Used = strconv.Itoa(l.Uses) + " of " + strconv.Itoa(l.MaxUses) + " joined"
	case l.Uses > 0:
		v.Used = strconv.Itoa(l.Uses) + " joined"
	}
	return v
}

// linkLives are the lifetimes that the form offers for links, in days; every link expires.
var linkLives = []templates.Option{
	{Value: "1", Label: "in a day"},
	{Value: "7", Label: "in 7 days", Selected: true},
	{Value: "30", Label: "in 30 days"},
	{Value: "365", Label: "in a year"},
}

// setChat stores the settings of the conversation, or how much its agents receive.
func (d *Room) setChat(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	if in.Get("form") == "share" {
		err = d.setShares(r, actor, id, in)
	} else {
		var c chat.Change
		if c, err = changeOf(in); err == nil {
			_, err = d.chat.Set(r.Context(), actor, id, c)
		}
	}
	if err == nil {
		return respond.SeeOther(w, r, address.ChatPath(id)+"/settings?saved=1")
	}
	return d.settingsAgain(w, r, actor, in, err)
}

// settingsAgain shows the settings with the errors of a form. If the actor can no longer see the
// conversation, it returns an error instead.
func (d *Room) settingsAgain(w http.ResponseWriter, r *http.Request, actor ident.Actor, in url.Values,
	err error) error {
	messages, code, ok := pages.FieldErrors(w, err)
	if !ok {
		return err
	}
	if _, gone := d.chat.Get(r.Context(), actor, chi.URLParam(r, "id")); gone != nil {
		return gone
	}
	for name, text := range messages {
		if !slices.Contains(settingsFields, name) {
			messages[""] = text
		}
	}
	return d.showSettings(w, r, actor, settingsAgain{code: code, errs: messages, in: in})
}

// settingsFields are the form fields that show their error beside them; other errors are shown at the
// top.
var settingsFields = []string{"speaks", "speaker", "past", "hops", "turns", "budget", "role", "uses"}

// shareField precedes an agent's handle in the name of the form field about data shared with it.
const shareField = "share."

func (d *Room) setShares(r *http.Request, actor ident.Actor, id string, in url.Values) error {
	n := 0
	for name := range in {
		agent, ok := strings.CutPrefix(name, shareField)
		if !ok {
			continue
		}
		if n++; n > chat.MaxMembers {
			break
		}
		if err := d.chat.Disclose(r.Context(), actor, id, agent, chat.Share(in.Get(name))); err != nil {
			return err
		}
	}
	return nil
}

// changeOf parses the form of the conversation's settings. A missing field leaves the setting unchanged.
func changeOf(in url.Values) (c chat.Change, err error) {
	var check fault.Check
	if in.Has("speaks") {
		c.Speaks = new(chat.Speaks(in.Get("speaks")))
	}
	if s := in.Get("speaker"); s != "" && in.Get("speaks") == string(chat.SpeaksAgent) {
		c.Speaker = &s
	}
	if in.Has("past") {
		c.Past = new(chat.Past(in.Get("past")))
	}
	count := func(name string, unit int) *int {
		if !in.Has(name) {
			return nil
		}
		n, err := strconv.Atoi(strings.TrimSpace(in.Get(name)))
		check.Field(err == nil && n >= 0 && n <= 1<<20, name, "give a whole number")
		return new(n * unit)
	}
	c.Hops, c.Turns, c.Budget = count("hops", 1), count("turns", 1), count("budget", 1<<10)
	return c, check.Err()
}

// makeLink creates a link to the conversation and shows its address, which contains a secret and cannot
// be shown again.
func (d *Room) makeLink(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.KnownForm(w, r, "kind", "role", "uses", "life")
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	draft := chat.LinkDraft{Kind: chat.LinkKind(in.Get("kind")), Role: in.Get("role")}
	var check fault.Check
	if s := strings.TrimSpace(in.Get("uses")); s != "" {
		draft.MaxUses, err = strconv.Atoi(s)
		check.Field(err == nil && draft.MaxUses > 0, "uses", "give a whole number, or nothing")
	}
	if s := in.Get("life"); s != "" {
		days, err := strconv.Atoi(s)
		check.Field(err == nil && days > 0 && days <= 365, "life", "choose one of the times")
		draft.Life = time.Duration(days) * 24 * time.Hour
	}
	var secret string
	if err = check.Err(); err == nil {
		_, secret, err = d.chat.NewLink(r.Context(), actor, id, draft)
	}
	if err != nil {
		return d.settingsAgain(w, r, actor, in, err)
	}
	path := "/join/"
	if draft.Kind == chat.ReadLink {
		path = "/shared/"
	}
	return d.showSettings(w, r, actor, settingsAgain{code: http.StatusCreated, link: d.portal.URL + path + secret,
		linkIs: draft.Kind})
}

// endLink revokes a link at once.
func (d *Room) endLink(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	if err := d.chat.DropLink(r.Context(), actor, id, in.Get("link")); err != nil {
		return d.settingsAgain(w, r, actor, in, err)
	}
	return respond.SeeOther(w, r, address.ChatPath(id)+"/settings#links")
}
