package settings

import (
	"fmt"
	"unicode/utf8"

	"agentsite/internal/adjust"
)

// maxName, maxContact and maxRules bound the texts of the portal about itself, in characters.
const (
	maxName    = 80
	maxContact = 1000
	maxRules   = 8000
)

// field returns the field of a setting that an operator can change in the browser, nil for other names.
func (c *Config) field(name string) *string {
	switch name {
	case adjust.Name:
		return &c.Name
	case adjust.Contact:
		return &c.Contact
	case adjust.Rules:
		return &c.Rules
	case adjust.Accounts:
		return &c.Accounts
	case adjust.Guests:
		return &c.Guests
	case adjust.Limits:
		return &c.Limits
	}
	return nil
}

// With returns the settings with one changed, as an operator may do in the browser. The result is valid.
func (c Config) With(name, value string) (Config, error) {
	field := c.field(name)
	if field == nil {
		return c, fmt.Errorf("%q is no setting that can be changed here", name)
	}
	*field = value
	return c, c.Validate()
}

// Adjustable returns the values of the settings that an operator can change in the browser.
func (c Config) Adjustable() adjust.Values {
	out := make(adjust.Values)
	for _, name := range adjust.Names() {
		out[name] = *c.field(name)
	}
	return out
}

func (c Config) checkTexts() error {
	for _, t := range []struct {
		name, text string
		most       int
	}{{adjust.Name, c.Name, maxName}, {adjust.Contact, c.Contact, maxContact}, {adjust.Rules, c.Rules, maxRules}} {
		if utf8.RuneCountInString(t.text) > t.most || !utf8.ValidString(t.text) {
			return fmt.Errorf("--%s: use at most %d characters", t.name, t.most)
		}
		for _, r := range t.text {
			if r < ' ' && (r != '\n' || t.name == adjust.Name) || r == 0x7f {
				return fmt.Errorf("--%s: control characters cannot be used", t.name)
			}
		}
	}
	return nil
}
