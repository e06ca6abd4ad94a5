package a2a

import (
	"encoding/base64"
	"encoding/json"

	"agentsite/internal/task"
)

// The format of requests, by version and binding: 1.0 in both bindings; 0.3 over JSON-RPC with "kind";
// 0.3 over HTTP+JSON as its protobuf JSON.

type object map[string]any

// sendParams builds the parameters of SendMessage. If wait is false, the agent is asked to answer at
// once with the new task.
func (c *Client) sendParams(m Message, wait bool) any {
	msg := object{"messageId": m.ID}
	if m.ContextID != "" {
		msg["contextId"] = m.ContextID
	}
	if m.TaskID != "" {
		msg["taskId"] = m.TaskID
	}
	meta, used := object{}, []string(nil)
	if m.Speaker != nil {
		meta[ExtSpeaker], used = m.Speaker, append(used, ExtSpeaker)
	}
	if m.Tools != nil {
		meta[ExtTools], used = m.Tools, append(used, ExtTools)
	}
	if len(used) > 0 {
		msg["metadata"], msg["extensions"] = meta, used
	}
	config := object{}
	switch {
	case c.ep.Version == Version10:
		msg["role"] = "ROLE_USER"
		msg["parts"] = m.Parts
		if !wait {
			config["returnImmediately"] = true
		}
	case c.ep.Binding == BindingRPC:
		msg["kind"] = "message"
		msg["role"] = "user"
		msg["parts"] = mapParts(m.Parts, writePartRPC03)
		config["blocking"] = wait
	default:
		msg["role"] = "ROLE_USER"
		msg["content"] = mapParts(m.Parts, writePartREST03)
		config["blocking"] = wait
	}
	params := object{"message": msg}
	if len(config) > 0 {
		params["configuration"] = config
	}
	if c.ep.Tenant != "" && c.ep.Version == Version10 && c.ep.Binding == BindingRPC {
		params["tenant"] = c.ep.Tenant
	}
	return params
}

// taskParams builds the parameters of methods that name a task. history is the number of messages to
// return; 0 leaves the choice to the agent.
func (c *Client) taskParams(id string, history int) object {
	params := object{"id": id}
	if history > 0 {
		params["historyLength"] = history
	}
	if c.ep.Tenant != "" && c.ep.Version == Version10 {
		params["tenant"] = c.ep.Tenant
	}
	return params
}

func mapParts(parts []task.Part, one func(task.Part) object) []object {
	out := make([]object, len(parts))
	for i, p := range parts {
		out[i] = one(p)
	}
	return out
}

func writePartRPC03(p task.Part) object {
	o := object{}
	switch {
	case p.URL != "" || len(p.Raw) > 0:
		f := object{"mimeType": p.MediaType, "name": p.Filename, "uri": p.URL}
		if len(p.Raw) > 0 {
			f["bytes"] = base64.StdEncoding.EncodeToString(p.Raw)
		}
		o["kind"], o["file"] = "file", dropEmpty(f)
	case len(p.Data) > 0:
		o["kind"], o["data"] = "data", p.Data
	default:
		o["kind"], o["text"] = "text", p.Text
	}
	return withMeta(o, p.SharedMetadata())
}

func writePartREST03(p task.Part) object {
	o := object{}
	switch {
	case p.URL != "" || len(p.Raw) > 0:
		f := object{"mimeType": p.MediaType, "name": p.Filename, "fileWithUri": p.URL}
		if len(p.Raw) > 0 {
			// Encoded twice, as the 0.3 SDKs do: the field has type bytes in the protobuf, and the bytes
			// are themselves a base64 string.
			once := base64.StdEncoding.EncodeToString(p.Raw)
			f["fileWithBytes"] = base64.StdEncoding.EncodeToString([]byte(once))
		}
		o["file"] = dropEmpty(f)
	case len(p.Data) > 0:
		o["data"] = object{"data": p.Data}
	default:
		o["text"] = p.Text
	}
	return withMeta(o, p.SharedMetadata())
}

// dropEmpty removes the members of o that are empty strings and returns o.
func dropEmpty(o object) object {
	for k, v := range o {
		if v == "" {
			delete(o, k)
		}
	}
	return o
}

func withMeta(o object, meta json.RawMessage) object {
	if len(meta) > 0 {
		o["metadata"] = meta
	}
	return o
}
