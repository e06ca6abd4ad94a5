package chat

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"agentsite/handlers/pages/message"
	"agentsite/internal/chat"
	"agentsite/internal/ident"
	"agentsite/internal/library"
	"agentsite/internal/task"
	"agentsite/templates"
)

// doneText returns the confirmation of what a form of a message did, "" for none.
func doneText(r *http.Request) string {
	return map[string]string{"undone": "Undone: the file is as it was before.", "kept": "Kept in your library."}[r.URL.Query().Get("done")]
}

// shelf shows on messages what belongs to the library of their reader.
type shelf struct {
	library *library.Service // nil for none
	log     *slog.Logger
}

// written are the files that agents wrote into the reader's library, by the seq of the message that shows them.
type written map[int64][]templates.WrittenRow

// writtenFor reads what the agents of messages wrote into the actor's library. Each version stands at the first message
// of its task that is not older.
func (d *shelf) writtenFor(ctx context.Context, actor ident.Actor, list []chat.Message) written {
	if d.library == nil || !actor.IsPerson() {
		return nil
	}
	var tasks []string
	for _, m := range list {
		if m.TaskID != "" && m.Sender.Kind == "agent" && !slices.Contains(tasks, m.TaskID) {
			tasks = append(tasks, m.TaskID)
		}
	}
	versions, err := d.library.WrittenBy(ctx, actor, tasks)
	if err != nil {
		d.log.Warn("read what agents wrote", "error", err) // the messages are shown without it
		return nil
	}
	out := make(written)
	seen := make(map[string]bool)
	for _, v := range versions {
		at := slices.IndexFunc(list, func(m chat.Message) bool {
			return m.TaskID == v.By.TaskID && m.Sender.Kind == "agent" && !m.CreatedAt.Before(v.At)
		})
		if key := v.By.TaskID + " " + v.Path; at >= 0 && !seen[key] {
			seen[key] = true // the last version of a task stands for those before
			out[list[at].Seq] = append(out[list[at].Seq], templates.WrittenRow{Path: v.Path, Version: v.Number,
				Undo: v.Number == v.Newest})
		}
	}
	return out
}

// keeps reports whether a message has files of an agent that the actor may keep.
func (d *shelf) keeps(actor ident.Actor, m chat.Message) bool {
	return d.library != nil && actor.IsPerson() && message.HasFiles(m)
}

// addLibrary adds to the view of a message what belongs to the reader's library.
func (d *shelf) addLibrary(actor ident.Actor, m chat.Message, w written, v *templates.MessageView) {
	if v.Gone != "" {
		return
	}
	v.Written = w[m.Seq]
	if d.keeps(actor, m) {
		addKeep(v.Files)
	}
}

// addKeep lets the reader keep files of an agent in the own library.
func addKeep(list []templates.FilePart) {
	for i := range list {
		if hash, ok := message.OwnFile(list[i].Href); ok {
			list[i].Keep = hash
		}
	}
}

// addKept lets the reader keep an artifact: its files, or else its text.
func (d *shelf) addKept(actor ident.Actor, a task.Artifact, v *templates.ArtifactView) {
	if d.library == nil || !actor.IsPerson() {
		return
	}
	addKeep(v.Files)
	text := task.PlainText(a.Parts)
	if text == "" || len(text) > library.MaxText {
		return
	}
	v.Text, v.TextName = text, "artifact.txt"
	if name := chat.FileName(a.Name); name != "" {
		if v.TextName = name; !strings.Contains(name, ".") {
			v.TextName += ".txt"
		}
	}
}
