package chat

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/address"
	"agentsite/handlers/edits"
	"agentsite/handlers/files"
	"agentsite/handlers/pages"
	"agentsite/handlers/pages/message"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/templates"
)

// writing is the submitted content of the composer.
type writing struct {
	client string
	text   string
	mode   string // "" for a new message, reply or edit
	seq    int64  // seq of the message to reply to or to edit
	kept   []task.Part
	told   []string
	share  chat.Share
	to     string
	look   bool // only show the page again, for example after a file was removed
}

// Modes of the composer besides a new message.
const (
	modeReply = "reply"
	modeEdit  = "edit"
)

// say posts to a conversation. The form's client id makes a repeated submission harmless.
func (d *Room) say(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	id := chi.URLParam(r, "id")
	c, err := d.chat.Get(r.Context(), actor, id)
	if err != nil {
		return err
	}
	in, err := d.written(w, r, actor)
	if err == nil && in.look {
		return d.showConversation(w, r, actor, again{code: http.StatusOK, draft: &in})
	}
	if err == nil {
		text := in.text
		if in.to != "" && len(c.Agents()) > 1 {
			// A reply in a conversation of several agents must address one, so the agent that is replied
			// to is added.
			text = "@" + in.to + " " + text
		}
		_, err = d.chat.Post(r.Context(), actor, id,
			chat.Draft{ClientID: in.client, Parts: in.parts(text), Face: "page", Quotes: in.quotes(), Told: in.told,
				Share: in.share, MustTell: true})
	}
	if err == nil {
		d.noteDisclosed(r.Context(), actor, c, in)
		return respond.SeeOther(w, r, address.ChatPath(id))
	}
	return d.sayAgain(w, r, actor, in, err)
}

// noteDisclosed records that the form showed the disclosures of agents that the message did not address,
// so that the next form need not show them again.
func (d *Room) noteDisclosed(ctx context.Context, actor ident.Actor, c chat.Conversation, in writing) {
	for _, m := range c.Agents() {
		if m.Remote == "" || !slices.Contains(in.told, m.Handle) {
			continue
		}
		if err := d.chat.Disclose(ctx, actor, c.ID, m.Handle, in.share); err != nil {
			d.log.Warn("store shown disclosures", "conversation", c.ID, "error", err)
		}
	}
}

// sayAgain shows the conversation with the composer's content and its errors.
func (d *Room) sayAgain(w http.ResponseWriter, r *http.Request, actor ident.Actor, in writing, err error) error {
	messages, code, ok := pages.FieldErrors(w, err)
	if !ok {
		return err
	}
	wrong := pages.FirstError(messages, "text", "parts", "file", "")
	if messages["told"] != "" {
		wrong = "What you write leaves this portal. Read below where it goes, then send it."
	}
	return d.conversationAgain(w, r, actor, again{code: code, draft: &in, wrong: wrong}, err)
}

func (in writing) quotes() int64 {
	if in.mode == modeReply {
		return in.seq
	}
	return 0
}

func (in writing) parts(text string) []task.Part {
	var out []task.Part
	if strings.TrimSpace(text) != "" || len(in.kept) == 0 {
		out = append(out, task.TextPart(text))
	}
	return append(out, in.kept...)
}

// written parses the composer's form. Files are stored while they are received. If one is refused, the
// rest of the form is still read, so that typed text is not lost.
func (d *Room) written(w http.ResponseWriter, r *http.Request, actor ident.Actor) (writing, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" {
		in, err := request.Form(w, r)
		return writingOf(in), err
	}
	rc := http.NewResponseController(w)
	rc.SetReadDeadline(time.Now().Add(files.UploadTime))
	rc.SetWriteDeadline(time.Now().Add(files.UploadTime + time.Minute))
	r.Body = http.MaxBytesReader(w, r.Body, files.MaxSize(actor)+request.MaxForm)
	reader, err := r.MultipartReader()
	if err != nil {
		return writing{}, fault.Wrap(fault.Invalid, err, "The form could not be read.")
	}
	in := make(url.Values)
	var uploads []task.Part
	var wrong error
	for left, n := int64(request.MaxForm), 0; ; n++ {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && n >= 4*chat.MaxParts+chat.MaxMembers {
			err = fault.New(fault.Invalid, "The form has too many fields.")
		}
		if err == nil && part.FormName() == "file" {
			if part.FileName() != "" && wrong == nil {
				var f task.Part
				if f, err = d.sentFile(r.Context(), actor, part, len(uploads)); err == nil {
					uploads = append(uploads, f)
				}
			}
			if err != nil {
				wrong, err = files.ReadError(err), nil
				_, _ = io.Copy(io.Discard, part) // a read error is returned again by the next read
			}
			continue
		}
		if err == nil {
			var b []byte
			b, err = io.ReadAll(io.LimitReader(part, left+1))
			if left -= int64(len(b)); left < 0 && err == nil {
				err = fault.New(fault.Invalid, "What you sent is too large. Send less at once.")
			}
			in.Add(part.FormName(), string(b))
		}
		if err != nil {
			out := writingOf(in)
			out.kept = append(out.kept, uploads...)
			if wrong == nil {
				wrong = files.ReadError(err)
			}
			return out, wrong
		}
	}
	out := writingOf(in)
	out.kept = append(out.kept, uploads...)
	return out, wrong
}

// sentFile stores a file of the form and returns the part that refers to it.
func (d *Room) sentFile(ctx context.Context, actor ident.Actor, part *multipart.Part, before int) (task.Part, error) {
	if before >= chat.MaxParts-1 {
		return task.Part{}, fault.New(fault.Invalid, "Send at most %d files at once.", chat.MaxParts-1)
	}
	f, err := d.chat.Files.Put(ctx, actor, chat.FileDraft{Name: part.FileName(),
		MediaType: part.Header.Get("Content-Type"), Content: part})
	if err != nil {
		return task.Part{}, err
	}
	return keptPart(f.Hash, part.FileName(), f.MediaType, f.Size), nil
}

// keptPart returns a part that refers to a stored file. size is only for display.
func keptPart(hash, name, mediaType string, size int64) task.Part {
	p := task.Part{URL: chat.FileURL(hash), Filename: chat.FileName(name), MediaType: mediaType}
	if size > 0 {
		p.Metadata, _ = json.Marshal(map[string]int64{"size": size})
	}
	return p
}

// keptValue encodes a stored file as the value of a hidden form field, so that the file need not be sent
// again after an error. keptOf decodes it.
func keptValue(p task.Part) string {
	hash, _ := message.OwnFile(p.URL)
	v := url.Values{"hash": {hash}, "name": {p.Filename}, "type": {p.MediaType}}
	if n := message.PartSize(p); n > 0 {
		v.Set("size", strconv.FormatInt(n, 10))
	}
	return v.Encode()
}

func keptOf(value string) (task.Part, bool) {
	v, err := url.ParseQuery(value)
	if err != nil {
		return task.Part{}, false
	}
	if _, ok := message.OwnFile(chat.FileURL(v.Get("hash"))); !ok {
		return task.Part{}, false
	}
	size, _ := strconv.ParseInt(v.Get("size"), 10, 64)
	return keptPart(v.Get("hash"), v.Get("name"), v.Get("type"), size), true
}

func writingOf(in url.Values) writing {
	out := writing{client: in.Get("client_id"), text: request.NormalizeLines(in.Get("text")), told: in["told"],
		share: chat.Share(in.Get("share")), to: in.Get("to"), look: in.Get("look") != ""}
	if out.client == "" {
		out.client = ident.NewID()
	}
	if n, err := strconv.ParseInt(in.Get("reply_to"), 10, 64); err == nil && n > 0 {
		out.mode, out.seq = modeReply, n
	}
	for _, value := range in["kept"] {
		if p, ok := keptOf(value); ok && len(out.kept) < chat.MaxParts-1 {
			out.kept = append(out.kept, p)
		}
	}
	return out
}

// compose fills in the composer: empty, for a reply, for an edit, or with the content that was rejected.
func (d *Room) compose(r *http.Request, actor ident.Actor, v *templates.ConversationView, c chat.Conversation, a again,
	who message.Speakers) error {
	in := a.draft
	if in == nil {
		in = &writing{}
		if r.Method == http.MethodGet {
			for _, mode := range []string{modeReply, modeEdit} {
				n, err := request.QueryInt(r, mode, 0)
				if err != nil {
					return err
				}
				if n > 0 {
					in.mode, in.seq = mode, n
				}
			}
		}
	}
	v.Composer = templates.ComposerView{ClientID: ident.NewID(), Text: in.text, Error: a.wrong, Mode: in.mode,
		Seq: int(in.seq), Share: string(in.share)}
	if in.seq > 0 {
		m, err := d.chat.Message(r.Context(), actor, c.ID, in.seq)
		if err == nil && in.mode == modeEdit && a.draft == nil {
			in.text, in.kept = editable(m)
			v.Composer.Text = in.text
		}
		switch {
		case err != nil || m.Kind != chat.Text || !m.Now.UnsaidAt.IsZero():
			v.Composer.Mode, v.Composer.Seq = "", 0
			if v.Composer.Error == "" {
				v.Composer.Error = "That message is not there any more."
			}
		case in.mode == modeEdit:
			if v.Composer.Asks, err = d.edits.Asked(r.Context(), actor, m); err != nil {
				return err
			}
			v.Composer.Label, v.Composer.Quote = "Editing your message", d.messages.Gist(m)
		default:
			v.Composer.Label, v.Composer.Quote = "Answering "+who(m.Sender).Title, d.messages.Gist(m)
		}
	}
	for _, p := range in.kept {
		v.Composer.Kept = append(v.Composer.Kept,
			templates.KeptFile{FilePart: message.FilePart(p), Value: keptValue(p)})
	}
	return nil
}

// editable returns the parts of a message that its author can change in the composer: the text, and the
// files, which can be removed.
func editable(m chat.Message) (text string, files []task.Part) {
	var words []string
	for _, p := range m.Parts {
		if _, ours := message.OwnFile(p.URL); ours {
			files = append(files, p)
		} else if p.Text != "" {
			words = append(words, p.Text)
		}
	}
	return strings.Join(words, "\n\n"), files
}

// editMessage replaces the content of the actor's own message.
func (d *Room) editMessage(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.changeMessage(w, r, actor, func(id string, seq int64, parts []task.Part) (string, error) {
		_, err := d.chat.Edit(r.Context(), actor, id, seq, parts)
		return address.MessagePath(id, seq), err
	})
}

// askMessage is editMessage for a question that its agents are to answer again.
func (d *Room) askMessage(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.changeMessage(w, r, actor, func(id string, seq int64, parts []task.Part) (string, error) {
		to, err := d.edits.Ask(r.Context(), actor, edits.Edit{Conversation: id, Seq: seq, Parts: parts, Face: "page",
			MustTell: true})
		return address.ChatPath(to), err
	})
}

// changeMessage handles the composer while it edits a message: do stores the new content and returns the next page.
func (d *Room) changeMessage(w http.ResponseWriter, r *http.Request, actor ident.Actor,
	do func(id string, seq int64, parts []task.Part) (next string, err error)) error {
	seq, err := request.PathSeq(r)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	m, err := d.chat.Message(r.Context(), actor, id, seq)
	if err != nil {
		return err
	}
	in, err := d.written(w, r, actor)
	in.mode, in.seq = modeEdit, seq
	if err == nil && in.look {
		return d.showConversation(w, r, actor, again{code: http.StatusOK, draft: &in})
	}
	next := ""
	if err == nil {
		parts := in.parts(in.text)
		// Parts that the composer cannot show, such as data, are kept unchanged.
		parts = append(parts, slices.DeleteFunc(slices.Clone(m.Parts), func(p task.Part) bool {
			_, ours := message.OwnFile(p.URL)
			return ours || p.Text != ""
		})...)
		next, err = do(id, seq, parts)
	}
	if err == nil {
		return respond.SeeOther(w, r, next)
	}
	return d.sayAgain(w, r, actor, in, err)
}
