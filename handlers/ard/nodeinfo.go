package ard

import "net/http"

// NodeInfo describes the software to tools of the fediverse. The portal implements none of the
// protocols in the schema of 2.1, and names its own instead: readers accept any name, and a wrong
// one would be false. The number of active users is left out.

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
	Agents    int    `json:"agents"` // number of public agents
	Peers     int    `json:"peers"`  // number of active peers
	PublicKey string `json:"publicKey"`
	Catalog   string `json:"catalog"`
	Manual    string `json:"manual"`
}

// Usage holds the counts that NodeInfo publishes: accounts, messages in all conversations, and peers.
type Usage struct {
	Users, Posts int64
	Peers        int
}

func (d *Handler) nodeinfoLinks(w http.ResponseWriter, r *http.Request) error {
	body, err := encodeJSON(nodeinfoLinksJSON{[]nodeinfoLink{{nodeinfoSchema, d.cfg.URL + "/nodeinfo/2.1"}}})
	if err != nil {
		return err
	}
	sendCached(w, r, jsonType, catalogSeconds, body)
	return nil
}

func (d *Handler) serveNodeinfo(w http.ResponseWriter, r *http.Request) error {
	var u Usage
	if d.cfg.Usage != nil {
		var err error
		if u, err = d.cfg.Usage.CountUsage(r.Context()); err != nil {
			return err
		}
	}
	n := nodeinfoJSON{Version: "2.1", Protocols: []string{"a2a", "ard"}, OpenRegistrations: d.cfg.Live.OpensAccounts(),
		Metadata: nodeinfoMetadata{d.cfg.Live.NameOr(d.cfg.Name), d.cfg.Directory.Own(), u.Peers, d.cfg.PublicKey,
			d.cfg.URL + "/.well-known/ard.json", d.cfg.URL + "/docs"}}
	n.Software.Name, n.Software.Version = "agentsite", d.cfg.Version
	n.Services.Inbound, n.Services.Outbound = []string{}, []string{"atom1.0"}
	n.Usage.Users.Total, n.Usage.LocalPosts = u.Users, u.Posts
	body, err := encodeJSON(n)
	if err != nil {
		return err
	}
	sendCached(w, r, nodeinfoType, catalogSeconds, body)
	return nil
}
