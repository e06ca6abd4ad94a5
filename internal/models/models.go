// Package models keeps the named models that agents use: those of the portal, which the operator pays and all accounts
// may use, and those of accounts.
package models

import (
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"agentsite/internal/fault"
	"agentsite/internal/plaintext"
	"agentsite/internal/usage"
	"agentsite/internal/weborigin"
)

// Provider is the protocol of a model's server.
type Provider string

// The providers. The zero Provider is OpenAI.
const (
	OpenAI    Provider = "openai"
	Anthropic Provider = "anthropic"
)

// Server is a server of models.
type Server struct {
	Provider Provider
	URL      string // base of its API, usually ending in /v1
	Key      string // "" for none
}

// Default is the name of the portal's model for agents that name none.
const Default = "default"

// Bounds of the models of one account and of the portal.
const (
	MaxModels = 50
	maxURL    = 500
	maxModel  = 200
	maxKey    = 2000
)

// Model is a named model.
type Model struct {
	ID      string // ULID; the sealed key is bound to it
	OwnerID string // "" for the portal's
	Name    string // as agents name it
	// Provider, URL and Model say where it is and its name there.
	Provider Provider
	URL      string
	Model    string
	// Fallback is the name of another model that is asked when this one fails before its first token.
	Fallback string
	// Price is zero if the price is in the operator's file (usage.PricesFile), by the name of Model.
	Price  usage.Price
	HasKey bool
	// Fixed is true for the model in the portal's settings, which cannot be changed here.
	Fixed     bool
	CreatedAt time.Time
	UpdatedAt time.Time
}

// originOf returns the scheme and host of an address.
func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// IsPortal reports whether the model is the portal's own, so that the operator pays for it.
func (m Model) IsPortal() bool { return m.OwnerID == "" }

// Draft is a new model or a change of one: nil fields stay as they are.
type Draft struct {
	Name, URL, Model, Fallback, Key *string
	Provider                        *Provider
	Price                           *usage.Price
}

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,39}$`)

// apply changes m as the draft says and checks the result, its address by addresses unless that is nil.
func (d Draft) apply(m *Model, addresses AddressPolicy) error {
	set := func(to *string, from *string) {
		if from != nil {
			*to = strings.TrimSpace(*from)
		}
	}
	set(&m.Name, d.Name)
	set(&m.URL, d.URL)
	set(&m.Model, d.Model)
	set(&m.Fallback, d.Fallback)
	m.URL = weborigin.ASCIIAddress(weborigin.CompleteAddress(strings.TrimRight(m.URL, "/")))
	if d.Provider != nil {
		m.Provider = *d.Provider
	}
	if m.Provider == "" {
		m.Provider = OpenAI
	}
	if d.Price != nil {
		m.Price = *d.Price
	}
	var c fault.Check
	c.Field(nameForm.MatchString(m.Name), "name", "use up to 40 of a-z, 0-9, dot, dash and underscore")
	c.Field(m.Provider == OpenAI || m.Provider == Anthropic, "provider", "use %s or %s", OpenAI, Anthropic)
	c.Field(m.Model != "" && len(m.Model) <= maxModel && m.Model == plaintext.OneLine(m.Model), "model",
		"write the name that the server knows, on one line, at most %d characters", maxModel)
	c.Field(m.Fallback == "" || nameForm.MatchString(m.Fallback) && m.Fallback != m.Name, "fallback",
		"name another model, or leave it empty")
	c.Field(m.Price.Valid(), "price", "use 0 to 100000 for a million tokens")
	if d.Key != nil {
		key := *d.Key
		c.Field(len(key) <= maxKey && utf8.ValidString(key) && !strings.ContainsFunc(key, func(r rune) bool {
			return r <= ' ' || r > '~'
		}), "key", "a key has no spaces, line breaks or special letters")
	}
	why := ""
	switch u, err := url.Parse(m.URL); {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || len(m.URL) > maxURL:
		why = "write the base of the API, for example https://api.openai.com/v1"
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		why = "leave user, password, query and fragment out"
	case strings.HasSuffix(u.Path, "/chat/completions") || strings.HasSuffix(u.Path, "/messages"):
		why = "give the base of the API, without /chat/completions or /messages"
	case addresses != nil:
		if err := addresses.CheckURL(m.URL); err != nil {
			why = err.Error()
		}
	}
	c.Field(why == "", "url", "%s", why)
	return c.Err()
}
