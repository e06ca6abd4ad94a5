package endpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"
)

// Server is an Offer made ready: what does not change between calls is
// written once. It may be used by many goroutines.
type Server struct {
	offer Offer
	tools map[string]*tool
	// prompts are by name.
	prompts map[string]*Prompt

	serverMeta json.RawMessage // {"…/serverInfo":{…}}
	discover   json.RawMessage
	info       json.RawMessage // of the handshake
	caps       json.RawMessage // of the handshake
	// The lists, without and with a handshake.
	toolList, promptList [2]json.RawMessage
	size                 int
}

// tool is a Tool with what is checked of its calls.
type tool struct {
	*Tool
	bindings []binding
}

// The two eras, as indexes.
const (
	eraModern = iota
	eraHandshake
)

// Tools as a server may have them.
const (
	maxTools    = 500
	maxToolName = 128 // bytes
)

// NewServer makes an offer ready. It returns an error for one that no client
// could use: names that are missing or there twice, schemas of no object.
func NewServer(o Offer) (*Server, error) {
	s := &Server{offer: o, tools: make(map[string]*tool, len(o.Tools)), prompts: make(map[string]*Prompt, len(o.Prompts))}
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
		s.tools[t.Name] = &tool{t, bindings(t.Input)}
	}
	for i := range o.Prompts {
		p := &o.Prompts[i]
		if p.Name == "" || s.prompts[p.Name] != nil {
			return nil, fmt.Errorf("the name of prompt %d is missing or there twice", i)
		}
		s.prompts[p.Name] = p
	}
	s.write()
	return s, nil
}

// write writes what is the same for every caller.
func (s *Server) write() {
	o := &s.offer
	type info struct {
		Name    string `json:"name"`
		Title   string `json:"title,omitempty"`
		Version string `json:"version"`
		Website string `json:"websiteUrl,omitempty"`
	}
	who := info{o.Name, o.Title, o.Version, o.Website}
	s.info = encode(who)
	s.serverMeta = encode(map[string]any{metaServer: who})
	caps := s.capabilities(eraModern)
	s.discover = s.cached(map[string]any{"supportedVersions": versions, "capabilities": caps, "instructions": o.Instructions}, o.TTL, o.Private)
	s.caps = encode(s.capabilities(eraHandshake))
	tools, prompts := o.Tools, o.Prompts
	if tools == nil {
		tools = []Tool{}
	}
	if prompts == nil {
		prompts = []Prompt{}
	}
	s.toolList[eraModern] = s.cached(map[string]any{"tools": tools}, o.TTL, o.Private)
	s.toolList[eraHandshake] = encode(map[string]any{"tools": tools})
	s.promptList[eraModern] = s.cached(map[string]any{"prompts": prompts}, o.TTL, o.Private)
	s.promptList[eraHandshake] = encode(map[string]any{"prompts": prompts})
	for _, b := range []json.RawMessage{s.serverMeta, s.discover, s.info, s.caps, s.toolList[0], s.toolList[1], s.promptList[0], s.promptList[1]} {
		s.size += len(b)
	}
}

// Size is about how many bytes the server takes in memory.
func (s *Server) Size() int { return 2*s.size + 1024 }

// cached writes a complete result that a client may keep.
func (s *Server) cached(v map[string]any, ttl time.Duration, private bool) json.RawMessage {
	v["resultType"], v["ttlMs"], v["cacheScope"], v["_meta"] = "complete", max(ttl.Milliseconds(), 0), scope(private), s.serverMeta
	return encode(v)
}

func scope(private bool) string {
	if private {
		return "private"
	}
	return "public"
}

// capabilities are what the server declares in an era.
func (s *Server) capabilities(era int) map[string]any {
	o := &s.offer
	caps := make(map[string]any)
	changed := func(is bool) map[string]bool {
		m := map[string]bool{}
		// Before 2026-07-28 changes come on a stream that is not served.
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
	if o.Complete != nil {
		caps["completions"] = struct{}{}
	}
	if era == eraHandshake {
		maps.Copy(caps, o.HandshakeCapabilities)
	} else if o.Tasks != nil {
		caps["extensions"] = map[string]any{TasksExtension: struct{}{}}
	}
	return caps
}

// complete writes a result of the era around what v has, which is an object.
func (s *Server) complete(version string, v any) json.RawMessage {
	b := encode(v)
	if version != Modern {
		return b
	}
	return s.wrap(b, `"resultType":"complete","_meta":`+string(s.serverMeta))
}

// kept is complete for a result that a client may keep.
func (s *Server) kept(version string, v any, ttl time.Duration, private bool) json.RawMessage {
	b := encode(v)
	if version != Modern {
		return b
	}
	return s.wrap(b, fmt.Sprintf(`"resultType":"complete","ttlMs":%d,"cacheScope":%q,"_meta":%s`, max(ttl.Milliseconds(), 0), scope(private), s.serverMeta))
}

// wrap puts members at the beginning of an object.
func (s *Server) wrap(object json.RawMessage, members string) json.RawMessage {
	out := make([]byte, 0, len(object)+len(members)+2)
	out = append(append(out, '{'), members...)
	if rest := bytes.TrimSpace(object[1:]); rest[0] != '}' {
		out = append(out, ',')
	}
	return append(out, object[1:]...)
}

// initialize answers the handshake.
func (s *Server) initialize(version string) json.RawMessage {
	var b strings.Builder
	fmt.Fprintf(&b, `{"protocolVersion":%q,"capabilities":%s,"serverInfo":%s`, version, s.caps, s.info)
	if s.offer.Instructions != "" {
		b.WriteString(`,"instructions":`)
		b.Write(encode(s.offer.Instructions))
	}
	b.WriteByte('}')
	return json.RawMessage(b.String())
}
