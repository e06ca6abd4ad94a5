package admin

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"agentsite/handlers/address"
	"agentsite/handlers/api"
	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/ident"
	"agentsite/internal/record"
	"agentsite/templates"
)

func (d *Pages) adminPeer(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.showPeer(w, r, actor, http.StatusOK, nil, "")
}

// showPeer shows the operator one portal. in is a policy form that was rejected, with its errors, and nil
// otherwise; release is the reason for which ending a quarantine was refused, "" otherwise.
func (d *Pages) showPeer(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int, in *ruleForm,
	release string) error {
	d.peers.Watch()
	name := api.PeerName(r)
	f, err := d.peers.Profile(r.Context(), true, name)
	if err != nil {
		return err
	}
	pol, err := d.peers.Policy(r.Context(), actor)
	if err != nil {
		return err
	}
	p := f.Peer
	v := templates.AdminPeer{PeerRow: d.peerRow(p), Ref: url.PathEscape(address.PeerRef(p)), URL: p.URL,
		Operator: p.Operator, Known: pages.FormatMoment(p.Known), Proved: pages.FormatMoment(p.Proved),
		Stand: p.Rule.Stand, Follow: p.Rule.Follow,
		DefaultAgents: pages.FormatNumber(int64(pol.MaxAgents)), CanSpeak: p.ID != "",
		Refused: p.Refused.After(clock.Now())}
	if p.Rule.MaxAgents > 0 {
		v.MaxAgents = strconv.Itoa(p.Rule.MaxAgents)
	}
	for _, s := range p.Said {
		if p.State == federation.Denied && s.Denies {
			continue // the reason for the state names this list already
		}
		text := s.Host + ", whose list is followed, " + verdictWord(s.Verdict) + " it"
		if s.Reason != "" {
			text += ": " + s.Reason
		}
		v.Lists = append(v.Lists, text)
	}
	if in != nil {
		v.Follow = in.follow
		v.Stand, v.Note, v.MaxAgents, v.Errors = in.stand, in.note, in.most, in.errors
	}
	switch p.State {
	case federation.Active, federation.Silent, federation.Stale, federation.Quarantined:
		v.Public = p.ID != ""
	}
	for _, word := range f.Words {
		v.Words = append(v.Words, d.wordRow(r, word))
	}
	for _, c := range f.Changes {
		v.Changes = append(v.Changes, templates.ChangeRow{At: pages.FormatMoment(c.At), State: string(c.State),
			StateText: stateText(c.State), Reason: c.Reason})
	}
	proof, err := d.peers.Proof(r.Context(), actor, name)
	switch {
	case err == nil:
		v.Proof = &templates.ForkView{What: recordText(proof.Type), Number: strconv.FormatInt(proof.Version.Seq, 10),
			Mark: proof.Mark, Error: release,
			A: templates.SaidView{Hash: proof.HashA, Says: proof.A, Issued: pages.FormatMoment(proof.Issued),
				Expires: pages.FormatMoment(proof.Expires)},
			B: templates.SaidView{Hash: proof.HashB, Says: proof.B, Issued: pages.FormatMoment(proof.IssuedB),
				Expires: pages.FormatMoment(proof.ExpireB)}}
	case !fault.Is(err, fault.NotFound):
		return err
	}
	return d.showAdmin(w, r, actor, code, templates.AdminView{Tab: "peers", Peer: &v})
}

// recordText returns the name of a record type for operators.
func recordText(t record.Type) string {
	switch t {
	case record.TypeHead:
		return "its signature of all of its agents,"
	case record.TypeCard:
		return "its card,"
	case record.TypeAgent:
		return "what it says of an agent,"
	}
	return string(t) + ","
}

// ruleForm holds the policy form for one portal as the operator filled it in.
type ruleForm struct {
	stand, follow, note, most string
	errors                    templates.FieldErrors
}

func (d *Pages) setPeer(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	typed := &ruleForm{stand: in.Get("policy"), note: in.Get("note"), most: strings.TrimSpace(in.Get("max_agents"))}
	most, err := typedNumber(typed.most, "max_agents")
	if err == nil {
		change := federation.RuleChange{Stand: &typed.stand, Note: &typed.note, MaxAgents: &most}
		if in.Has("follow") {
			typed.follow = in.Get("follow")
			change.Follow = &typed.follow
		}
		_, err = d.peers.SetRule(r.Context(), actor, api.PeerName(r), change)
	}
	if err != nil {
		messages, code, ok := pages.FieldErrors(w, err)
		if !ok || fault.Is(err, fault.NotFound) {
			return err
		}
		typed.errors = messages
		return d.showPeer(w, r, actor, code, typed, "")
	}
	return respond.SeeOther(w, r, "/admin/peers/"+url.PathEscape(api.PeerName(r)))
}

// typedNumber parses an optional number with or without separators; an empty text is 0.
func typedNumber(s, field string) (int, error) {
	if s = strings.NewReplacer(",", "", " ", "", "’", "").Replace(s); s == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, fault.Field(field, "must be a whole number")
	}
	return n, nil
}

func (d *Pages) forgetPeer(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	if err := d.peers.Forget(r.Context(), actor, api.PeerName(r), in.Get("note")); err != nil {
		return err
	}
	return respond.SeeOther(w, r, "/admin/peers")
}

func (d *Pages) releasePeer(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	if _, err := d.peers.Release(r.Context(), actor, api.PeerName(r), in.Get("proof"), in.Get("note")); err != nil {
		messages, code, ok := pages.FieldErrors(w, err)
		if !ok || messages["proof"] == "" && messages["note"] == "" {
			return err
		}
		return d.showPeer(w, r, actor, code, nil,
			cmp.Or(messages["note"], "There is another proof by now. Look at it first."))
	}
	return respond.SeeOther(w, r, "/admin/peers/"+url.PathEscape(api.PeerName(r)))
}

func (d *Pages) attestPeer(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	if err := d.peers.Attest(r.Context(), actor, api.PeerName(r), in.Get("verdict"), in.Get("reason")); err != nil {
		return err
	}
	return respond.SeeOther(w, r, "/admin/peers/"+url.PathEscape(api.PeerName(r)))
}
