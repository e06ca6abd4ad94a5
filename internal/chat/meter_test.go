package chat_test

import (
	"io"
	"strings"
	"sync"
	"testing"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// What is on its way is bounded before it has come.
func TestPutFile_FewAtOnce(t *testing.T) {
	t.Parallel()
	w := open(t)
	var wg sync.WaitGroup
	var pipes []*io.PipeWriter
	for range 16 {
		r, in := io.Pipe()
		pipes = append(pipes, in)
		wg.Go(func() {
			if _, err := w.Files.Put(t.Context(), w.ada, chat.FileDraft{Content: r}); err != nil {
				t.Error(err)
			}
		})
		if _, err := in.Write([]byte("begun")); err != nil {
			t.Fatal(err)
		}
	}
	_, err := w.Files.Put(t.Context(), w.ada, chat.FileDraft{Content: strings.NewReader("one more")})
	kind(t, "one more", err, fault.RateLimited)
	_, err = w.Files.Put(t.Context(), w.bob, chat.FileDraft{Content: strings.NewReader("another's")})
	kind(t, "another's", err, "")
	for _, in := range pipes {
		in.Close()
	}
	wg.Wait()
	_, err = w.Files.Put(t.Context(), w.ada, chat.FileDraft{Content: strings.NewReader("one more")})
	kind(t, "afterwards", err, "")
}

// A visitor who begins anew as somebody else does not begin anew here, and
// what was refused for its size counts, too.
func TestPutFile_VisitorsCountByTheirAddress(t *testing.T) {
	t.Parallel()
	w := open(t)
	sent := int64(0)
	for range 100 {
		_, err := w.Files.Put(t.Context(), ident.Actor{Kind: ident.Guest, ID: ident.NewID(), Addr: "192.0.2.7"}, chat.FileDraft{Content: io.LimitReader(zeros{}, chat.MaxGuestFileBytes+1)})
		if fault.Is(err, fault.RateLimited) {
			break
		}
		sent += chat.MaxGuestFileBytes
		kind(t, "too large", err, fault.Invalid)
	}
	if sent > 9*chat.GuestFileQuota {
		t.Errorf("%d MiB came", sent>>20)
	}
}
