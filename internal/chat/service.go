package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
	"agentsite/internal/task"
)

// AgentRef is an agent as conversations know it.
type AgentRef struct {
	ID     string
	Handle string
	Title  string
	// Remote is the host its text goes to, "" when it stays on this portal.
	Remote string
	// Public agents may be talked to by guests.
	Public bool
}

// People and agents by name, with the rights of the one who asks. Both answer
// NotFound for what the actor may not see.
type Directory interface {
	Agent(ctx context.Context, actor ident.Actor, handle string) (AgentRef, error)
	Person(ctx context.Context, actor ident.Actor, name string) (Member, error)
	// Admit says whether an agent's owner takes a call of size bytes by the
	// actor now, and counts it.
	Admit(ctx context.Context, actor ident.Actor, handle string, size int) error
}

// Config is what a portal decides about conversations.
type Config struct {
	// Portal is the portal's part of handles.
	Portal string
	Log    *slog.Logger
}

// Service is the logic of conversations. Create it with New.
type Service struct {
	store     Store
	directory Directory
	runner    task.Runner
	cfg       Config
	live      *live

	// Guests may say little in a while; people as much as one can type and a
	// program needs.
	guests, people, creations *limit.Keyed
}

// New returns a service over its ports.
func New(store Store, directory Directory, runner task.Runner, cfg Config) *Service {
	return &Service{
		store: store, directory: directory, runner: runner, cfg: cfg, live: newLive(),
		guests:    limit.New(30*time.Second, 20, 50_000),
		people:    limit.New(5*time.Millisecond, 1000, 50_000),
		creations: limit.New(20*time.Second, 30, 50_000),
	}
}

func memberKind(actor ident.Actor) string {
	if actor.Kind == ident.Guest {
		return "guest"
	}
	return "person"
}

func errNoRoom() error {
	return fault.New(fault.NotFound, "There is no such conversation, or you are not in it.")
}

func reads(actor ident.Actor) error {
	if actor.ID == "" {
		return fault.New(fault.Unauthenticated, "Sign in, or start a conversation as a guest.")
	}
	if !actor.May(ident.ChatRead) && !actor.May(ident.ChatWrite) {
		return fault.New(fault.Forbidden, "This token lacks the scope %q.", ident.ChatRead)
	}
	return nil
}

func writes(actor ident.Actor) error {
	if actor.ID == "" {
		return fault.New(fault.Unauthenticated, "Sign in to talk.")
	}
	if !actor.May(ident.ChatWrite) {
		return fault.New(fault.Forbidden, "This token lacks the scope %q.", ident.ChatWrite)
	}
	return nil
}

func (s *Service) room(ctx context.Context, actor ident.Actor, id string) (Conversation, error) {
	if !ident.ValidID(id) {
		return Conversation{}, errNoRoom()
	}
	c, err := s.store.Room(ctx, id, memberKind(actor), actor.ID)
	if fault.Is(err, fault.NotFound) {
		return Conversation{}, errNoRoom()
	}
	return c, err
}

// members is who is in a conversation of the actor.
func (s *Service) members(ctx context.Context, actor ident.Actor, id string) ([]Member, error) {
	if !ident.ValidID(id) {
		return nil, errNoRoom()
	}
	list, err := s.store.Members(ctx, id)
	if err != nil {
		return nil, err
	}
	if !has(list, Member{Kind: memberKind(actor), ID: actor.ID}) {
		return nil, errNoRoom()
	}
	return list, nil
}

func sender(actor ident.Actor) Sender {
	handle := actor.Name
	if actor.Kind == ident.Guest {
		handle = "guest"
	}
	kind := string(actor.Kind)
	if actor.Kind == ident.Operator {
		kind = string(ident.Person)
	}
	return Sender{Kind: kind, ID: actor.ID, Handle: handle}
}

// event returns a quiet line of the transcript.
func event(by Sender, format string, args ...any) Message {
	return Message{ID: ident.NewID(), Sender: by, Kind: Event, Parts: []task.Part{task.TextPart(fmt.Sprintf(format, args...))}, CreatedAt: clock.Now()}
}

// Create opens a conversation of the actor with the named agents and people.
func (s *Service) Create(ctx context.Context, actor ident.Actor, title string, handles []string) (Conversation, error) {
	if err := writes(actor); err != nil {
		return Conversation{}, err
	}
	if actor.Kind == ident.Guest {
		if wait, ok := s.creations.Allow(actor.Addr); !ok {
			return Conversation{}, fault.Limited(wait, "Visitors may start only so many conversations. Wait a moment, or sign up.")
		}
	} else if wait, ok := s.people.Allow(actor.ID); !ok {
		return Conversation{}, fault.Limited(wait, "That was very much in a short time. Wait a moment.")
	}
	var c fault.Check
	title = oneLine(title)
	c.Field(utf8.RuneCountInString(title) <= MaxTitleRunes, "title", "use at most %d characters", MaxTitleRunes)
	c.Field(len(handles) <= MaxMembers, "members", "invite at most %d", MaxMembers)
	if err := c.Err(); err != nil {
		return Conversation{}, err
	}
	now := clock.Now()
	me := sender(actor)
	room := Conversation{ID: ident.NewID(), Title: title, CreatedAt: now, UpdatedAt: now,
		Members: []Member{{Kind: memberKind(actor), ID: actor.ID, Handle: me.Handle, Role: "owner"}}}
	for _, h := range handles {
		m, err := s.member(ctx, actor, h)
		if err != nil {
			return Conversation{}, asField(err, "members")
		}
		if !has(room.Members, m) {
			room.Members = append(room.Members, m)
		}
	}
	return room, s.store.CreateConversation(ctx, room, nil)
}

func asField(err error, name string) error {
	if e := fault.As(err); e.Kind == fault.NotFound || e.Kind == fault.Invalid {
		return &fault.Error{Kind: e.Kind, Safe: e.Safe, Fields: map[string]string{name: e.Safe}, Err: err}
	}
	return err
}

func has(list []Member, m Member) bool {
	return slices.ContainsFunc(list, func(x Member) bool { return x.Kind == m.Kind && x.ID == m.ID })
}

// member finds who a handle names, with the actor's rights.
func (s *Service) member(ctx context.Context, actor ident.Actor, handle string) (Member, error) {
	a, err := s.directory.Agent(ctx, actor, handle)
	if err == nil {
		if actor.Kind == ident.Guest && !a.Public {
			return Member{}, fault.New(fault.NotFound, "There is no agent %.80q here that visitors may talk to.", handle)
		}
		return Member{Kind: "agent", ID: a.ID, Handle: a.Handle, Role: "member", Remote: a.Remote}, nil
	}
	if !fault.Is(err, fault.NotFound) {
		return Member{}, err
	}
	if actor.Kind != ident.Guest {
		if m, perr := s.directory.Person(ctx, actor, handle); perr == nil {
			return m, nil
		} else if !fault.Is(perr, fault.NotFound) {
			return Member{}, perr
		}
	}
	return Member{}, err
}

// List returns the actor's conversations, most recently changed first, and
// the point after which the next page starts.
func (s *Service) List(ctx context.Context, actor ident.Actor, before Point, limit int) ([]Conversation, error) {
	if actor.ID == "" {
		return nil, nil
	}
	if err := reads(actor); err != nil {
		return nil, err
	}
	if limit < 1 || limit > 100 {
		return nil, &fault.Error{Kind: fault.Invalid, Safe: "limit: use 1 to 100", Fields: map[string]string{"limit": "use 1 to 100"}}
	}
	return s.store.RoomsOf(ctx, memberKind(actor), actor.ID, before, limit)
}

// Get returns a conversation the actor is in.
func (s *Service) Get(ctx context.Context, actor ident.Actor, id string) (Conversation, error) {
	if err := reads(actor); err != nil {
		return Conversation{}, err
	}
	return s.room(ctx, actor, id)
}

// Messages returns up to limit messages with after < seq < before, in order;
// newest takes the last ones instead of the first.
func (s *Service) Messages(ctx context.Context, actor ident.Actor, id string, after, before int64, limit int, newest bool) ([]Message, error) {
	if err := reads(actor); err != nil {
		return nil, err
	}
	var c fault.Check
	c.Field(after >= 0, "after", "must not be negative")
	c.Field(before >= 0, "before", "must not be negative")
	c.Field(limit >= 1 && limit <= 200, "limit", "use 1 to 200")
	if err := c.Err(); err != nil {
		return nil, err
	}
	if _, err := s.members(ctx, actor, id); err != nil {
		return nil, err
	}
	return s.store.Messages(ctx, id, after, before, limit, newest)
}

// Read notes that the actor has seen the conversation up to seq.
func (s *Service) Read(ctx context.Context, actor ident.Actor, id string, seq int64) error {
	if err := reads(actor); err != nil {
		return err
	}
	c, err := s.room(ctx, actor, id)
	if err != nil || c.ReadSeq >= seq {
		return err
	}
	return s.store.MarkRead(ctx, id, memberKind(actor), actor.ID, min(seq, c.LastSeq))
}

// Draft is a message somebody wants to say.
type Draft struct {
	// ClientID makes sending again harmless: the same one by the same sender
	// in the same conversation is said once, for ever.
	ClientID string
	Parts    []task.Part
	// Face is the door it came through.
	Face string
	// To, when set, is the id of the member agent the message is for, whatever
	// its text says.
	To string
}

func checkDraft(actor ident.Actor, d Draft) error {
	var c fault.Check
	c.Field(d.ClientID != "", "client_id", "give every message an id of your own, for example a UUID, so that sending it again is harmless")
	c.Field(len(d.ClientID) <= MaxClientID, "client_id", "use at most %d bytes", MaxClientID)
	c.Field(len(d.Parts) > 0, "text", "say something")
	c.Field(len(d.Parts) <= MaxParts, "parts", "use at most %d parts", MaxParts)
	limit := MaxTextBytes
	if actor.Kind == ident.Guest {
		limit = MaxGuestTextBytes
	}
	size := 0
	for _, p := range d.Parts {
		size += len(p.Text) + len(p.Data) + len(p.URL)
		set := 0
		for _, ok := range []bool{p.Text != "", p.Raw != nil, p.URL != "", p.Data != nil} {
			if ok {
				set++
			}
		}
		c.Field(set == 1, "parts", "each part holds exactly one of text, url and data")
		c.Field(p.Raw == nil, "parts", "files cannot be sent yet; paste the text, or send a url")
		c.Field(len(p.MediaType) <= 200 && len(p.Filename) <= 300 && len(p.Metadata) <= 4096, "parts", "a part's names are too long")
		c.Field(utf8.ValidString(p.Text) && !strings.ContainsRune(p.Text, 0), "text", "use UTF-8 text without NUL")
	}
	c.Field(size <= limit, "text", "is %d bytes long; use at most %d", size, limit)
	if len(d.Parts) == 1 && d.Parts[0].Data == nil && d.Parts[0].URL == "" {
		c.Field(strings.TrimSpace(d.Parts[0].Text) != "", "text", "say something")
	}
	return c.Err()
}

// Post says something in a conversation. The agents it addresses get it as a
// task each. It returns once the message is on disk; a repeated ClientID
// returns the first message with Repeat set.
func (s *Service) Post(ctx context.Context, actor ident.Actor, id string, d Draft) (Posted, error) {
	if err := writes(actor); err != nil {
		return Posted{}, err
	}
	if err := checkDraft(actor, d); err != nil {
		return Posted{}, err
	}
	members, err := s.members(ctx, actor, id)
	if err != nil {
		return Posted{}, err
	}
	limiter, key := s.people, actor.ID
	if actor.Kind == ident.Guest {
		limiter, key = s.guests, actor.Addr
	}
	if wait, ok := limiter.Allow(key); !ok {
		if actor.Kind == ident.Guest {
			return Posted{}, fault.Limited(wait, "Visitors may say only so much in a while. Try again in %s, or sign up.", wait.Round(time.Second))
		}
		return Posted{}, fault.Limited(wait, "You sent very much in a short time. Try again in a moment.")
	}
	now := clock.Now()
	text := task.PlainText(d.Parts)
	size := len(text)
	p := Post{
		MustBeMember: true,
		Title:        snippet(titleOf(d.Parts), 60),
		Message: Message{ConversationID: id, ID: ident.NewID(), ClientID: d.ClientID, Sender: sender(actor),
			Kind: Text, Parts: d.Parts, CreatedAt: now},
	}
	agents := Conversation{Members: members}.Agents()
	addressed := Addressed(agents, text, s.cfg.Portal)
	if d.To != "" {
		addressed = slices.DeleteFunc(agents, func(m Member) bool { return m.ID != d.To })
	}
	for _, m := range addressed {
		if _, err := s.directory.Agent(ctx, actor, m.Handle); err != nil {
			if fault.Is(err, fault.NotFound) {
				err = fault.New(fault.Conflict, "%s is not here any more, so nobody would answer.", m.Handle)
			}
			return Posted{}, err
		}
		if err := s.directory.Admit(ctx, actor, m.Handle, size); err != nil {
			// Sent again, it is owed the first answer whatever the limits say.
			if said, serr := s.store.Said(ctx, id, actor.ID, d.ClientID); serr == nil {
				return Posted{Message: said, Repeat: true}, nil
			}
			return Posted{}, err
		}
		p.Ask = append(p.Ask, task.Task{
			ID: ident.NewID(), ConversationID: id, AgentID: m.ID, AgentHandle: m.Handle,
			CallerKind: string(actor.Kind), CallerID: actor.ID, CallerHandle: p.Message.Sender.Handle,
			State: task.Submitted, Face: d.Face, CreatedAt: now, UpdatedAt: now,
		})
	}
	done, err := s.store.Append(ctx, p)
	if err != nil {
		if fault.Is(err, fault.NotFound) {
			return Posted{}, errNoRoom()
		}
		return Posted{}, err
	}
	if done.Repeat {
		return done, nil
	}
	s.live.message(done.Message)
	if len(done.Tasks) > 0 {
		for _, t := range done.Tasks {
			s.Working(t)
		}
		s.runner.Wake()
	}
	return done, nil
}

// Addressed returns the agents that a text asks to answer: those it mentions
// as @name, else the only one there is.
func Addressed(agents []Member, text, portal string) []Member {
	var out []Member
	for _, h := range mentions(text, portal) {
		for _, m := range agents {
			if m.Handle == h && !has(out, m) {
				out = append(out, m)
			}
		}
	}
	if len(out) == 0 && len(agents) == 1 {
		return agents
	}
	return out
}

// mentions returns the handles written as @name or @name@portal at the start
// of a word.
func mentions(text, portal string) []string {
	var out []string
	for i := 0; i < len(text); i++ {
		if text[i] != '@' {
			continue
		}
		if i > 0 {
			if r, _ := utf8.DecodeLastRuneInString(text[:i]); unicode.IsLetter(r) || unicode.IsDigit(r) {
				continue
			}
		}
		end := i + 1
		for end < len(text) && strings.IndexByte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-@.:", text[end]) >= 0 {
			end++
		}
		word := strings.TrimRight(text[i+1:end], ".:-@")
		if h, ok := ident.ParseHandle(word, portal); ok && len(out) < MaxMembers {
			out = append(out, h.String())
		}
		i = end - 1
	}
	return out
}

// snippet is the beginning of a text on one line.
// titleOf is what a conversation is called after its first message: its words,
// without data that only programs read.
func titleOf(parts []task.Part) string {
	var words []string
	for _, p := range parts {
		if p.Text != "" {
			words = append(words, p.Text)
		}
	}
	if len(words) > 0 {
		return strings.Join(words, " ")
	}
	var call struct {
		Tool string `json:"tool"`
	}
	for _, p := range parts {
		if json.Unmarshal(p.Data, &call) == nil && call.Tool != "" {
			return "Use of " + call.Tool
		}
	}
	return task.PlainText(parts)
}

func snippet(text string, runes int) string {
	text = oneLine(text)
	if utf8.RuneCountInString(text) <= runes {
		return text
	}
	r := []rune(text)[:runes-1]
	return strings.TrimSpace(string(r)) + "…"
}

func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return strings.Join(strings.Fields(s), " ")
}

// Finish records how a task ended, or what it waits for, as a message of its
// agent, and tells readers. It is for the runtime. The answer's client id is
// the task's id, so it is said once whatever happens.
func (s *Service) Finish(ctx context.Context, t task.Task, r task.Result) error {
	t.State, t.Reason, t.UpdatedAt = r.State, cut(r.Reason, 900), clock.Now()
	m := Message{ConversationID: t.ConversationID, ID: ident.NewID(),
		ClientID: fmt.Sprintf("%s/%d", t.ID, t.MessageSeq), Sender: Sender{Kind: "agent", ID: t.AgentID, Handle: t.AgentHandle},
		Kind: Text, Parts: r.Parts, TaskID: t.ID, TaskState: t.State, Reason: t.Reason, CreatedAt: t.UpdatedAt}
	if t.State.Terminal() {
		m.ClientID = t.ID
	}
	if len(m.Parts) == 0 {
		m.Kind = Event
		if t.Reason == "" {
			t.Reason = map[task.State]string{task.Completed: "Done, without an answer.", task.Canceled: "Stopped."}[t.State]
			m.Reason = t.Reason
		}
		m.Parts = []task.Part{task.TextPart(t.Reason)}
	}
	m, err := s.store.Finish(ctx, t, m)
	if err != nil {
		if fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound) {
			s.forget(t) // it ended otherwise, or its conversation is gone
		}
		return err
	}
	s.live.message(m)
	s.settled(t)
	return nil
}

// EndTask implements task.Ender for tasks that are not running.
func (s *Service) EndTask(ctx context.Context, t task.Task, r task.Result) error {
	return s.Finish(ctx, t, r)
}

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// Bounds of what goes along to an agent.
const (
	historyMessages = 40
	historyBytes    = 48 << 10
)

// History returns what was said before a task's message, oldest first, cut to
// what goes along to an agent. It is for the runtime.
func (s *Service) History(ctx context.Context, t task.Task) (ask Message, earlier []Message, err error) {
	list, err := s.store.Messages(ctx, t.ConversationID, 0, t.MessageSeq+1, historyMessages, true)
	if err != nil {
		return Message{}, nil, err
	}
	if len(list) == 0 || list[len(list)-1].Seq != t.MessageSeq {
		return Message{}, nil, fault.New(fault.NotFound, "The message this task answers is gone.")
	}
	ask, list = list[len(list)-1], list[:len(list)-1]
	size := 0
	for i := len(list) - 1; i >= 0; i-- {
		m := list[i]
		if m.Kind != Text {
			continue
		}
		if size += len(task.PlainText(m.Parts)); size > historyBytes {
			break
		}
		earlier = append(earlier, m)
	}
	slices.Reverse(earlier)
	return ask, earlier, nil
}
