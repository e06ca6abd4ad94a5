package a2a

import (
	"cmp"
	"slices"
	"strconv"

	"agentsite/internal/hub"
	"agentsite/internal/team/aware"
)

// Face holds the addresses and texts on the card of an agent of this portal that do not come from the
// agent itself.
type Face struct {
	// Base is the URL of both bindings, without a slash at its end.
	Base string
	// Provider and Home are the portal's name and URL, Page the agent's page for people, Icon its
	// picture or "".
	Provider, Home, Page, Icon string
	// Open is true if guests may call the agent, so that the card demands no credential.
	Open bool
	// Only10 omits the fields for clients of 0.3: the test suite of 1.0 rejects fields that 1.0 does
	// not have.
	Only10 bool
}

// AgentCard is an agent card of A2A 1.0 (§4.4) as this portal writes it, with additional fields for
// clients of 0.3.
type AgentCard struct {
	Name          string                    `json:"name"`
	Description   string                    `json:"description"`
	Version       string                    `json:"version"`
	Interfaces    []CardInterface           `json:"supportedInterfaces"`
	Provider      CardProvider              `json:"provider"`
	Documentation string                    `json:"documentationUrl,omitempty"`
	Icon          string                    `json:"iconUrl,omitempty"`
	Capabilities  CardCapabilities          `json:"capabilities"`
	Schemes       map[string]SecurityScheme `json:"securitySchemes"`
	Requirements  []SecurityRequirement     `json:"securityRequirements,omitempty"`
	InputModes    []string                  `json:"defaultInputModes"`
	OutputModes   []string                  `json:"defaultOutputModes"`
	Skills        []CardSkill               `json:"skills"`
	Signatures    []CardSignature           `json:"signatures,omitempty"`

	// Fields that only clients of 0.3 read. They are empty with Face.Only10.
	URL03          string                `json:"url,omitempty"`
	Transport03    string                `json:"preferredTransport,omitempty"`
	Version03      string                `json:"protocolVersion,omitempty"`
	Security03     []map[string][]string `json:"security,omitempty"`
	ExtendedCard03 bool                  `json:"supportsAuthenticatedExtendedCard,omitempty"`
}

// CardInterface is one address of the agent with its binding and protocol version.
type CardInterface struct {
	URL     string `json:"url"`
	Binding string `json:"protocolBinding"`
	Version string `json:"protocolVersion"`
}

// CardProvider is the organization behind the agent's address: here always this portal.
type CardProvider struct {
	Organization string `json:"organization"`
	URL          string `json:"url"`
}

// CardCapabilities lists the optional parts of the protocol that the agent supports.
type CardCapabilities struct {
	Streaming  bool            `json:"streaming"`
	Push       bool            `json:"pushNotifications"`
	Extended   bool            `json:"extendedAgentCard"`
	Extensions []CardExtension `json:"extensions,omitempty"`
}

// CardExtension announces an extension of the protocol, identified by its URI.
type CardExtension struct {
	URI         string         `json:"uri"`
	Description string         `json:"description"`
	Required    bool           `json:"required"`
	Params      map[string]any `json:"params,omitempty"`
}

// SecurityScheme is HTTP authentication, the only kind of credential that this portal accepts. It has
// the forms of both versions, as in cards of the SDKs' own servers.
type SecurityScheme struct {
	HTTP HTTPAuth `json:"httpAuthSecurityScheme"`
	Type string   `json:"type,omitempty"`
	*HTTPAuth
}

// HTTPAuth describes a scheme of the Authorization header.
type HTTPAuth struct {
	Description string `json:"description"`
	Scheme      string `json:"scheme"`
}

// SecurityRequirement lists the schemes that a call must satisfy, all of them together.
type SecurityRequirement struct {
	Schemes map[string]ScopeList `json:"schemes"`
}

// ScopeList is a list of OAuth scopes. It is always empty here, because the scheme is not OAuth.
type ScopeList struct {
	List []string `json:"list"`
}

// CardSkill is one ability of the agent. The protocol requires all fields but Examples.
type CardSkill struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
	Examples    []string `json:"examples,omitempty"`
}

// schemeName is the name under which a card refers to the portal's API tokens.
const schemeName = "bearer"

// MakeCard builds the card of an agent of this portal. Lists that the protocol requires hold at least
// one element (§5.7), even if the agent's owner left them empty.
func MakeCard(a hub.Agent, f Face) AgentCard {
	c := AgentCard{
		Name: cmp.Or(a.Title, a.Name), Version: strconv.Itoa(max(a.Version, 1)),
		Provider: CardProvider{f.Provider, f.Home}, Documentation: f.Page, Icon: f.Icon,
		Interfaces: []CardInterface{
			{f.Base, BindingRPC, Version10},
			{f.Base, BindingREST, Version10},
			{f.Base, BindingRPC, Version03},
		},
		Capabilities: CardCapabilities{Streaming: true, Push: true, Extended: true,
			Extensions: slices.Clone(extensions)},
		InputModes: a.InputModes, OutputModes: a.OutputModes,
	}
	if aware.TakesDocuments(a.InputModes) {
		c.Capabilities.Extensions = append(c.Capabilities.Extensions, CardExtension{URI: aware.Extension,
			Description: "The agent speaks for itself in teams: it gets the legal moves and answers with one."})
	}
	c.Description = cmp.Or(a.Description, c.Name)
	bearer := HTTPAuth{"An API token of an account of this portal, with the scope chat:write.", "Bearer"}
	c.Schemes = map[string]SecurityScheme{schemeName: {bearer, "http", &bearer}}
	if !f.Open {
		c.Requirements = []SecurityRequirement{{map[string]ScopeList{schemeName: {[]string{}}}}}
		c.Security03 = []map[string][]string{{schemeName: {}}}
	}
	c.URL03, c.Transport03, c.Version03, c.ExtendedCard03 = f.Base, BindingRPC, "0.3.0", true
	if f.Only10 {
		c.URL03, c.Transport03, c.Version03, c.ExtendedCard03, c.Security03 = "", "", "", false, nil
		c.Interfaces = c.Interfaces[:2]
		c.Schemes[schemeName] = SecurityScheme{HTTP: bearer}
	}
	if len(c.InputModes) == 0 {
		c.InputModes = []string{"text/plain"}
	}
	if len(c.OutputModes) == 0 {
		c.OutputModes = []string{"text/plain"}
	}
	for _, s := range a.Skills {
		if len(s.Tags) == 0 {
			s.Tags = []string{s.ID}
		}
		c.Skills = append(c.Skills, CardSkill{s.ID, s.Name, cmp.Or(s.Description, s.Name), s.Tags, s.Examples})
	}
	if len(c.Skills) == 0 {
		c.Skills = []CardSkill{{ID: "talk", Name: "Talk", Description: c.Description, Tags: []string{"talk"}}}
	}
	return c
}
