package hub

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"image"
	_ "image/gif" // formats people have
	_ "image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

const (
	// MaxIconBytes bounds an uploaded picture.
	MaxIconBytes = 2 << 20
	// iconSide is the width and height of what is stored, in pixels.
	iconSide = 128
	// maxIconPixels bounds what is decoded: a small file may unfold to much.
	maxIconPixels = 4 << 20
	// maxIconScans bounds how often a JPEG goes over all its pixels: each scan
	// costs some bytes of the file and milliseconds of the decoder. Cameras
	// and editors write at most a dozen.
	maxIconScans = 32
)

func errIcon(text string) error {
	return &fault.Error{Kind: fault.Invalid, Safe: "icon: " + text, Fields: map[string]string{"icon": text}}
}

// PutIcon takes a PNG, JPEG, GIF or WebP picture, draws it anew as a small
// square PNG, so that nothing else of the file survives, and returns its hash
// for a draft.
func (s *Service) PutIcon(ctx context.Context, actor ident.Actor, file io.Reader) (hash string, err error) {
	if err := s.writer(actor); err != nil {
		return "", err
	}
	if wait, ok := s.reads.Allow(actor.ID); !ok {
		return "", fault.Limited(wait, "You sent many pictures in a short time. Wait a moment.")
	}
	b, err := io.ReadAll(io.LimitReader(file, MaxIconBytes+1))
	if err != nil {
		return "", err
	}
	if len(b) > MaxIconBytes {
		return "", errIcon("use a picture of at most 2 MiB")
	}
	// One at a time: a picture takes tens of MiB while it is drawn.
	select {
	case s.drawing <- struct{}{}:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	small, err := func() ([]byte, error) {
		defer func() { <-s.drawing }()
		return drawIcon(b)
	}()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(small)
	hash = hex.EncodeToString(sum[:16])
	return hash, s.store.PutIcon(ctx, hash, small)
}

// drawIcon makes the stored form of a picture: cut to a square around its
// middle and scaled.
func drawIcon(b []byte) ([]byte, error) {
	conf, format, err := image.DecodeConfig(bytes.NewReader(b))
	if err != nil {
		return nil, errIcon("use a PNG, JPEG, GIF or WebP picture")
	}
	if conf.Width < 1 || conf.Height < 1 || conf.Width > maxIconPixels/conf.Height {
		return nil, errIcon("use a picture of at most 4 million pixels")
	}
	// Within the picture's data these bytes can only begin a scan.
	if format == "jpeg" && bytes.Count(b, []byte{0xFF, 0xDA}) > maxIconScans {
		return nil, errIcon("this picture is stored in too many steps; save it anew")
	}
	src, _, err := image.Decode(bytes.NewReader(b))
	if err != nil {
		return nil, errIcon("this picture is damaged; save it anew")
	}
	r := src.Bounds()
	side := min(r.Dx(), r.Dy())
	if side < 1 {
		return nil, errIcon("this picture is empty")
	}
	at := image.Pt(r.Min.X+(r.Dx()-side)/2, r.Min.Y+(r.Dy()-side)/2)
	dst := image.NewNRGBA(image.Rect(0, 0, iconSide, iconSide))
	draw.CatmullRom.Scale(dst, dst.Bounds(), src, image.Rectangle{at, at.Add(image.Pt(side, side))}, draw.Src, nil)
	var out bytes.Buffer
	if err := png.Encode(&out, dst); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Icon returns a stored picture, a PNG.
func (s *Service) Icon(ctx context.Context, hash string) ([]byte, error) {
	if !validIcon(hash) {
		return nil, fault.New(fault.NotFound, "There is no such picture.")
	}
	return s.store.Icon(ctx, hash)
}

func validIcon(hash string) bool {
	b, err := hex.DecodeString(hash)
	return err == nil && len(b) == 16
}
