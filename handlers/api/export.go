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
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// exportPage is how many messages are read at once.
const exportPage = 200

// exporter writes a conversation in one form.
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
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", kind+"; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="conversation-`+c.ID+`.`+end+`"`)
	if out.writeStart(c) != nil {
		return nil // the reader went away
	}
	rc := http.NewResponseController(w)
	for after := int64(0); ; {
		rc.SetWriteDeadline(time.Now().Add(time.Minute)) // a minute a page, however long it is
		list, err := d.chat.Messages(r.Context(), actor, id, after, 0, exportPage, false)
		if err != nil {
			d.log.Warn("export broke off", "conversation", id, "error", err)
			panic(http.ErrAbortHandler) // the reader must not take half for whole
		}
		for _, m := range list {
			after = m.Seq
			if m.Kind.Amends() {
				continue // its target says it
			}
			if out.writeMessage(m) != nil {
				return nil
			}
		}
		if len(list) < exportPage {
			break
		}
	}
	_ = out.writeEnd() // the client may be gone
	return nil
}

// jsonExport writes the API's own objects.
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

// markdownExport writes a text to read. It remembers the beginning of the last
// messages, for those that quote them.
type markdownExport struct {
	w           io.Writer
	portal, url string
	said        map[int64]string
}

const (
	rememberSaid = 10_000 // messages
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

// inline keeps a text within its line.
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
		fmt.Fprintf(&b, ":\n\n*taken away by %s, %s*\n", inline(n.UnsaidBy), exportTime(n.UnsaidAt))
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

// quoted puts a text behind the marks of a quotation, so that nothing in it
// looks like another entry.
func quoted(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n").Replace(text)
	return "> " + strings.ReplaceAll(text, "\n", "\n> ") + "\n"
}

func (e *markdownExport) writeEnd() error { return nil }

// text returns the text of parts. Files are named with their address.
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

// cut keeps the first n characters.
func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
