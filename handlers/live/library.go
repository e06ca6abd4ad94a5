package live

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"agentsite/internal/chat"
	"agentsite/internal/ident"
)

// ownersForm is the number under which the owners of libraries are cached beside the forms of an update, so that they
// are read once for all readers.
const ownersForm = htmlEvent + 1

// libraryNotices returns a frame for each message whose agent wrote into the reader's library, so that the reader's page
// fetches that message again; nil if there is none. The messages themselves are encoded once for all readers, so they
// must not show such a write.
func (d *Streams) libraryNotices(form int, reader ident.Actor, list []chat.Update) (out []byte) {
	if form != htmlFrame && form != htmlEvent || !reader.IsPerson() || !reader.May(ident.AccountAll) {
		return nil
	}
	for _, u := range list {
		if u.Message == nil {
			continue
		}
		owners, err := u.Encoded(ownersForm, d.encodeOwners)
		if err != nil {
			d.log.Warn("look for files of a task", "error", err)
			continue
		}
		if !slices.Contains(strings.Fields(string(owners)), reader.ID) {
			continue
		}
		seq := u.Message.Seq
		if u.Message.Kind.Amends() {
			seq = u.Message.Target
		}
		b, err := json.Marshal(struct {
			Type string `json:"type"`
			Seq  int64  `json:"seq"`
		}{"library", seq})
		switch {
		case err != nil:
			d.log.Error("encode live update", "error", err)
		case form == htmlFrame:
			out = append(out, textFrame(b)...)
		default:
			out = fmt.Appendf(out, "event: library\ndata: %s\n\n", b)
		}
	}
	return out
}

// encodeOwners returns the ids of the persons into whose libraries the agent of a message wrote, between spaces.
func (d *Streams) encodeOwners(u chat.Update) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), liveWriteTimeout)
	defer cancel()
	m, err := d.chat.Shown(ctx, u)
	if err != nil {
		return []byte{}, nil // deleted meanwhile: there is no message to fetch again
	}
	ids, err := d.messages.LibraryOwners(ctx, m)
	return []byte(strings.Join(ids, " ")), err
}

// encodeFor is encodeAll for one reader, with the notices about the reader's library.
func (d *Streams) encodeFor(form int, reader ident.Actor, list []chat.Update) []byte {
	return slices.Concat(d.encodeAll(form, list), d.libraryNotices(form, reader, list))
}
