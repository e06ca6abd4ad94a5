package hub

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
	"agentsite/internal/picture"
)

const (
	// MaxIconBytes is the largest uploaded picture.
	MaxIconBytes = 2 << 20
	// iconSide is the width and height of stored icons, in pixels.
	iconSide = 128
	// iconBurst at once, then one a minute, bound the uncounted icons of an account to 190 MB a day.
	iconBurst = 60
)

func errIcon(text string) error { return fault.Field("icon", text) }

// Pictures converts, stores and serves the icons of agents.
type Pictures struct {
	store   Icons
	limit   *limit.Keyed  // keyed by account
	drawing chan struct{} // capacity 1: held while a picture is drawn
}

// Put redraws a PNG, JPEG, GIF or WebP picture as a small square PNG, so that no metadata of the file
// survives, stores it and returns its hash for Draft.Icon.
func (s *Pictures) Put(ctx context.Context, actor ident.Actor, file io.Reader) (hash string, err error) {
	if err := RequireWriter(actor); err != nil {
		return "", err
	}
	if wait, ok := s.limit.Allow(actor.ID); !ok {
		return "", fault.Limited(wait, "You sent many pictures in a short time. Wait a moment.")
	}
	b, err := io.ReadAll(io.LimitReader(file, MaxIconBytes+1))
	if err != nil {
		return "", err
	}
	if len(b) > MaxIconBytes {
		return "", errIcon("use a picture of at most 2 MiB")
	}
	// Pictures are drawn one at a time, because each takes tens of MiB.
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

// drawIcon returns the stored form of a picture: a PNG of the centre square, scaled to iconSide.
func drawIcon(b []byte) ([]byte, error) {
	small, err := picture.CropSquare(b, iconSide)
	switch {
	case errors.Is(err, picture.ErrSize):
		return nil, errIcon("use a picture of at most 4 million pixels")
	case picture.IsFaulty(err):
		return nil, errIcon(err.Error())
	}
	return small, err
}

// Get returns a stored icon, a PNG; a NotFound fault if there is none.
func (s *Pictures) Get(ctx context.Context, hash string) ([]byte, error) {
	if !validIcon(hash) {
		return nil, fault.New(fault.NotFound, "There is no such picture.")
	}
	return s.store.Icon(ctx, hash)
}

func validIcon(hash string) bool {
	b, err := hex.DecodeString(hash)
	return err == nil && len(b) == 16
}
