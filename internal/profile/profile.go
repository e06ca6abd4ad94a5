// Package profile keeps the look of accounts: a display name, a picture, the theme of pages, and the kinds of notices
// that a person switched off. Others see the name and the public agents of a person; the display name, the picture and
// the packages only if the person shows them. It knows neither cookies nor SQL.
package profile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
	"agentsite/internal/lookalike"
	"agentsite/internal/picture"
	"agentsite/internal/plaintext"
)

const (
	// MaxPictureBytes is the largest uploaded picture.
	MaxPictureBytes = 2 << 20
	// MaxDisplayName bounds a display name in characters.
	MaxDisplayName = 40
	// MaxListed bounds the agents and the packages of a profile.
	MaxListed = 50

	side       = 128 // pixels of a stored picture
	maxKept    = 10_000
	keptFor    = time.Minute // bounds the age of a look that another process of the portal changed
	changes    = 30
	changeRate = 10 * time.Second
)

// Themes are the looks of pages; "" follows the system.
var Themes = []string{"", "light", "dark"}

// Profile is the stored look of an account. The zero Profile is that of an account that changed nothing.
type Profile struct {
	AccountID, Name string
	DisplayName     string
	Shown           bool // others see the display name, the picture and the packages
	Theme           string
	Muted           []string // kinds of notices that are not stored
	Picture         string   // hash of the picture, "" for none
}

// Public is a person as others see it.
type Public struct {
	Name, DisplayName, Picture string
	Shown, Own                 bool
	Agents, Packages           []string // names
}

// Store stores profiles.
type Store interface {
	// Profile returns the profile of an enabled account by its id or its name; a NotFound fault without such an
	// account.
	Profile(ctx context.Context, id, name string) (Profile, error)
	// SaveProfile stores all of p but the picture.
	SaveProfile(ctx context.Context, p Profile, at time.Time) error
	// SavePicture stores a PNG and its hash; "" removes the picture.
	SavePicture(ctx context.Context, accountID, hash string, png []byte, at time.Time) error
	// Picture returns the PNG of an account; a NotFound fault if there is none.
	Picture(ctx context.Context, accountID string) ([]byte, error)
	// PublicAgents and PublicPackages return the names of public agents, and of packages that can be fetched.
	PublicAgents(ctx context.Context, accountID string, limit int) ([]string, error)
	PublicPackages(ctx context.Context, accountID string, limit int) ([]string, error)
}

// Service decides about profiles. It is safe for concurrent use. Create it with New.
type Service struct {
	store   Store
	names   *lookalike.Names
	changes *limit.Keyed  // by account
	drawing chan struct{} // capacity 1, because drawing takes tens of MiB

	mu   sync.Mutex // guards kept
	kept map[string]kept
}

// kept is a profile that was read a moment ago. It has no name for an account that is absent.
type kept struct {
	Profile
	at time.Time
}

// New returns a service. names are the names that display names must not resemble.
func New(store Store, names *lookalike.Names) *Service {
	return &Service{store: store, names: names, changes: limit.New(changeRate, changes, 50_000),
		drawing: make(chan struct{}, 1), kept: make(map[string]kept)}
}

// read returns a profile by the id, or with @ by the name, of an account. It reads the store at most once a minute.
func (s *Service) read(ctx context.Context, key string) (Profile, error) {
	s.mu.Lock()
	k, ok := s.kept[key]
	s.mu.Unlock()
	if ok && clock.Now().Sub(k.at) < keptFor {
		return k.Profile, nil
	}
	id, name := key, ""
	if after, ok := strings.CutPrefix(key, "@"); ok {
		id, name = "", after
	}
	p, err := s.store.Profile(ctx, id, name)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return Profile{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kept) >= maxKept {
		clear(s.kept)
	}
	s.kept[key] = kept{p, clock.Now()}
	return p, nil
}

func (s *Service) forget(actor ident.Actor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kept, actor.ID)
	delete(s.kept, "@"+actor.Name)
}

// Look returns the profile of an actor for the frame of its pages; the zero Profile for guests and on errors.
func (s *Service) Look(ctx context.Context, actor ident.Actor) Profile {
	if s == nil || !actor.IsPerson() {
		return Profile{}
	}
	p, err := s.read(ctx, actor.ID)
	if err != nil {
		return Profile{}
	}
	return p
}

// Picture returns the hash of the picture that all may see of a person; "" for none and on errors.
func (s *Service) Picture(ctx context.Context, name string) string {
	if s == nil || ident.CheckForm(name) != nil {
		return ""
	}
	if p, err := s.read(ctx, "@"+name); err == nil && p.Shown {
		return p.Picture
	}
	return ""
}

// Get returns the actor's own profile.
func (s *Service) Get(ctx context.Context, actor ident.Actor) (Profile, error) {
	if err := requirePerson(actor); err != nil {
		return Profile{}, err
	}
	return s.store.Profile(ctx, actor.ID, "")
}

// Change applies change to the actor's own profile and stores it.
func (s *Service) Change(ctx context.Context, actor ident.Actor, change func(*Profile)) error {
	p, err := s.Get(ctx, actor)
	if err != nil {
		return err
	}
	before := p.DisplayName
	change(&p)
	p.DisplayName = plaintext.OneLine(p.DisplayName)
	var c fault.Check
	c.Field(utf8.RuneCountInString(p.DisplayName) <= MaxDisplayName, "display_name", "use at most %d characters",
		MaxDisplayName)
	if p.DisplayName != before {
		like := s.names.Resembles(p.DisplayName)
		c.Field(like == "", "display_name", "people would take it for the portal's own “%s”; choose another", like)
	}
	c.Field(slices.Contains(Themes, p.Theme), "theme", "choose system, light or dark")
	if err := c.Err(); err != nil {
		return err
	}
	if err := s.allow(actor); err != nil {
		return err
	}
	defer s.forget(actor)
	return s.store.SaveProfile(ctx, p, clock.Now())
}

// SetPicture stores a PNG, JPEG, GIF or WebP picture as a small square PNG, drawn anew, so that no metadata of the file
// survives.
func (s *Service) SetPicture(ctx context.Context, actor ident.Actor, file io.Reader) error {
	if err := requirePerson(actor); err != nil {
		return err
	}
	if err := s.allow(actor); err != nil {
		return err
	}
	b, err := io.ReadAll(io.LimitReader(file, MaxPictureBytes+1))
	if err != nil {
		return err
	}
	if len(b) > MaxPictureBytes {
		return fault.Field("picture", "use a picture of at most 2 MiB")
	}
	select {
	case s.drawing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	png, err := func() ([]byte, error) {
		defer func() { <-s.drawing }() // also if a decoder panics
		return picture.CropSquare(b, side)
	}()
	switch {
	case errors.Is(err, picture.ErrSize):
		return fault.Field("picture", "use a picture of at most 4 million pixels")
	case picture.IsFaulty(err):
		return fault.Field("picture", err.Error())
	case err != nil:
		return err
	}
	sum := sha256.Sum256(png)
	defer s.forget(actor)
	return s.store.SavePicture(ctx, actor.ID, hex.EncodeToString(sum[:16]), png, clock.Now())
}

// RemovePicture removes the actor's picture.
func (s *Service) RemovePicture(ctx context.Context, actor ident.Actor) error {
	if err := requirePerson(actor); err != nil {
		return err
	}
	defer s.forget(actor)
	return s.store.SavePicture(ctx, actor.ID, "", nil, clock.Now())
}

// OpenPicture returns the picture of a person as a PNG with its hash; a NotFound fault if there is none, or none that
// the actor may see.
func (s *Service) OpenPicture(ctx context.Context, actor ident.Actor, name string) (png []byte, hash string, err error) {
	p, err := s.find(ctx, name)
	if err != nil {
		return nil, "", err
	}
	if p.Picture == "" || !p.Shown && !isOwn(actor, p) {
		return nil, "", errAbsent()
	}
	png, err = s.store.Picture(ctx, p.AccountID)
	return png, p.Picture, err
}

// Show returns a person as the actor may see it. A person that shows nothing and has no public agent is as absent as
// one that does not exist.
func (s *Service) Show(ctx context.Context, actor ident.Actor, name string) (Public, error) {
	p, err := s.find(ctx, name)
	if err != nil {
		return Public{}, err
	}
	out := Public{Name: p.Name, Shown: p.Shown, Own: isOwn(actor, p)}
	if out.Agents, err = s.store.PublicAgents(ctx, p.AccountID, MaxListed); err != nil {
		return Public{}, err
	}
	if p.Shown || out.Own {
		out.DisplayName, out.Picture = p.DisplayName, p.Picture
		if out.Packages, err = s.store.PublicPackages(ctx, p.AccountID, MaxListed); err != nil {
			return Public{}, err
		}
	}
	if len(out.Agents) == 0 && !p.Shown && !out.Own {
		return Public{}, errAbsent()
	}
	return out, nil
}

// find reads the profile of a person by a name from outside.
func (s *Service) find(ctx context.Context, name string) (Profile, error) {
	if ident.CheckForm(name) != nil {
		return Profile{}, errAbsent()
	}
	p, err := s.store.Profile(ctx, "", name)
	if fault.Is(err, fault.NotFound) {
		return Profile{}, errAbsent()
	}
	return p, err
}

func (s *Service) allow(actor ident.Actor) error {
	if wait, ok := s.changes.Allow(actor.ID); !ok {
		return fault.Limited(wait, "You changed your profile often in a short time. Wait a moment.")
	}
	return nil
}

func errAbsent() error {
	return fault.New(fault.NotFound, "There is no such person here, or no page about them.")
}

// isOwn reports whether a profile is that of the actor. A token without the right to the account sees what others see.
func isOwn(actor ident.Actor, p Profile) bool {
	return actor.IsPerson() && actor.ID == p.AccountID && actor.May(ident.AccountAll)
}

func requirePerson(actor ident.Actor) error {
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Sign in first.")
	}
	if !actor.May(ident.AccountAll) {
		return fault.New(fault.Forbidden, "%s", ident.AccountAll.DescribeMissing())
	}
	return nil
}
