package chat

import (
	"container/list"
	"context"
	"io"
	"strings"
	"sync"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/picture"
)

const (
	// previewSide is the longer side of a preview, in pixels.
	previewSide = 640
	// maxPictureBytes is the largest file that a preview is drawn of.
	maxPictureBytes = 16 << 20
	// maxPreviews bounds the cached previews, in bytes.
	maxPreviews = 16 << 20
)

// Preview returns a small picture, a PNG drawn by the portal, of a file that
// is a picture; NotFound of any other.
func (s *Service) Preview(ctx context.Context, actor ident.Actor, hash string) ([]byte, error) {
	f, r, err := s.OpenFile(ctx, actor, hash)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return s.drawPreview(ctx, f, r)
}

// SharedPreview is Preview for holders of a read link.
func (s *Service) SharedPreview(ctx context.Context, secret, hash string) ([]byte, error) {
	f, r, err := s.SharedFile(ctx, secret, hash)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return s.drawPreview(ctx, f, r)
}

func (s *Service) drawPreview(ctx context.Context, f File, r io.Reader) ([]byte, error) {
	none := fault.New(fault.NotFound, "There is no preview of this file.")
	if !strings.HasPrefix(f.MediaType, "image/") || f.Size > maxPictureBytes {
		return nil, none
	}
	p := s.previews
	if b, ok := p.get(f.Hash); ok {
		if b == nil {
			return nil, none
		}
		return b, nil
	}
	// One at a time: a picture takes tens of MiB while it is drawn.
	select {
	case p.drawing <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-p.drawing }()
	if b, ok := p.get(f.Hash); ok && b != nil {
		return b, nil
	}
	raw, err := io.ReadAll(io.LimitReader(r, maxPictureBytes+1))
	if err != nil {
		return nil, err
	}
	b, err := picture.ScaleToFit(raw, previewSide)
	if err != nil {
		p.put(f.Hash, nil) // so it stays
		return nil, none
	}
	p.put(f.Hash, b)
	return b, nil
}

// previews are the last pictures that were drawn, by the hash of the file;
// nil for one that cannot be drawn.
type previews struct {
	drawing chan struct{} // capacity 1: the drawing goroutine holds it

	mu    sync.Mutex // guards the rest
	bytes int
	order *list.List // of *drawn, the last used first
	byKey map[string]*list.Element
}

type drawn struct {
	hash string
	png  []byte
}

// weight is the size that an entry counts besides its picture.
const weight = 256

func newPreviews() *previews {
	return &previews{drawing: make(chan struct{}, 1), order: list.New(), byKey: make(map[string]*list.Element)}
}

func (p *previews) get(hash string) ([]byte, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.byKey[hash]
	if e == nil {
		return nil, false
	}
	p.order.MoveToFront(e)
	return e.Value.(*drawn).png, true
}

func (p *previews) put(hash string, png []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byKey[hash] != nil {
		return
	}
	p.byKey[hash] = p.order.PushFront(&drawn{hash, png})
	p.bytes += len(png) + weight
	for p.bytes > maxPreviews && p.order.Len() > 1 {
		last := p.order.Back()
		d := p.order.Remove(last).(*drawn)
		delete(p.byKey, d.hash)
		p.bytes -= len(d.png) + weight
	}
}
