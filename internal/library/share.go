package library

import (
	"context"
	"io"
	"strings"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// shareSecret begins each secret of a link, so that it is recognized where it should not be.
const shareSecret = "aglib_"

// Share makes a link to a file of the actor, to one version or, with number 0, to the newest at each time. The secret
// is returned only here.
func (s *Service) Share(ctx context.Context, actor ident.Actor, path string, number int,
	life time.Duration) (l Share, secret string, err error) {
	f, err := s.Find(ctx, actor, path)
	if err != nil {
		return l, "", err
	}
	if life <= 0 || life > MaxLife {
		return l, "", fault.Field("life", "use at most a year")
	}
	if number != 0 {
		v, err := s.store.VersionAt(ctx, actor.ID, f.Path, number)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return l, "", err
		}
		if err != nil || v.Hash == "" {
			return l, "", fault.Field("version", "is no version of the file")
		}
	} else if f.Hash == "" {
		return l, "", errNone(path)
	}
	now := clock.Now()
	l = Share{ID: ident.NewID(), PersonID: actor.ID, Path: f.Path, Version: number, CreatedAt: now,
		ExpiresAt: now.Add(life)}
	secret = ident.NewSecret(shareSecret)
	return l, secret, s.store.PutShare(ctx, l, ident.HashSecret(secret))
}

// Shares returns the actor's links that have not expired, of one file if path is not "", the newest first.
func (s *Service) Shares(ctx context.Context, actor ident.Actor, path string) ([]Share, error) {
	if err := checkAccount(actor); err != nil {
		return nil, err
	}
	return s.store.Shares(ctx, actor.ID, path, clock.Now())
}

// Revoke ends a link of the actor.
func (s *Service) Revoke(ctx context.Context, actor ident.Actor, id string) error {
	if err := checkAccount(actor); err != nil {
		return err
	}
	if !ident.ValidID(id) {
		return fault.New(fault.NotFound, "There is no link with the id %.80q.", id)
	}
	return s.store.DeleteShare(ctx, actor.ID, id)
}

// errNoShare is the same for links that expired, were revoked or never existed.
func errNoShare() error {
	return fault.New(fault.NotFound, "This link has expired, was revoked or never existed.")
}

// OpenShared returns the version behind the secret of a link, with its content, which the caller closes.
func (s *Service) OpenShared(ctx context.Context, secret string) (Version, io.ReadSeekCloser, error) {
	if !strings.HasPrefix(secret, shareSecret) || len(secret) > 100 {
		return Version{}, nil, errNoShare()
	}
	l, err := s.store.ShareBySecret(ctx, ident.HashSecret(secret))
	if fault.Is(err, fault.NotFound) || err == nil && !clock.Now().Before(l.ExpiresAt) {
		return Version{}, nil, errNoShare()
	}
	if err != nil {
		return Version{}, nil, err
	}
	f, err := s.store.FileAt(ctx, l.PersonID, l.Path)
	if err == nil && f.Hash == "" {
		err = errNoShare() // A deleted file is shared no more, whichever version the link names.
	}
	if err != nil {
		return Version{}, nil, err
	}
	v, r, err := s.openVersion(ctx, ident.Actor{Kind: ident.Person, ID: l.PersonID}, f, l.Version)
	if fault.Is(err, fault.NotFound) {
		err = errNoShare()
	}
	return v, r, err
}
