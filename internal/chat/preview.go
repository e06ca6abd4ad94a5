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
	// previewSide is the length of a preview's longer side, in pixels.
	previewSide = 640
	// maxPictureBytes is the largest file from which a preview is made.
	maxPictureBytes = 16 << 20
	// maxPreviews is the size of the preview cache, in bytes.
	maxPreviews = 16 << 20
)

// Preview returns a PNG of at most previewSide pixels for a file that is a picture; a NotFound fault for
// other files. Its access rule is that of Open.
func (s *Attachments) Preview(ctx context.Context, actor ident.Actor, hash string) ([]byte, error) {
	f, r, err := s.Open(ctx, actor, hash)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return s.drawPreview(ctx, f, r)
}

// PreviewShared is Preview for the holder of a read link's secret.
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
	// Previews are drawn one at a time, because each takes tens of MiB.
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
		p.Put(f.Hash, nil) // cache the failure: the content of a hash never changes
		return nil, none
	}
	p.Put(f.Hash, b)
	return b, nil
}
