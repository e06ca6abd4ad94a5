package ard

import "net/http"

// NodeInfo tells tools of the fediverse what runs here. The portal speaks none
// of the protocols that the schema of 2.1 lists, and names its own instead:
// readers take any name, and a wrong one would be a lie. How many people use
// the portal is not said.

const (
	nodeinfoSchema = "http://nodeinfo.diaspora.software/ns/schema/2.1"
	nodeinfoType   = `application/json; profile="` + nodeinfoSchema + `#"; charset=utf-8`
)

type nodeinfoLinksJSON struct {
	Links []nodeinfoLink `json:"links"`
}

type nodeinfoLink struct {
	Rel  string `json:"rel"`
	Href string `json:"href"`
}

type nodeinfoJSON struct {
	Version  string `json:"version"`
	Software struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"software"`
	Protocols []string `json:"protocols"`
	Services  struct {
		Inbound  []string `json:"inbound"`
		Outbound []string `json:"outbound"`
	} `json:"services"`
	OpenRegistrations bool `json:"openRegistrations"`
	Usage             struct {
		Users struct {
			Total int64 `json:"total"`
		} `json:"users"`
		LocalPosts int64 `json:"localPosts"`
	} `json:"usage"`
	Metadata nodeinfoMetadata `json:"metadata"`
}

type nodeinfoMetadata struct {
	NodeName  string `json:"nodeName"`
	Agents    int    `json:"agents"` // public ones
	Peers     int    `json:"peers"`  // other portals of the network that are there
	PublicKey string `json:"publicKey"`
	Catalog   string `json:"catalog"`
	Manual    string `json:"manual"`
}

// Usage is how much a portal is used, for tools that count the fediverse: its
// accounts, what was said in all conversations, and other portals.
type Usage struct {
	Users, Posts int64
	Peers        int
}

func (d *Door) nodeinfoLinks(w http.ResponseWriter, r *http.Request) error {
	body, err := encode(nodeinfoLinksJSON{[]nodeinfoLink{{nodeinfoSchema, d.cfg.URL + "/nodeinfo/2.1"}}})
	if err != nil {
		return err
	}
	sendCached(w, r, jsonType, catalogSeconds, body)
	return nil
}

func (d *Door) nodeinfo(w http.ResponseWriter, r *http.Request) error {
	var u Usage
	if d.cfg.Usage != nil {
		var err error
		if u, err = d.cfg.Usage(r.Context()); err != nil {
			return err
		}
	}
	n := nodeinfoJSON{Version: "2.1", Protocols: []string{"a2a", "ard"}, OpenRegistrations: d.cfg.OpenAccounts,
		Metadata: nodeinfoMetadata{d.cfg.Name, d.cfg.Directory.Own(), u.Peers, d.cfg.PublicKey, d.cfg.URL + "/.well-known/ard.json", d.cfg.URL + "/docs"}}
	n.Software.Name, n.Software.Version = "agentsite", d.cfg.Version
	n.Services.Inbound, n.Services.Outbound = []string{}, []string{"atom1.0"}
	n.Usage.Users.Total, n.Usage.LocalPosts = u.Users, u.Posts
	body, err := encode(n)
	if err != nil {
		return err
	}
	sendCached(w, r, nodeinfoType, catalogSeconds, body)
	return nil
}
