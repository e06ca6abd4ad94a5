package api

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/address"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/account"
	"agentsite/internal/fault"
	"agentsite/internal/grant"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/notify"
)

// accountAPI has the API's routes about the caller: tokens, notifications, domains, webhooks. All of them
// need an account.
type accountAPI struct {
	portal   address.Portal
	accounts *account.Service
	hub      *hub.Service
	hooks    *notify.Service
	storage  Storage
	grants   *grant.Service
}

func (d *accountAPI) apiMe(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if actor.ID == "" {
		return fault.New(fault.Unauthenticated, "Sign in, or send an API token.")
	}
	scopes := actor.Scopes
	if !actor.Narrowed {
		scopes = ident.Scopes()
	}
	u, err := d.storage.StorageOf(r.Context(), actor)
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, map[string]any{"kind": actor.Kind, "name": actor.Name, "scopes": scopes,
		"portal": d.portal.Host, "storage": map[string]int64{"bytes": u.Total, "limit": u.Bound.Total,
			"today": u.Today, "daily_limit": u.Bound.Daily}})
	return nil
}

type tokenJSON struct {
	ID        string   `json:"id"`
	Label     string   `json:"label"`
	Scopes    []string `json:"scopes"` // those of ident.Scopes, or one of ident.ProgramScope
	CreatedAt string   `json:"created_at"`
	UsedAt    string   `json:"used_at,omitempty"`
	ExpiresAt string   `json:"expires_at"`
}

func (d *accountAPI) apiTokens(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := d.accounts.Tokens(r.Context(), actor)
	if err != nil {
		return err
	}
	out := make([]tokenJSON, len(list))
	for i, c := range list {
		scopes := make([]string, len(c.Scopes))
		for j, s := range c.Scopes {
			scopes[j] = string(s)
		}
		out[i] = tokenJSON{c.ID, c.Label, scopes, respond.FormatTime(c.CreatedAt), respond.FormatTime(c.UsedAt),
			respond.FormatTime(c.ExpiresAt)}
	}
	respond.JSON(w, http.StatusOK, map[string]any{"tokens": out, "next_cursor": ""})
	return nil
}

type tokenBody struct {
	Label       string    `json:"label"`
	Scopes      scopeList `json:"scopes"`
	ExpiresDays int       `json:"expires_days"`
}

// scopeList is one scope or more. A list that a program left empty by mistake must not give all rights;
// only a body without the field does.
type scopeList []ident.Scope

// UnmarshalJSON implements json.Unmarshaler.
func (l *scopeList) UnmarshalJSON(b []byte) error {
	var list []ident.Scope
	if json.Unmarshal(b, &list) != nil || len(list) == 0 {
		return fault.Field("scopes", "list at least one, such as \"agents:read\", or leave the field out for all rights of the account")
	}
	*l = list
	return nil
}

func (d *accountAPI) apiCreateToken(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in tokenBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	if in.ExpiresDays < 0 || in.ExpiresDays > 366 {
		return fault.Field("expires_days", "use 1 to 366")
	}
	secret, err := d.accounts.CreateToken(r.Context(), actor,
		account.NewToken{Label: in.Label, Scopes: in.Scopes, Life: time.Duration(in.ExpiresDays) * 24 * time.Hour})
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusCreated, map[string]any{"token": secret})
	return nil
}

func (d *accountAPI) apiRevokeToken(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if err := d.accounts.RevokeToken(r.Context(), actor, chi.URLParam(r, "id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
