package hub

import (
	"context"
	"net/url"
	"time"
	"unicode/utf8"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/plaintext"
)

// Saved is a stored search that counts newly registered matches.
type Saved struct {
	ID        string
	AccountID string
	Title     string
	// Query is the encoded query string of the browse page.
	Query     string
	SeenAt    time.Time
	CreatedAt time.Time
	// New is the number of matching agents registered after SeenAt; only set in lists.
	New int
}

const (
	maxSaved      = 50
	maxSavedQuery = 1000
)

// SavedSearches stores the saved searches of accounts; each account has access to its own only.
type SavedSearches struct{ store Searches }

// Save stores a search for the actor. query is the encoded query string of the browse page; its
// parameters cursor and limit are dropped.
func (s *SavedSearches) Save(ctx context.Context, actor ident.Actor, title, query string) (Saved, error) {
	if err := requireAccount(actor, ident.AgentsWrite); err != nil {
		return Saved{}, err
	}
	v, err := url.ParseQuery(query)
	var c fault.Check
	c.Field(err == nil && len(query) <= maxSavedQuery, "query", "is not a search of this portal")
	if err := c.Err(); err != nil {
		return Saved{}, err
	}
	v.Del("cursor")
	v.Del("limit")
	if title = plaintext.OneLine(title); title == "" {
		title = plaintext.OneLine(v.Get("q"))
	}
	if title == "" {
		title = "All agents"
	}
	c.Field(utf8.RuneCountInString(title) <= maxTitle, "title", "use at most %d characters", maxTitle)
	if err := c.Err(); err != nil {
		return Saved{}, err
	}
	have, err := s.store.SavedSearches(ctx, actor.ID)
	if err != nil {
		return Saved{}, err
	}
	one := Saved{ID: ident.NewID(), AccountID: actor.ID, Title: title, Query: v.Encode(), CreatedAt: clock.Now(),
		SeenAt: clock.Now()}
	for _, h := range have {
		if h.Query == one.Query {
			return h, nil
		}
	}
	if len(have) >= maxSaved {
		return Saved{}, fault.New(fault.Conflict, "You keep %d searches already; remove one first.", maxSaved)
	}
	return one, s.store.SaveSearch(ctx, one)
}

// List lists the actor's saved searches. count returns the number of agents that match a search and were
// registered after a time; the caller supplies it, because only the page knows the query parameters.
func (s *SavedSearches) List(ctx context.Context, actor ident.Actor,
	count func(query string, since time.Time) int) ([]Saved, error) {
	if err := requireAccount(actor, ident.AgentsRead); err != nil {
		return nil, err
	}
	list, err := s.store.SavedSearches(ctx, actor.ID)
	for i := range list {
		list[i].New = count(list[i].Query, list[i].SeenAt)
	}
	return list, err
}

// MarkSeen sets SeenAt of a saved search to now.
func (s *SavedSearches) MarkSeen(ctx context.Context, actor ident.Actor, id string) error {
	if err := requireAccount(actor, ident.AgentsWrite); err != nil {
		return err
	}
	return s.store.SeenSearch(ctx, actor.ID, id, clock.Now())
}

// Delete deletes one of the actor's saved searches.
func (s *SavedSearches) Delete(ctx context.Context, actor ident.Actor, id string) error {
	if err := requireAccount(actor, ident.AgentsWrite); err != nil {
		return err
	}
	return s.store.DeleteSearch(ctx, actor.ID, id)
}
