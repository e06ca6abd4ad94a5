package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/pages/message"
	"agentsite/handlers/respond"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// exportPage bounds the messages of one read, so that memory does not bound an export.
const exportPage = 200

// exporter writes a conversation in one format. writeStart comes first, writeEnd last, and no method is
// called after an error.
type exporter interface {
	writeStart(chat.Conversation) error
	writeMessage(chat.Message) error
	writeEnd() error
}

// apiExport writes the visible part of a conversation as Markdown, or as JSON with ?format=json or Accept:
// application/json.
func (d *chatAPI) apiExport(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	id := chi.URLParam(r, "id")
	c, err := d.chat.Get(r.Context(), actor, id)
	if err != nil {
		return err
	}
	format := r.URL.Query().Get("format")
	if format == "" && strings.Contains(r.Header.Get("Accept"), "application/json") {
		format = "json"
	}
	var out exporter
	kind, end := "text/markdown", "md"
	switch format {
	case "json":
		kind, end = "application/json", "json"
		out = &jsonExport{w: w}
	case "", "markdown", "md":
		out = &markdownExport{w: w, portal: d.portal.Host, url: d.portal.URL, said: make(map[int64]string)}
	default:
		return fault.Field("format", "use markdown or json")
	}
	if err := respond.BeginDownload(r.Context(), w, actor); err != nil {
		return err
	}
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", kind+"; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="conversation-`+c.ID+`.`+end+`"`)
	if out.writeStart(c) != nil {
		return nil // the client has disconnected
	}
	for after := int64(0); ; {
		list, more, err := d.chat.Messages(r.Context(), actor, id,
			chat.Span{After: after, Limit: exportPage, Bytes: respond.ChunkBytes})
		if err != nil {
			d.log.Warn("export broke off", "conversation", id, "error", err)
			// aborted, so that the client does not take an incomplete export for a complete one
			panic(http.ErrAbortHandler)
		}
		for _, m := range list {
			after = m.Seq
			if m.Kind.Amends() {
				continue // edits, deletions and reactions are shown in the message they change
			}
			if out.writeMessage(m) != nil {
				return nil
			}
		}
		if !more {
			break
		}
	}
	_ = out.writeEnd() // an error means that the client has disconnected
	return nil
}

// jsonExport writes a conversation as one JSON document with messages in the form of the API.
type jsonExport struct {
	w     io.Writer
	comma string
}

func (e *jsonExport) writeStart(c chat.Conversation) error {
	b, err := json.Marshal(newConversationJSON(c))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.w, `{"conversation":%s,"messages":[`, b)
	return err
}

func (e *jsonExport) writeMessage(m chat.Message) error {
	b, err := json.Marshal(NewMessageJSON(m))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.w, "%s\n%s", e.comma, b)
	e.comma = ","
	return err
}

func (e *jsonExport) writeEnd() error {
	_, err := fmt.Fprint(e.w, "\n]}\n")
	return err
}

// markdownExport writes Markdown for people. It keeps the beginnings of up to rememberSaid messages by
// seq, to quote them in replies.
type markdownExport struct {
	w           io.Writer
	portal, url string
	said        map[int64]string
}

const (
	rememberSaid = 10_000 // number of messages with a kept beginning
	quotedRunes  = 120
)

func (e *markdownExport) writeStart(c chat.Conversation) error {
	var who []string
	for _, m := range c.Members {
		who = append(who, m.Handle)
	}
	_, err := fmt.Fprintf(e.w, "# %s\n\nOn %s, begun %s. Members: %s.\n", inline(cmp.Or(c.Title, "Conversation")),
		e.portal,
		exportTime(c.CreatedAt), inline(strings.Join(who, ", ")))
	return err
}

func exportTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// inline replaces line breaks by spaces, so that a title or name cannot start a new Markdown block.
func inline(s string) string { return strings.Join(strings.Fields(s), " ") }

func (e *markdownExport) writeMessage(m chat.Message) error {
	text := strings.TrimSpace(e.text(m.Parts))
	if m.Kind == chat.Event && m.Sender.Kind != "agent" {
		_, err := fmt.Fprintf(e.w, "\n*%s* (%s)\n", inline(text), exportTime(m.CreatedAt))
		return err
	}
	if len(e.said) >= rememberSaid {
		clear(e.said)
	}
	e.said[m.Seq] = m.Sender.Handle + ": " + cut(inline(text), quotedRunes)
	var b strings.Builder
	fmt.Fprintf(&b, "\n---\n\n**%s** (%s), %s", inline(m.Sender.Handle), m.Sender.Kind, exportTime(m.CreatedAt))
	if n := m.Now; !n.UnsaidAt.IsZero() {
		fmt.Fprintf(&b, ":\n\n*deleted by %s, %s*\n", inline(n.UnsaidBy), exportTime(n.UnsaidAt))
		_, err := io.WriteString(e.w, b.String())
		return err
	}
	if !m.Now.EditedAt.IsZero() {
		fmt.Fprintf(&b, ", edited %s", exportTime(m.Now.EditedAt))
	}
	if m.Now.NewerSeq > 0 {
		b.WriteString(", an earlier answer: it was given again")
	}
	b.WriteString(":\n\n")
	if m.Target > 0 && m.Sender.Kind != "agent" {
		fmt.Fprintf(&b, "*in answer to* %s\n\n", inline(cmp.Or(e.said[m.Target], "an earlier message")))
	}
	if text != "" {
		b.WriteString(quoted(text))
	}
	if s := string(m.TaskState); m.Sender.Kind == "agent" && s != "" && m.TaskState != task.Completed {
		fmt.Fprintf(&b, "\n*%s*\n", inline(strings.ReplaceAll(s, "_", " ")+". "+m.Reason))
	}
	for _, x := range m.Now.Reactions {
		var by []string
		for _, who := range x.By {
			by = append(by, who.Handle)
		}
		fmt.Fprintf(&b, "\n%s %s\n", inline(x.Emoji), inline(strings.Join(by, ", ")))
	}
	_, err := io.WriteString(e.w, b.String())
	return err
}

// quoted prefixes each line of a text with "> ", so that no text can imitate another entry of the
// transcript.
func quoted(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n").Replace(text)
	return "> " + strings.ReplaceAll(text, "\n", "\n> ") + "\n"
}

func (e *markdownExport) writeEnd() error { return nil }

// text returns the text of parts as Markdown. A file becomes its name with its address.
func (e *markdownExport) text(parts []task.Part) string {
	var out []string
	for _, p := range parts {
		switch {
		case p.Text != "":
			out = append(out, p.Text)
		case p.URL != "":
			url := p.URL
			if _, ours := message.OwnFile(url); ours {
				url = e.url + url
			}
			out = append(out, fmt.Sprintf("File: [%s](<%s>)", linkText(cmp.Or(p.Filename, url)),
				strings.NewReplacer("<", "%3C", ">", "%3E", "\n", "%0A").Replace(url)))
		case len(p.Data) > 0:
			out = append(out, "```json\n"+strings.ReplaceAll(string(p.Data), "```", "`\u200b``")+"\n```")
		default:
			out = append(out, task.PlainText([]task.Part{p}))
		}
	}
	return strings.Join(out, "\n\n")
}

func linkText(s string) string {
	return strings.NewReplacer("\\", "\\\\", "[", "\\[", "]", "\\]", "\n", " ").Replace(s)
}

// cut returns the first n runes of s, with an ellipsis if s is longer.
func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
