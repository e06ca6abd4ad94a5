package chat

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/request"
	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// TranscriptPage is the number of messages on one page of a transcript.
const TranscriptPage = 50

// maxWindow bounds the messages that a script may request at once, and windowReads the database reads for
// one window. Several reads may be needed, because edits, deletions and reactions have a seq but no row.
const (
	maxWindow   = 100
	windowReads = 4
)

// place selects a part of a transcript: the messages around at, or those after after if forward is true,
// or else the last ones before before, where 0 means the end.
type place struct {
	at, after, before int64
	forward           bool
	limit             int
}

func placeOf(r *http.Request) (p place, err error) {
	p.limit = TranscriptPage
	for name, v := range map[string]*int64{"at": &p.at, "after": &p.after, "before": &p.before} {
		if *v, err = request.QueryInt(r, name, 0); err != nil {
			return p, err
		}
		if *v < 0 {
			return p, fault.Field(name, "must not be negative")
		}
	}
	p.forward = r.URL.Query().Has("after") && p.before == 0 && p.at == 0
	return p, nil
}

// window is a part of a transcript: the messages that have rows, and the range of seqs that was read for
// them.
type window struct {
	list        []chat.Message
	first, last int64
	begin, end  bool // there is no message before the window, or none after it
}

func (d *Room) window(ctx context.Context, actor ident.Actor, id string, p place) (w window, err error) {
	switch {
	case p.at > 0:
		before, err := d.stretch(ctx, actor, id, place{before: p.at + 1, limit: p.limit/2 + 1})
		if err != nil {
			return w, err
		}
		after, err := d.stretch(ctx, actor, id, place{after: p.at, forward: true, limit: p.limit / 2})
		if err != nil {
			return w, err
		}
		w = before
		w.list = append(w.list, after.list...)
		w.end = after.end
		if after.last > 0 {
			w.last = after.last
		}
		if w.first == 0 {
			w.first, w.begin = after.first, before.begin
		}
		return w, nil
	default:
		return d.stretch(ctx, actor, id, p)
	}
}

// stretch reads messages in one direction until there are p.limit rows or no more messages.
func (d *Room) stretch(ctx context.Context, actor ident.Actor, id string, p place) (w window, err error) {
	after, before := p.after, p.before
	for range windowReads {
		list, more, err := d.chat.Messages(ctx, actor, id,
			chat.Span{After: after, Before: before, Limit: p.limit, Newest: !p.forward})
		if err != nil {
			return w, err
		}
		if len(list) > 0 {
			first, last := list[0].Seq, list[len(list)-1].Seq
			if w.first == 0 || first < w.first {
				w.first = first
			}
			w.last = max(w.last, last)
			if p.forward {
				after = last
			} else {
				before = first
			}
		}
		list = slices.DeleteFunc(list, func(m chat.Message) bool { return m.Kind.Amends() })
		if p.forward {
			w.list = append(w.list, list...)
		} else {
			w.list = append(list, w.list...)
		}
		if !more || !p.forward && w.first == 1 {
			if p.forward {
				w.end = true
			} else {
				w.begin = true
			}
			break
		}
		if len(w.list) >= p.limit {
			break
		}
	}
	if p.forward {
		w.begin = p.after == 0
	} else {
		w.end = p.before == 0
	}
	return w, nil
}

// rows answers the page's script with the rows of a part of the transcript.
func (d *Room) rows(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	p, err := placeOf(r)
	if err != nil {
		return err
	}
	limit, err := request.QueryInt(r, "limit", TranscriptPage)
	if err != nil {
		return err
	}
	if limit < 1 || limit > maxWindow {
		return fault.Field("limit", "use 1 to 100")
	}
	p.limit = int(limit)
	id := chi.URLParam(r, "id")
	part, err := d.window(r.Context(), actor, id, p)
	if err != nil {
		return err
	}
	blocked, err := d.blockedBy(r, actor)
	if err != nil {
		return err
	}
	v := templates.RowsView{First: part.first, Last: part.last, Begin: part.begin, End: part.end,
		Messages: d.rowViews(r.Context(), actor, part.list, d.messages.Speakers(r.Context(), actor), blocked)}
	return d.site.Render(w, r, http.StatusOK, templates.Rows(v))
}

// sameBreath is the longest pause after which the next message of the same sender is shown without a
// header of its own.
const sameBreath = 5 * time.Minute

// arrange sets the properties of rows that depend on their neighbours: the first row of a day, the first
// unread row, and rows without a header of their own. read is the last seq that the actor has read, at
// the row to scroll to.
func arrange(views []templates.MessageView, list []chat.Message, read, at int64) {
	fresh := false
	for i := range views {
		m, v := list[i], &views[i]
		day := i == 0 || !sameDay(list[i-1].CreatedAt, m.CreatedAt)
		if day {
			v.Day = &templates.Time{Text: dayText(m.CreatedAt), ISO: m.CreatedAt.UTC().Format(time.DateOnly)}
		}
		if !fresh && read > 0 && i > 0 && m.Seq > read && m.Kind == chat.Text && !v.Mine {
			v.Unread, fresh = true, true
		}
		v.Target = m.Seq == at
		v.Follows = i > 0 && !day && !v.Unread && continues(list[i-1], m)
	}
}

// continues reports whether a message is shown without a header below the one before: same sender, within
// sameBreath, and no reply, edit or deletion.
func continues(before, m chat.Message) bool {
	return before.Kind == chat.Text && m.Kind == chat.Text &&
		before.Sender.Kind == m.Sender.Kind && before.Sender.ID == m.Sender.ID &&
		before.Sender.Handle == m.Sender.Handle &&
		m.CreatedAt.Sub(before.CreatedAt) < sameBreath &&
		m.Target == 0 && m.Now.UnsaidAt.IsZero() && m.Now.NewerSeq == 0
}

func sameDay(a, b time.Time) bool {
	const day = 24 * 60 * 60 // seconds of a day in UTC
	return a.Unix()/day == b.Unix()/day
}

// dayText returns the name of a day, such as "Today", for people.
func dayText(t time.Time) string {
	now := clock.Now().UTC()
	switch t = t.UTC(); {
	case sameDay(t, now):
		return "Today"
	case sameDay(t, now.AddDate(0, 0, -1)):
		return "Yesterday"
	case t.Year() == now.Year():
		return t.Format("Monday, 2 January")
	}
	return t.Format("Monday, 2 January 2006")
}
