package chat

import (
	"context"
	"io"
	"strings"

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
func (s *Attachments) Preview(ctx context.Context, actor ident.Actor, hash string) ([]byte, error) {
	f, r, err := s.Open(ctx, actor, hash)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return s.drawPreview(ctx, f, r)
}

// PreviewShared is Preview for holders of a read link.
func (s *Attachments) PreviewShared(ctx context.Context, secret, hash string) ([]byte, error) {
	f, r, err := s.OpenShared(ctx, secret, hash)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return s.drawPreview(ctx, f, r)
}

func (s *Attachments) drawPreview(ctx context.Context, f File, r io.Reader) ([]byte, error) {
	none := fault.New(fault.NotFound, "There is no preview of this file.")
	if !strings.HasPrefix(f.MediaType, "image/") || f.Size > maxPictureBytes {
		return nil, none
	}
	p := s.previews
	if b, ok := p.Get(f.Hash); ok {
		if b == nil {
			return nil, none
		}
		return b, nil
	}
	// One at a time: a picture takes tens of MiB while it is drawn.
	select {
	case s.drawing <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s.drawing }()
	if b, ok := p.Get(f.Hash); ok && b != nil {
		return b, nil
	}
	raw, err := io.ReadAll(io.LimitReader(r, maxPictureBytes+1))
	if err != nil {
		return nil, err
	}
	b, err := picture.ScaleToFit(raw, previewSide)
	if err != nil {
		p.Put(f.Hash, nil) // so it stays
		return nil, none
	}
	p.Put(f.Hash, b)
	return b, nil
}
