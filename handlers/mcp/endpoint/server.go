package endpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"
)

// Server is a prepared Offer. The parts of answers that are the same for all calls are encoded once. It
// is safe for concurrent use.
type Server struct {
	offer Offer
	tools map[string]*tool
	// prompts maps names to prompts of the Offer.
	prompts map[string]*Prompt

	serverMeta json.RawMessage // the _meta member with the name and version of the server
	discover   json.RawMessage
	info       json.RawMessage // identity of the server for initialize
	caps       json.RawMessage // capabilities of the server for initialize
	// The encoded lists by era: index 0 without handshake, 1 with one.
	toolList, promptList [2]json.RawMessage
	size                 int
}

// tool is a Tool with those of its arguments that clients repeat in headers.
type tool struct {
	*Tool
	bindings []binding
}

// Indexes of the two eras of versions: without handshake, and with one.
const (
	eraModern = iota
	eraHandshake
)

// Bounds of the tools of one server.
const (
	maxTools    = 500
	maxToolName = 128 // bytes
)

// NewServer prepares an offer. It returns an error for an offer that no client could use: missing
// or duplicate names, schemas that are not of an object.
func NewServer(o Offer) (*Server, error) {
	s := &Server{offer: o, tools: make(map[string]*tool, len(o.Tools)),
		prompts: make(map[string]*Prompt, len(o.Prompts))}
	if len(o.Tools) > maxTools {
		return nil, fmt.Errorf("%d tools are more than %d", len(o.Tools), maxTools)
	}
	for i := range o.Tools {
		t := &o.Tools[i]
		if t.Name == "" || len(t.Name) > maxToolName || s.tools[t.Name] != nil {
			return nil, fmt.Errorf("the name of tool %d, %.80q, is missing, too long or there twice", i, t.Name)
		}
		var kind struct{ Type string }
		if err := json.Unmarshal(t.Input, &kind); err != nil || kind.Type != "object" {
			return nil, fmt.Errorf("the schema of the tool %s is not that of an object", t.Name)
		}
		s.tools[t.Name] = &tool{t, findBindings(t.Input)}
	}
	for i := range o.Prompts {
		p := &o.Prompts[i]
		if p.Name == "" || s.prompts[p.Name] != nil {
			return nil, fmt.Errorf("the name of prompt %d is missing or there twice", i)
		}
		s.prompts[p.Name] = p
	}
	s.encodeShared()
	return s, nil
}

// encodeShared encodes the parts of answers that are the same for every caller.
func (s *Server) encodeShared() {
	o := &s.offer
	type info struct {
		Name    string `json:"name"`
		Title   string `json:"title,omitempty"`
		Version string `json:"version"`
		Website string `json:"websiteUrl,omitempty"`
	}
	self := info{o.Name, o.Title, o.Version, o.Website}
	s.info = encodeJSON(self)
	s.serverMeta = encodeJSON(map[string]any{metaServer: self})
	caps := s.capabilitiesOf(eraModern)
	s.discover = s.encodeList(map[string]any{"supportedVersions": versions, "capabilities": caps,
		"instructions": o.Instructions}, o.TTL, o.Private)
	s.caps = encodeJSON(s.capabilitiesOf(eraHandshake))
	tools, prompts := o.Tools, o.Prompts
	if tools == nil {
		tools = []Tool{}
	}
	if prompts == nil {
		prompts = []Prompt{}
	}
	s.toolList[eraModern] = s.encodeList(map[string]any{"tools": tools}, o.TTL, o.Private)
	s.toolList[eraHandshake] = encodeJSON(map[string]any{"tools": tools})
	s.promptList[eraModern] = s.encodeList(map[string]any{"prompts": prompts}, o.TTL, o.Private)
	s.promptList[eraHandshake] = encodeJSON(map[string]any{"prompts": prompts})
	for _, b := range []json.RawMessage{s.serverMeta, s.discover, s.info, s.caps, s.toolList[0], s.toolList[1],
		s.promptList[0], s.promptList[1]} {
		s.size += len(b)
	}
}

// Size returns the approximate memory of the server in bytes, for caches.
func (s *Server) Size() int { return 2*s.size + 1024 }

// encodeList encodes a list as a complete result that a client may cache for ttl.
func (s *Server) encodeList(v map[string]any, ttl time.Duration, private bool) json.RawMessage {
	v["resultType"], v["ttlMs"], v["cacheScope"], v["_meta"] = "complete", max(ttl.Milliseconds(), 0),
		cacheScope(private), s.serverMeta
	return encodeJSON(v)
}

func cacheScope(private bool) string {
	if private {
		return "private"
	}
	return "public"
}

// capabilitiesOf returns the capabilities that the server declares in an era.
func (s *Server) capabilitiesOf(era int) map[string]any {
	o := &s.offer
	caps := make(map[string]any)
	changed := func(is bool) map[string]bool {
		m := map[string]bool{}
		// Before 2026-07-28 changes come on a GET stream, which this endpoint does not serve.
		if is && era == eraModern {
			m["listChanged"] = true
		}
		return m
	}
	if len(o.Tools) > 0 {
		caps["tools"] = changed(o.Changes.Tools)
	}
	if len(o.Prompts) > 0 {
		caps["prompts"] = changed(o.Changes.Prompts)
	}
	if o.Resources != nil {
		m := changed(o.Changes.Resources)
		if o.Changes.Subscribe && era == eraModern || o.Handshake["resources/subscribe"] != nil && era == eraHandshake {
			m["subscribe"] = true
		}
		caps["resources"] = m
	}
	if o.Completer != nil {
		caps["completions"] = struct{}{}
	}
	if era == eraHandshake {
		maps.Copy(caps, o.HandshakeCapabilities)
	} else if o.Tasks != nil {
		caps["extensions"] = map[string]any{TasksExtension: struct{}{}}
	}
	return caps
}

// encodeResult encodes the object v as a result in the form of the version.
func (s *Server) encodeResult(version string, v any) json.RawMessage {
	b := encodeJSON(v)
	if version != Modern {
		return b
	}
	return s.prependMembers(b, `"resultType":"complete","_meta":`+string(s.serverMeta))
}

// encodeCached is encodeResult for a result that a client may cache for ttl.
func (s *Server) encodeCached(version string, v any, ttl time.Duration, private bool) json.RawMessage {
	b := encodeJSON(v)
	if version != Modern {
		return b
	}
	return s.prependMembers(b, fmt.Sprintf(`"resultType":"complete","ttlMs":%d,"cacheScope":%q,"_meta":%s`,
		max(ttl.Milliseconds(), 0), cacheScope(private), s.serverMeta))
}

// prependMembers inserts encoded members at the beginning of an encoded object.
func (s *Server) prependMembers(object json.RawMessage, members string) json.RawMessage {
	out := make([]byte, 0, len(object)+len(members)+2)
	out = append(append(out, '{'), members...)
	if rest := bytes.TrimSpace(object[1:]); rest[0] != '}' {
		out = append(out, ',')
	}
	return append(out, object[1:]...)
}

// encodeHandshake encodes the result of initialize for a version.
func (s *Server) encodeHandshake(version string) json.RawMessage {
	var b strings.Builder
	fmt.Fprintf(&b, `{"protocolVersion":%q,"capabilities":%s,"serverInfo":%s`, version, s.caps, s.info)
	if s.offer.Instructions != "" {
		b.WriteString(`,"instructions":`)
		b.Write(encodeJSON(s.offer.Instructions))
	}
	b.WriteByte('}')
	return json.RawMessage(b.String())
}
