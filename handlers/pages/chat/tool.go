package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/pages"
	"agentsite/handlers/pages/message"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/a2a"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/schema"
	"agentsite/internal/task"
	"agentsite/templates"
)

// toolForm is the submitted form of a tool.
type toolForm struct {
	agent, tool string
	seq         int64             // seq of the agent's message that contains the form, 0 for a tool chosen by the user
	in          url.Values        // submitted values, nil for an empty form
	wrong       map[string]string // errors by the argument's path in the schema
}

// maxHint bounds a text of an MCP server that is shown for a tool or argument, in runes. The texts are
// untrusted, so invisible characters are removed first.
const (
	maxHint = 2000
)

// argPrefix precedes the path of an argument in the names of form fields.
const argPrefix = "arg."

// tools fills in the tools of the MCP agents of a conversation, and the form of the chosen tool or of the
// message that contains a form.
func (d *Room) tools(ctx context.Context, actor ident.Actor, v *templates.ConversationView, c chat.Conversation,
	chosen toolForm) {
	if chosen.seq > 0 {
		v.Tool = d.askedTool(ctx, actor, c, chosen)
	}
	for _, m := range c.Agents() {
		a, err := d.hub.Get(ctx, actor, m.Handle)
		if err != nil || a.Kind != hub.MCP || a.ID != m.ID {
			continue
		}
		box := templates.Toolbox{Ref: a.Handle(), Title: a.Title}
		for _, t := range mcpTools(a) {
			box.Tools = append(box.Tools, templates.ToolLink{Name: t.Name,
				Title: a2a.Line(cmp.Or(t.Title, t.Name), message.MaxLabel),
				Href:  "/chat/" + c.ID + "?" + url.Values{"agent": {a.Handle()}, "tool": {t.Name}}.Encode() + "#tool"})
			if v.Tool == nil && chosen.seq == 0 && chosen.agent == a.Handle() && chosen.tool == t.Name {
				v.Tool = toolView(a.Handle(), t, chosen)
			}
		}
		if len(box.Tools) > 0 {
			v.Toolboxes = append(v.Toolboxes, box)
		}
	}
}

// askedTool returns the form in an agent's message that waits for input, nil if there is no such message.
func (d *Room) askedTool(ctx context.Context, actor ident.Actor, c chat.Conversation,
	f toolForm) *templates.ToolFormView {
	handle, ask, ok := d.askedBy(ctx, actor, c.ID, f.seq)
	if !ok {
		return nil
	}
	if f.in == nil {
		values, err := schema.ToForm(ask.Schema, ask.Arguments)
		if err != nil {
			values = nil
		}
		f.in, f.wrong = make(url.Values), ask.Wrong
		for path, value := range values {
			f.in.Set(argPrefix+path, value)
		}
	}
	t := hub.Tool{Name: ask.Tool, InputSchema: ask.Schema, ReadOnly: true}
	for _, m := range c.Agents() {
		if a, err := d.hub.Get(ctx, actor, m.Handle); err == nil && m.Handle == handle {
			if i := slices.IndexFunc(mcpTools(a), func(x hub.Tool) bool { return x.Name == ask.Tool }); i >= 0 {
				t = mcpTools(a)[i]
				t.InputSchema = ask.Schema
			}
		}
	}
	return toolView(handle, t, f)
}

// askedBy returns the handle of the agent that sent the message seq with a form, and the form.
func (d *Room) askedBy(ctx context.Context, actor ident.Actor, id string, seq int64) (handle string, f message.ToolAsk,
	ok bool) {
	m, err := d.chat.Message(ctx, actor, id, seq)
	if err != nil || m.Sender.Kind != "agent" || m.TaskState != task.InputRequired {
		return "", message.ToolAsk{}, false
	}
	for _, p := range m.Parts {
		if f, ok = message.AskedForm(p.Data); ok {
			return m.Sender.Handle, f, true
		}
	}
	return "", message.ToolAsk{}, false
}

func mcpTools(a hub.Agent) []hub.Tool {
	var conf hub.MCPConfig
	if json.Unmarshal(a.Config, &conf) != nil {
		return nil
	}
	return conf.Tools
}

// toolView returns the form for the input schema of a tool.
func toolView(handle string, t hub.Tool, f toolForm) *templates.ToolFormView {
	v := &templates.ToolFormView{Agent: handle, Seq: f.seq, Name: t.Name,
		Title: a2a.Line(cmp.Or(t.Title, t.Name), message.MaxLabel), Description: a2a.Text(t.Description, maxHint),
		ReadOnly: t.ReadOnly, Error: f.wrong[""]}
	fields, err := schema.Fields(t.InputSchema)
	if err != nil {
		v.Error = fault.As(err).Safe
		return v
	}
	for i, x := range fields {
		value := x.Default
		if f.in != nil {
			value = f.in.Get(argPrefix + x.Path)
		}
		label := a2a.Line(cmp.Or(x.Title, x.Name), message.MaxLabel)
		if within, _, ok := strings.Cut(x.Path, "."); ok && x.Path != x.Name {
			label += " (" + a2a.Line(within, message.MaxLabel) + ")"
		}
		hint := a2a.Line(x.Description, maxHint)
		if len(x.Examples) > 0 && hint == "" {
			hint = "For example " + a2a.Line(x.Examples[0], maxHint)
		}
		row := templates.ToolField{ID: "arg-" + strconv.Itoa(i), Name: argPrefix + x.Path, Label: label, Hint: hint,
			Value: value, Error: f.wrong[x.Path], Type: string(x.Type), Required: x.Required,
			Min: x.Min, Max: x.Max, MaxLength: x.MaxLength}
		for i, o := range x.Options {
			text := o
			if i < len(x.Labels) {
				text = x.Labels[i]
			}
			row.Options = append(row.Options,
				templates.Option{Value: o, Label: a2a.Line(text, message.MaxLabel), Selected: o == value})
		}
		v.Fields = append(v.Fields, row)
	}
	return v
}

// useTool sends an MCP agent of the conversation the message that runs one of its tools.
func (d *Room) useTool(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	c, err := d.chat.Get(r.Context(), actor, id)
	if err != nil {
		return err
	}
	f := toolForm{agent: in.Get("agent"), tool: in.Get("tool"), in: in}
	var inputs json.RawMessage
	title := ""
	if form := in.Get("form"); form != "" {
		f.seq, _ = strconv.ParseInt(form, 10, 64)
		handle, ask, ok := d.askedBy(r.Context(), actor, id, f.seq)
		if !ok {
			return d.showConversation(w, r, actor,
				again{code: http.StatusConflict, flash: "The agent no longer asks for that."})
		}
		f.agent, f.tool, inputs, title = handle, ask.Tool, ask.Schema, ask.Tool
	}
	agents := c.Agents()
	i := slices.IndexFunc(agents, func(m chat.Member) bool { return m.Handle == f.agent })
	if i < 0 {
		return d.showConversation(w, r, actor,
			again{code: http.StatusConflict, flash: "That agent is not in this conversation any more."})
	}
	if inputs == nil {
		a, err := d.hub.Get(r.Context(), actor, f.agent)
		if err != nil {
			return err
		}
		list := mcpTools(a)
		k := slices.IndexFunc(list, func(t hub.Tool) bool { return t.Name == f.tool })
		if k < 0 {
			return d.showConversation(w, r, actor,
				again{code: http.StatusConflict, flash: a.Name + " has no such tool any more."})
		}
		inputs, title = list[k].InputSchema, cmp.Or(list[k].Title, list[k].Name)
	}
	args, wrong, err := schema.FromForm(inputs, func(path string) (string, bool) {
		return request.NormalizeLines(in.Get(argPrefix + path)), in.Has(argPrefix + path)
	})
	if err != nil {
		return err
	}
	if wrong != nil {
		f.wrong = wrong
		return d.showConversation(w, r, actor, again{code: http.StatusBadRequest, tool: f})
	}
	data, err := json.Marshal(message.ToolCall{Tool: f.tool, Arguments: args})
	if err != nil {
		return err
	}
	client := in.Get("client_id")
	if client == "" {
		client = ident.NewID()
	}
	_, err = d.chat.Post(r.Context(), actor, id,
		chat.Draft{ClientID: client, Parts: []task.Part{task.TextPart(title),
			{Data: data, MediaType: "application/json"}}, Face: "page", To: agents[i].ID,
			Told: in["told"], Share: chat.Share(in.Get("share")), MustTell: true})
	if err == nil {
		return respond.SeeOther(w, r, "/chat/"+id)
	}
	messages, code, ok := pages.FieldErrors(w, err)
	if !ok {
		return err
	}
	f.wrong = map[string]string{"": pages.FirstError(messages, "text", "parts", "")}
	if messages["told"] != "" {
		f.wrong = map[string]string{"": "What you send leaves this portal. Read where it goes, then send it."}
	}
	return d.conversationAgain(w, r, actor, again{code: code, tool: f}, err)
}
