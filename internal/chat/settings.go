package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// Change is a requested change of settings; a nil field stays as it is. Owners may change the conversation's
// settings, every member who may write its title. The last three fields are the actor's own settings.
type Change struct {
	Title   *string
	Speaks  *Speaks
	Speaker *string // handle of a member agent
	Past    *Past
	Hops    *int
	Turns   *int
	Budget  *int

	Pinned, Archived *bool
	Notify           *Notify
}

func (c Change) ofRoom() bool {
	return c.Speaks != nil || c.Speaker != nil || c.Past != nil || c.Hops != nil || c.Turns != nil || c.Budget != nil
}

// Set changes settings of a conversation and of the actor. Either all requested changes are stored or,
// if one is invalid or forbidden, none.
func (s *Service) Set(ctx context.Context, actor ident.Actor, id string, c Change) (Conversation, error) {
	if err := checkWrite(actor); err != nil {
		return Conversation{}, err
	}
	room, err := s.readRoom(ctx, actor, id)
	if err != nil {
		return Conversation{}, err
	}
	me, ok := findMember(room.Members, memberKind(actor), actor.ID)
	if !ok {
		return Conversation{}, errNoRoom()
	}
	if c.Title != nil {
		if err := checkWriter(me); err != nil {
			return Conversation{}, err
		}
		if err := s.Contacts.checkDelivery(ctx, actor, room.Members); err != nil {
			return Conversation{}, err
		}
	}
	if c.ofRoom() {
		if err := checkOwner(me); err != nil {
			return Conversation{}, err
		}
	}
	set, words, err := s.applyChange(room, c)
	if err != nil {
		return Conversation{}, err
	}
	title := ""
	if c.Title != nil {
		if title, err = checkTitle(*c.Title); err != nil {
			return Conversation{}, err
		}
	}
	var check fault.Check
	check.Field(c.Notify == nil || c.Notify.isValid(), "notify", "use %q, %q or nothing for all", NotifyMentions, NotifyNothing)
	if err := check.Err(); err != nil {
		return Conversation{}, err
	}
	if err := s.limits.limitRate(actor); err != nil {
		return Conversation{}, err
	}
	by := senderOf(actor)
	if title != "" && title != room.Title {
		m, err := s.store.Rename(ctx, id, title, newEvent(by, "%s renamed the conversation to “%s”", by.Handle, title))
		if err != nil {
			return Conversation{}, err
		}
		s.live.passMessage(m)
	}
	if set != room.Settings {
		m, err := s.store.SetRoom(ctx, id, set, newEvent(by, "%s %s", by.Handle, strings.Join(words, " and ")))
		if err != nil {
			return Conversation{}, err
		}
		s.live.passMessage(m)
	}
	mine := room.Mine
	if c.Pinned != nil {
		mine.Pinned = *c.Pinned
	}
	if c.Archived != nil {
		mine.Archived = *c.Archived
	}
	if c.Notify != nil {
		mine.Notify = *c.Notify
	}
	if mine != room.Mine {
		if err := s.store.SetMine(ctx, id, memberKind(actor), actor.ID, mine); err != nil {
			return Conversation{}, err
		}
	}
	return s.readShownRoom(ctx, actor, id)
}

func (n Notify) isValid() bool { return n == NotifyAll || n == NotifyMentions || n == NotifyNothing }

// applyChange returns the settings of room after c, and a description of each difference for the
// transcript; an Invalid fault for values out of range.
func (s *Service) applyChange(room Conversation, c Change) (set Settings, words []string, err error) {
	set = room.Settings
	var check fault.Check
	if c.Speaks != nil {
		set.Speaks = *c.Speaks
	}
	agents := room.Agents()
	if c.Speaker != nil && *c.Speaker != "" {
		h, _ := ident.ParseHandle(*c.Speaker, s.cfg.Portal)
		i := slices.IndexFunc(agents, func(m Member) bool { return m.Handle == h.String() })
		check.Field(i >= 0, "speaker", "there is no agent %.80q in this conversation", *c.Speaker)
		if i >= 0 {
			set.SpeakerID = agents[i].ID
			if c.Speaks == nil {
				set.Speaks = SpeaksAgent
			}
		}
	}
	if set.Speaks != SpeaksAgent {
		set.SpeakerID = ""
	}
	number := func(to *int, v *int, name string, least, most int) {
		if v != nil {
			check.Field(*v >= least && *v <= most, name, "use %d to %d", least, most)
			*to = *v
		}
	}
	number(&set.Hops, c.Hops, "hops", 0, MaxSettings.Hops)
	number(&set.Turns, c.Turns, "turns", 0, MaxSettings.Turns)
	number(&set.Budget, c.Budget, "budget", 0, MaxSettings.Budget)
	speaker, chosen := findMember(agents, "agent", set.SpeakerID)
	if set.Speaks != room.Settings.Speaks || set.SpeakerID != room.Settings.SpeakerID {
		switch set.Speaks {
		case SpeaksAlone:
			words = append(words, "lets an agent answer what is said to nobody if it is the only one")
		case SpeaksNobody:
			words = append(words, "lets no agent answer what is said to nobody")
		case SpeaksTurns:
			words = append(words, "lets the agents take turns with what is said to nobody")
		case SpeaksAgent:
			check.Field(chosen, "speaker", "choose the agent that answers")
			words = append(words, fmt.Sprintf("lets %s answer what is said to nobody", speaker.Handle))
		default:
			check.Field(false, "speaks", "use %s, %s, %s or %s", SpeaksAlone, SpeaksNobody, SpeaksAgent, SpeaksTurns)
		}
	}
	if c.Past != nil {
		set.Past = *c.Past
		check.Field(set.Past == PastAll || set.Past == PastNothing, "past", "use %s or %s", PastAll, PastNothing)
		if set.Past != room.Settings.Past {
			words = append(words, map[Past]string{PastAll: "shows those who join all that was said before", PastNothing: "shows those who join only what is said from then on"}[set.Past])
		}
	}
	if set.Hops != room.Settings.Hops || set.Turns != room.Settings.Turns || set.Budget != room.Settings.Budget {
		words = append(words, fmt.Sprintf("lets agents call each other %d times in a row, %d times in all and with %d KiB of answers, for one message", set.Hops, set.Turns, set.Budget>>10))
	}
	return set, words, check.Err()
}

// SetRole gives a person of the conversation the role owner, member or reader; only owners may. A
// Conflict fault if the last owner would lose that role.
func (s *Service) SetRole(ctx context.Context, actor ident.Actor, id, handle, role string) error {
	members, me, err := s.readWriters(ctx, actor, id)
	if err != nil {
		return err
	}
	if err := checkOwner(me); err != nil {
		return err
	}
	var c fault.Check
	c.Field(role == RoleOwner || role == RoleMember || role == RoleReader, "role", "use %s, %s or %s", RoleOwner, RoleMember, RoleReader)
	if err := c.Err(); err != nil {
		return err
	}
	m, err := s.findNamed(members, handle)
	if err != nil {
		return err
	}
	if m.Kind != "person" {
		return fault.New(fault.Conflict, "Only people have roles here.")
	}
	if m.Role == role {
		return nil
	}
	if m.Role == RoleOwner && !slices.ContainsFunc(members, func(o Member) bool { return o.Role == RoleOwner && (o.Kind != m.Kind || o.ID != m.ID) }) {
		return fault.New(fault.Conflict, "A conversation keeps at least one owner. Make somebody else an owner first.")
	}
	if err := s.limits.limitRate(actor); err != nil {
		return err
	}
	by := senderOf(actor)
	words := map[string]string{RoleOwner: "an owner", RoleMember: "a member", RoleReader: "a reader"}[role]
	e, err := s.store.SetRole(ctx, id, m.Kind, m.ID, role, newEvent(by, "%s made %s %s", by.Handle, m.Handle, words))
	if err != nil {
		return err
	}
	s.live.passMessage(e)
	// Join links of a former owner are revoked, because only owners may let people in.
	if m.Role == RoleOwner {
		s.dropLinks(ctx, id, func(l Link) bool { return l.Kind == JoinLink && l.Creator.ID == m.ID })
	}
	if role == RoleReader {
		s.stopWhere(ctx, id, m.Handle+" may only read now.", func(t task.Task) bool { return t.CallerID == m.ID })
	}
	return nil
}

// findNamed returns the member with a handle; a NotFound fault without one.
func (s *Service) findNamed(members []Member, handle string) (Member, error) {
	h, ok := ident.ParseHandle(handle, s.cfg.Portal)
	i := slices.IndexFunc(members, func(m Member) bool { return m.Handle == h.String() })
	if !ok || i < 0 {
		return Member{}, fault.New(fault.NotFound, "There is no member %.80q in this conversation.", handle)
	}
	return members[i], nil
}

// Preferences reads and stores the notification settings of people.
type Preferences struct {
	store  preferenceStore
	limits *rateLimits
}

type preferenceStore interface {
	Prefs(ctx context.Context, accountID string) (Prefs, error)
	SetPrefs(ctx context.Context, accountID string, p Prefs) error
}

// Get returns the actor's notification settings, or the defaults.
func (s *Preferences) Get(ctx context.Context, actor ident.Actor) (Prefs, error) {
	if err := checkRead(actor); err != nil {
		return Prefs{}, err
	}
	if err := hasAccount(actor, "choose when you are told of messages"); err != nil {
		return Prefs{}, err
	}
	return s.store.Prefs(ctx, actor.ID)
}

// minutes is the number of minutes of a day, the bound of quiet times.
const minutes = 24 * 60

// Set stores the actor's notification settings; an Invalid fault for an unknown zone or a time out of range.
func (s *Preferences) Set(ctx context.Context, actor ident.Actor, p Prefs) error {
	if err := checkWrite(actor); err != nil {
		return err
	}
	if err := hasAccount(actor, "choose when you are told of messages"); err != nil {
		return err
	}
	var c fault.Check
	c.Field(p.Notify.isValid(), "notify", "use %q, %q or nothing for all", NotifyMentions, NotifyNothing)
	c.Field(p.QuietFrom >= 0 && p.QuietFrom < minutes, "quiet_from", "use a time of the day")
	c.Field(p.QuietTo >= 0 && p.QuietTo < minutes, "quiet_to", "use a time of the day")
	c.Field(validZone(p.Zone), "zone", "is no time zone; write one like Europe/Berlin")
	if err := c.Err(); err != nil {
		return err
	}
	if err := s.limits.limitRate(actor); err != nil {
		return err
	}
	return s.store.SetPrefs(ctx, actor.ID, p)
}

func validZone(name string) bool {
	if name == "" {
		return true
	}
	if len(name) > 64 || name == "Local" || strings.Contains(name, "..") {
		return false
	}
	_, err := time.LoadLocation(name)
	return err == nil
}

func checkTitle(title string) (string, error) {
	title = oneLine(title)
	var c fault.Check
	c.Field(title != "", "title", "give it a name")
	c.Field(utf8.RuneCountInString(title) <= MaxTitleRunes, "title", "use at most %d characters", MaxTitleRunes)
	return title, c.Err()
}
