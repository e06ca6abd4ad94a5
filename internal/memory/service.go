package memory

import (
	"context"
	"slices"
	"strings"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/grant"
	"agentsite/internal/ident"
)

// Grants keeps the decisions of people; grant.Service implements it.
type Grants interface {
	Look(ctx context.Context, u grant.Use) (grant.Decision, error)
}

// Notices notifies people.
type Notices interface {
	// NotifyDropped says that the oldest memories of an agent about the person were deleted for new ones.
	NotifyDropped(ctx context.Context, personID, agent string, n int)
}

// NoticeKind is the kind of notices about memories that were deleted for new ones.
const NoticeKind = "memory"

// Config holds the dependencies of a Service.
type Config struct {
	Store   Store
	Grants  Grants
	Notices Notices
	Encoder Encoder
	// Bounds default to MaxOfPlace and MaxOfPerson.
	Bounds Bounds
}

// Service keeps memories. Create it with New; it is safe for concurrent use.
type Service struct {
	cfg     Config
	shelves shelves
}

// New returns a service.
func New(cfg Config) *Service {
	if cfg.Bounds == (Bounds{}) {
		cfg.Bounds = Bounds{MaxOfPlace, MaxOfPerson}
	}
	return &Service{cfg, shelves{store: cfg.Store, encoder: cfg.Encoder, all: make(map[string]*shelf)}}
}

const (
	// pageSize and maxPage are the numbers of memories of a page.
	pageSize, maxPage = 20, 100
	// maxQuery bounds a query in bytes.
	maxQuery = 500
	// usedEvery is how often the use of a memory is noted, so that a recall seldom writes.
	usedEvery = time.Hour
)

// Page is a part of a person's memories. Next is the id to go on from, "" at the end.
type Page struct {
	Memories []Memory
	Next     string
}

// List returns the actor's memories, the newest first or, with a query, the ones that fit it best.
func (s *Service) List(ctx context.Context, actor ident.Actor, f Filter, query string) (Page, error) {
	if err := checkAccount(actor); err != nil {
		return Page{}, err
	}
	if f.Limit <= 0 {
		f.Limit = pageSize
	}
	if f.Limit > maxPage {
		return Page{}, fault.New(fault.Invalid, "limit is at most %d.", maxPage)
	}
	query = strings.TrimSpace(query)
	if len(query) > maxQuery {
		return Page{}, fault.Field("q", "is too long")
	}
	if f.Before != "" && !ident.ValidID(f.Before) {
		return Page{}, fault.Field("cursor", "is not from a list of memories")
	}
	if query != "" {
		list, err := s.findMemories(ctx, actor.ID, f, query)
		return Page{Memories: list}, err
	}
	want := f.Limit
	f.Limit++
	list, err := s.cfg.Store.MemoriesOf(ctx, actor.ID, f)
	if err != nil || len(list) <= want {
		return Page{Memories: list}, err
	}
	return Page{list[:want], list[want-1].ID}, nil
}

// findMemories returns the memories of a person that fit a query.
func (s *Service) findMemories(ctx context.Context, personID string, f Filter, query string) ([]Memory, error) {
	n := f.Limit
	if f.Agent != "" {
		n = 4 * maxPage // the agent is known only after they were read
	}
	list, err := s.searchShelf(ctx, Place{PersonID: personID}, false, func(b *shelf) []string {
		return b.searchTexts(query, "", n, personCosine)
	})
	list = slices.DeleteFunc(list, func(m Memory) bool {
		return m.PersonID != personID || f.Agent != "" && m.Agent != f.Agent
	})
	return list[:min(len(list), f.Limit)], err
}

// maxSearches bounds the searches of one query.
const maxSearches = 4

// searchShelf returns the memories that a search finds on the shelf of a place. Some may have been deleted with their
// agent, room or account: it takes them off the shelf and searches again, because they took places of others.
func (s *Service) searchShelf(ctx context.Context, p Place, room bool, search func(*shelf) []string) (list []Memory,
	err error) {
	for range maxSearches {
		var ids []string
		if err := s.shelves.useShelf(ctx, p, room, func(b *shelf) { ids = search(b) }); err != nil {
			return nil, err
		}
		if list, err = s.readMemories(ctx, ids); err != nil || len(list) == len(ids) {
			return list, err
		}
		err := s.shelves.useShelf(ctx, p, room, func(b *shelf) {
			for _, id := range ids {
				if !slices.ContainsFunc(list, func(m Memory) bool { return m.ID == id }) {
					b.removeMemory(id)
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// readMemories returns the memories with ids that exist, in the order of the ids.
func (s *Service) readMemories(ctx context.Context, ids []string) ([]Memory, error) {
	list, err := s.cfg.Store.MemoriesByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	at := make(map[string]int, len(ids))
	for i, id := range ids {
		at[id] = i
	}
	slices.SortFunc(list, func(a, b Memory) int { return at[a.ID] - at[b.ID] })
	return list, nil
}

// Count returns the number of the actor's memories with an agent; 0 for actors without an account.
func (s *Service) Count(ctx context.Context, actor ident.Actor, agent string) (int, error) {
	if checkAccount(actor) != nil {
		return 0, nil
	}
	return s.cfg.Store.CountMemories(ctx, actor.ID, agent)
}

// Edit gives a memory of the actor another text. If only the text is refused, it returns the memory with the fault.
func (s *Service) Edit(ctx context.Context, actor ident.Actor, id, text string) (Memory, error) {
	m, err := s.ownMemory(ctx, actor, id)
	if err != nil {
		return m, err
	}
	if m.Text, err = checkText(text); err != nil {
		return m, err
	}
	if err := s.cfg.Store.SetMemoryText(ctx, actor.ID, id, m.Text); err != nil {
		return m, err
	}
	s.shelves.changeShelves(m.Place, func(b *shelf) { b.putMemory(m) })
	return m, nil
}

// Delete erases a memory of the actor.
func (s *Service) Delete(ctx context.Context, actor ident.Actor, id string) error {
	m, err := s.ownMemory(ctx, actor, id)
	if err != nil {
		return err
	}
	n, err := s.dropMemories(ctx, actor.ID, []Memory{m})
	if err == nil && n == 0 {
		err = errNone(id)
	}
	return err
}

// DeleteAll erases all memories of the actor with an agent, and returns how many there were.
func (s *Service) DeleteAll(ctx context.Context, actor ident.Actor, agent string) (int, error) {
	if err := checkAccount(actor); err != nil {
		return 0, err
	}
	if agent == "" {
		return 0, fault.Field("agent", "name the agent whose memories to delete")
	}
	ids, err := s.cfg.Store.DeleteMemoriesOf(ctx, actor.ID, agent)
	if err != nil {
		return 0, err
	}
	s.shelves.changeShelves(Place{PersonID: actor.ID}, func(b *shelf) {
		for _, id := range ids {
			b.removeMemory(id)
		}
	})
	return len(ids), nil
}

// ownMemory returns a memory of the actor.
func (s *Service) ownMemory(ctx context.Context, actor ident.Actor, id string) (Memory, error) {
	if err := checkAccount(actor); err != nil {
		return Memory{}, err
	}
	if !ident.ValidID(id) {
		return Memory{}, errNone(id)
	}
	list, err := s.cfg.Store.MemoriesByID(ctx, []string{id})
	if err != nil {
		return Memory{}, err
	}
	if len(list) == 0 || list[0].PersonID != actor.ID {
		return Memory{}, errNone(id)
	}
	return list[0], nil
}

// dropMemories erases memories of a person.
func (s *Service) dropMemories(ctx context.Context, personID string, list []Memory) (int, error) {
	ids := make([]string, len(list))
	for i, m := range list {
		ids[i] = m.ID
	}
	n, err := s.cfg.Store.DeleteMemories(ctx, personID, ids)
	if err != nil {
		return 0, err
	}
	for _, m := range list {
		s.shelves.changeShelves(m.Place, func(b *shelf) { b.removeMemory(m.ID) })
	}
	return n, nil
}

func errNone(id string) error {
	return fault.New(fault.NotFound, "There is no memory with the id %.80q.", id)
}

// checkAccount returns a fault unless the actor has an account and full rights to it.
func checkAccount(actor ident.Actor) error {
	switch {
	case !actor.IsPerson():
		return fault.New(fault.Unauthenticated, "Sign in to see what agents remember of you.")
	case !actor.May(ident.AccountAll):
		return fault.New(fault.Forbidden, "%s", ident.AccountAll.DescribeMissing())
	}
	return nil
}

// decideFor returns the decision of a person about the memory of an agent.
func (s *Service) decideFor(ctx context.Context, u Use, personID string) (grant.Decision, error) {
	return s.cfg.Grants.Look(ctx, grant.Use{Person: grant.Person{Kind: string(ident.Person), ID: personID},
		AgentID: u.AgentID, Agent: u.Agent, Tool: grant.Memory, ConversationID: u.ConversationID, Binds: u.Binds})
}

// IsOn reports whether the person of a use lets the agent remember without asking.
func (s *Service) IsOn(ctx context.Context, u Use) (bool, error) {
	d, err := s.decideFor(ctx, u, u.PersonID)
	return d == grant.Allowed, err
}

// Remember stores texts for a place. Without a grant the person must have agreed to them just now. distilled says that
// a model took them from the conversation, which needs a grant.
func (s *Service) Remember(ctx context.Context, u Use, texts []string, distilled bool) (int, error) {
	d, err := s.decideFor(ctx, u, u.PersonID)
	if err != nil {
		return 0, err
	}
	if d == grant.Denied || d != grant.Allowed && distilled {
		return 0, fault.New(fault.Forbidden, "The person does not want you to remember.")
	}
	binding := ""
	if d != grant.Allowed {
		binding = BindingHash(u.Binds)
	}
	now := clock.Now()
	var list []Memory
	for _, text := range texts {
		if text = cleanText(text); text != "" {
			list = append(list, Memory{ID: ident.NewID(), Place: u.Place, Agent: u.Agent, Text: text,
				ConversationID: u.ConversationID, Seq: u.Seq, Distilled: distilled, Binding: binding, CreatedAt: now,
				UsedAt: now})
		}
	}
	if len(list) == 0 {
		return 0, nil
	}
	added, dropped, err := s.cfg.Store.PutMemories(ctx, list, s.cfg.Bounds)
	if err != nil {
		return 0, err
	}
	s.shelves.changeShelves(u.Place, func(b *shelf) {
		for _, m := range added {
			b.putMemory(m)
		}
		for _, id := range dropped {
			b.removeMemory(id)
		}
	})
	if len(dropped) > 0 && s.cfg.Notices != nil {
		s.cfg.Notices.NotifyDropped(ctx, u.PersonID, u.Agent, len(dropped))
	}
	return len(added), nil
}

// Recall returns up to n memories of a place that fit a text, the best first. If the place has at most n, it returns
// all of them.
func (s *Service) Recall(ctx context.Context, u Use, text string, n int) ([]Memory, error) {
	if len(text) > maxQuery {
		text = strings.ToValidUTF8(text[:maxQuery], "")
	}
	tag := tagOf(u.Place)
	list, err := s.searchShelf(ctx, u.Place, u.RoomID != "", func(b *shelf) []string {
		ids := b.searchTexts(text, tag, 2*n, agentCosine)
		for _, id := range b.newestOf(tag, n) {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		return ids
	})
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(m Memory) bool {
		return m.AgentID != u.AgentID || m.RoomID != u.RoomID || m.RoomID == "" && m.PersonID != u.PersonID
	})
	list, err = s.keepUsable(ctx, u, list)
	if err != nil {
		return nil, err
	}
	list = list[:min(len(list), n)]
	now, used := clock.Now(), []string{}
	for _, m := range list {
		if now.Sub(m.UsedAt) > usedEvery {
			used = append(used, m.ID)
		}
	}
	if len(used) > 0 {
		err = s.cfg.Store.MarkUsed(ctx, used, now)
	}
	return list, err
}

// keepUsable keeps the memories that the agent may use now: those of a person with a permission in force, and those to
// which a person agreed for the agent as it is. Those of others in a room from before the person came are left out.
func (s *Service) keepUsable(ctx context.Context, u Use, list []Memory) ([]Memory, error) {
	decisions := make(map[string]grant.Decision)
	binding := BindingHash(u.Binds)
	var out []Memory
	for _, m := range list {
		if m.PersonID != u.PersonID && m.Seq <= u.FromSeq {
			continue
		}
		d, known := decisions[m.PersonID]
		if !known {
			var err error
			if d, err = s.decideFor(ctx, u, m.PersonID); err != nil {
				return nil, err
			}
			decisions[m.PersonID] = d
		}
		if d == grant.Allowed || d == grant.Undecided && m.Binding == binding {
			out = append(out, m)
		}
	}
	return out, nil
}
