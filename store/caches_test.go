package store_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/notify"
	"agentsite/internal/record"
	"agentsite/internal/registry"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
	"agentsite/store/engine"
	"agentsite/store/sqlite"
)

// readingMethods are the exported methods that change no row. Every other
// exported method is a step of TestCaches_MatchTheDiskAfterEveryWrite.
var readingMethods = strings.Fields(`
	AskedAs AccountByName AccountByID ListAccounts CountOperators CredentialByHash ListCredentials Account Operators
	AllAgents AgentsAfter AgentsOfKind AgentByName AgentByID AgentsOf AgentsByIDs ListRooms OlderCopies Versions CountAgents CountUsers NameTaken SealedSecret
	Due Checkup History CoOwners OfferOf Offers Domains StaleDomains Days Calls CallsSince Traces ElsewhereBy
	Unpublished Publishing Server CountServers Releases Reports Notices Unread Icon SavedSearches
	Queued Said Messages Message Edits Members Room RoomByLink SettingsOf RoomsOf LinkByHash LinksOf FileFor SharedFile
	OpenBlob SearchMessages Invited InvitationsOf CountRooms Blocks BlockersOf Disclosures Prefs Questions FirstAsked
	TaskByID TaskAsked ListTasks FindTasks ActiveTasks Asides Orphans LastCheckpoint ActivePortals TasksFor TasksAt WorkByPortal
	DueHooks NextEvent Attempts Hooked Webhook Webhooks Pushes
	LastCard Peers PeerChanges PeerPolicy Decisions Spent Stats Ping StorageOf GreatestStorage FreeDisk TendDisk DiskUse
	Backup Verify QuickCheck Dir Log Err Fatal Close`)

// cacheWorld is what the steps write to.
type cacheWorld struct {
	t          *testing.T
	db         *storetest.DB
	ctx        context.Context
	ann, bob   account.Account
	echo, calc hub.Agent
	room, gone chat.Conversation
	hook       notify.Hook
	hashes     []string // of credentials
	owners     []string
	rooms      []string
	agents     []string
	names      []string
	last       int64 // number of the newest change to publish
}

func newCacheWorld(t *testing.T) *cacheWorld {
	db := storetest.New(t)
	w := &cacheWorld{t: t, db: db, ctx: t.Context(), ann: storetest.Account(t, db, "ann"), bob: storetest.Account(t, db, "bob")}
	w.echo, w.calc = storetest.Agent(t, db, "echo", w.ann), storetest.Agent(t, db, "calc", account.Account{})
	w.room, w.gone = storetest.Conversation(t, db, w.ann, w.calc), storetest.Conversation(t, db, w.ann, w.calc)
	w.hook = webhook(t, db, w.ann, notify.AgentRegistered)
	w.owners, w.rooms = []string{w.ann.ID, w.bob.ID}, []string{w.room.ID, w.gone.ID}
	w.agents, w.names = []string{w.echo.ID, w.calc.ID}, []string{"echo", "calc"}
	return w
}

// credential adds a session of an account.
func (w *cacheWorld) credential(a account.Account) account.Credential {
	c := storetest.Credential(w.t, w.db, a, account.SessionCredential, time.Hour)
	w.hashes = append(w.hashes, c.Hash)
	return c
}

// event is the message by which a change of a conversation is shown in it.
func (w *cacheWorld) event() chat.Message {
	return chat.Message{ID: ident.NewID(), Sender: chat.Sender{Kind: "person", ID: w.ann.ID, Handle: "ann"}, Kind: chat.Event, CreatedAt: clock.Now()}
}

// agent is a new agent of ann.
func (w *cacheWorld) agent(name string) hub.Agent {
	a := full(w.ann, name)
	w.agents, w.names = append(w.agents, a.ID), append(w.names, name)
	return a
}

// asked returns a new task for calc.
func (w *cacheWorld) asked() task.Task {
	return storetest.Say(w.t, w.db, w.room, w.ann, "2 + 2", w.calc).Tasks[0]
}

// cachedReads are the results of all cached reads.
type cachedReads struct {
	Credentials map[string]account.Credential
	Accounts    map[string]account.Account
	Members     map[string][]chat.Member
	Settings    map[string]chat.Settings
	Spoke       map[string]string
	Agents      map[string]hub.Agent
	Owned       map[string]int
	Blockers    map[string][]string
}

func (w *cacheWorld) read(db *storetest.DB) cachedReads {
	r := cachedReads{make(map[string]account.Credential), make(map[string]account.Account), make(map[string][]chat.Member),
		make(map[string]chat.Settings), make(map[string]string), make(map[string]hub.Agent), make(map[string]int), make(map[string][]string)}
	for _, hash := range w.hashes {
		if c, a, err := db.CredentialByHash(w.ctx, hash); err == nil {
			r.Credentials[hash], r.Accounts[hash] = c, a
		}
	}
	for _, id := range w.rooms {
		r.Members[id], _ = db.Members(w.ctx, id)
		r.Settings[id], r.Spoke[id], _ = db.SettingsOf(w.ctx, id)
	}
	for _, id := range w.agents {
		if a, err := db.AgentByID(w.ctx, id); err == nil {
			r.Agents["id "+id] = a
		}
	}
	for _, name := range w.names {
		if a, err := db.AgentByName(w.ctx, name); err == nil {
			r.Agents["name "+name] = a
		}
	}
	for _, id := range w.owners {
		r.Owned[id], _ = db.CountAgents(w.ctx, id)
		r.Blockers[id], _ = db.BlockersOf(w.ctx, id)
	}
	return r
}

// compare reads through the caches and through a database without any, and
// compares the two.
func (w *cacheWorld) compare(step string) {
	w.t.Helper()
	fresh := storetest.Open(w.t, storetest.Dir(w.db))
	defer fresh.Close()
	if diff := cmp.Diff(w.read(fresh), w.read(w.db)); diff != "" {
		w.t.Errorf("after %s the caches differ from the disk (-disk +cached):\n%s", step, diff)
	}
	for {
		numbers, _, err := w.db.Unpublished(w.ctx, 1000)
		if err != nil {
			w.t.Fatal(err)
		}
		newest := w.last
		if len(numbers) > 0 {
			newest = max(newest, slices.Max(numbers))
		}
		raised := false
		select {
		case <-w.db.Publishing():
			raised = true
		default:
		}
		if newest > w.last && !raised {
			w.t.Errorf("after %s an agent waits to be published and nothing was signalled", step)
		}
		if w.last = newest; !raised {
			break
		}
	}
	w.compareWebhooks(step)
}

// compareWebhooks registers an agent and looks which webhooks have an event
// more: the cached list of webhooks decides that.
func (w *cacheWorld) compareWebhooks(step string) {
	w.t.Helper()
	before := w.waiting()
	storetest.Agent(w.t, w.db, "extra-"+strings.ToLower(ident.NewID()[16:]), w.ann)
	after := w.waiting()
	for id, n := range before.events {
		if want := n + before.due[id]; after.events[id] != want {
			w.t.Errorf("after %s the webhook %s has %d events, want %d", step, id, after.events[id], want)
		}
	}
	<-w.db.Publishing()
	numbers, _, _ := w.db.Unpublished(w.ctx, 1000)
	w.last = max(w.last, slices.Max(append(numbers, 0)))
}

// webhookEvents are the events that ann's webhooks have, and how many more each
// gets when an agent is registered.
type webhookEvents struct{ events, due map[string]int }

func (w *cacheWorld) waiting() webhookEvents {
	list, err := w.db.Webhooks(w.ctx, w.ann.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	out := webhookEvents{make(map[string]int), make(map[string]int)}
	for _, h := range list {
		out.events[h.ID] = h.Waiting + h.Missed
		if h.State == notify.Active && slices.Contains(h.Events, notify.AgentRegistered) {
			out.due[h.ID] = 1
		}
	}
	return out
}

// A cached row is the one on the disk after every write there is.
func TestCaches_MatchTheDiskAfterEveryWrite(t *testing.T) {
	t.Parallel()
	storetest.SkipOnPostgres(t)
	w := newCacheWorld(t)
	steps := make(map[string]bool)
	for _, list := range [][]cacheStep{w.accountSteps(), w.agentSteps(), w.invitationSteps(), w.roomSteps(), w.taskSteps(), w.hookSteps(), w.otherSteps()} {
		for _, s := range list {
			steps[strings.TrimRight(s.name, " +")] = true
			w.read(w.db) // the caches are full
			if err := s.write(); err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
			w.compare(s.name)
		}
	}
	methods, file := reflect.TypeOf(w.db), reflect.TypeFor[*sqlite.DB]()
	for i := range methods.NumMethod() {
		name := methods.Method(i).Name
		if _, ok := file.MethodByName(name); ok {
			continue // it is below the stores
		}
		if m := methods.Method(i).Type; m.NumIn() > 1 && m.In(1) == reflect.TypeFor[engine.Tx]() {
			continue // a part of another store's write
		}
		if reads := slices.Contains(readingMethods, name); reads == steps[name] {
			t.Errorf("%s: listed as reading %v, is a step %v", name, reads, steps[name])
		}
	}
}

// cacheStep calls one writing method; another step of the same method has a +
// after its name.
type cacheStep struct {
	name  string
	write func() error
}

func (w *cacheWorld) accountSteps() []cacheStep {
	invite := storetest.Credential(w.t, w.db, account.Account{}, account.InviteCredential, time.Hour)
	w.hashes = append(w.hashes, invite.Hash)
	one, two, three := w.credential(w.bob), w.credential(w.bob), w.credential(w.ann)
	return []cacheStep{
		{"CreateAccount", func() error {
			a := account.Account{ID: ident.NewID(), Name: "eve", PasswordHash: "x", CreatedAt: clock.Now()}
			return w.db.CreateAccount(w.ctx, a, invite.Hash, account.InviteCredential)
		}},
		{"EraseAccount", func() error {
			zoe := storetest.Account(w.t, w.db, "zoe")
			w.credential(zoe)
			if err := w.db.Block(w.ctx, zoe.ID, chat.Block{ID: w.bob.ID, Handle: "bob", CreatedAt: clock.Now()}); err != nil {
				return err
			}
			w.read(w.db)
			return w.db.EraseAccount(w.ctx, zoe.ID, ident.Actor{Kind: ident.System})
		}},
		{"AddCredential", func() error { w.credential(w.ann); return nil }},
		{"AddToken", func() error {
			c := account.Credential{ID: ident.NewID(), Hash: ident.NewID(), Kind: account.TokenCredential, AccountID: w.ann.ID, CreatedAt: clock.Now(), ExpiresAt: clock.Now().Add(time.Hour)}
			return w.db.AddToken(w.ctx, c, "", 100)
		}},
		{"AddSession", func() error {
			c := account.Credential{ID: ident.NewID(), Hash: ident.NewID(), Kind: account.SessionCredential, AccountID: w.ann.ID, CreatedAt: clock.Now(), ExpiresAt: clock.Now().Add(time.Hour)}
			_, err := w.db.AddSession(w.ctx, c, 1)
			return err
		}},
		{"Touch", func() error { // it is on the disk with the next commit
			return errors.Join(w.db.Touch(w.ctx, three.Hash, clock.Now(), clock.Now().Add(2*time.Hour)), w.db.SetEmail(w.ctx, w.ann.ID, "ann@example.org"))
		}},
		{"SetEmail", func() error { return w.db.SetEmail(w.ctx, w.bob.ID, "bob@example.org") }},
		{"DeleteCredentials", func() error {
			_, err := w.db.DeleteCredentials(w.ctx, w.bob.ID, one.ID, one.Kind)
			return err
		}},
		{"SetPassword", func() error { return w.db.SetPassword(w.ctx, w.bob.ID, "y", two.ID, "") }},
		{"SetDisabled", func() error { return w.db.SetDisabled(w.ctx, w.ann.ID, clock.Now(), ident.Actor{Kind: ident.System}) }},
		{"SetDisabled +", func() error { return w.db.SetDisabled(w.ctx, w.ann.ID, time.Time{}, ident.Actor{Kind: ident.System}) }},
	}
}

func (w *cacheWorld) agentSteps() []cacheStep {
	var doomed hub.Agent
	update := func(change func(*hub.Agent)) error {
		a, err := w.db.AgentByID(w.ctx, w.echo.ID)
		if err != nil {
			return err
		}
		change(&a)
		a.Version++
		return w.db.UpdateAgent(w.ctx, a, a.Version-1, nil, ident.Actor{ID: w.ann.ID})
	}
	elsewhere := hub.Agent{ID: ident.NewID(), Kind: hub.Peer, NetworkID: "n1", PortalID: "p1", Name: "far", Portal: "far.example", Title: "Far"}
	w.agents = append(w.agents, elsewhere.ID)
	png := []byte("a picture")
	hash := fmt.Sprintf("%x", sha256.Sum256(png))
	return []cacheStep{
		{"CreateAgent", func() error { doomed = w.agent("doomed"); return w.db.CreateAgent(w.ctx, doomed, nil) }},
		{"CreateAgents", func() error { return w.db.CreateAgents(w.ctx, []hub.Agent{w.agent("one"), w.agent("two")}) }},
		{"UpdateAgent", func() error { return update(func(a *hub.Agent) { a.Title = "Another" }) }},
		{"UpdateAgent +", func() error { return update(func(a *hub.Agent) { a.Endpoint = "https://b.example/echo" }) }},
		{"SetProof", func() error {
			return w.db.SetProof(w.ctx, w.echo.ID, w.ann.ID, hub.Proof{Method: hub.ProofToken, Origin: "https://b.example", At: clock.Now()})
		}},
		{"SetLiveness", func() error {
			return w.db.SetLiveness(w.ctx, w.echo.ID, hub.Liveness{State: hub.Alive, CheckedAt: clock.Now()}, clock.Now(), 0)
		}},
		{"DueAt", func() error { return w.db.DueAt(w.ctx, w.echo.ID, clock.Now()) }},
		{"AddCoOwner", func() error { return w.db.AddCoOwner(w.ctx, w.echo.ID, w.bob.ID) }},
		{"RemoveCoOwner", func() error { return w.db.RemoveCoOwner(w.ctx, w.echo.ID, w.bob.ID) }},
		{"SetOffer", func() error { return w.db.SetOffer(w.ctx, w.echo.ID, w.bob.ID) }},
		{"Transfer", func() error { return w.db.Transfer(w.ctx, w.echo.ID, w.bob.ID, true, 100) }},
		{"AddReport", func() error {
			return w.db.AddReport(w.ctx, hub.Report{ID: "r1", AgentID: w.echo.ID, ReporterKind: "person", ReporterID: w.ann.ID,
				ReporterHandle: "ann", Reason: "spam", CreatedAt: clock.Now()})
		}},
		{"CloseReport", func() error { _, err := w.db.CloseReport(w.ctx, "r1", "op", "nothing"); return err }},
		{"AddTraces", func() error {
			return w.db.AddTraces(w.ctx, w.calc.ID, w.asked().ID, []hub.Trace{{At: clock.Now(), Head: "POST"}})
		}},
		{"KeepElsewhere", func() error { return w.db.KeepElsewhere(w.ctx, elsewhere) }},
		{"KeepElsewhere +", func() error { elsewhere.Title = "Farther"; return w.db.KeepElsewhere(w.ctx, elsewhere) }},
		{"SaveRelease", func() error {
			a := w.agent("tools")
			a.Kind, a.Endpoint = hub.MCP, "https://tools.example/mcp"
			return w.db.SaveRelease(w.ctx, registry.Change{Server: registry.Server{Name: "example.a/one", Site: "domain:a.example", AgentID: a.ID}, At: clock.Now(),
				Latest: "1.0.0", Agent: &a, Author: ident.Actor{ID: w.ann.ID}, Add: &registry.Release{Version: "1.0.0", Status: registry.ReleaseActive,
					PublishedAt: clock.Now(), Title: "T", Description: "D", Document: []byte("{}")}})
		}},
		{"DeleteAgent", func() error { return w.db.DeleteAgent(w.ctx, doomed.ID) }},
		{"Published", func() error {
			numbers, _, err := w.db.Unpublished(w.ctx, 1)
			return errors.Join(err, w.db.Published(w.ctx, numbers))
		}},
		{"PutIcon", func() error { return w.db.PutIcon(w.ctx, hash[:len(hash)/2], png) }},
		{"SetDomain", func() error { return w.db.SetDomain(w.ctx, w.ann.ID, "a.example", true) }},
		{"RemoveDomain", func() error { return w.db.RemoveDomain(w.ctx, w.ann.ID, "a.example") }},
		{"SaveSearch", func() error {
			return w.db.SaveSearch(w.ctx, hub.Saved{ID: "s1", AccountID: w.ann.ID, Title: "T", Query: "q", SeenAt: clock.Now(), CreatedAt: clock.Now()})
		}},
		{"SeenSearch", func() error { return w.db.SeenSearch(w.ctx, w.ann.ID, "s1", clock.Now()) }},
		{"DeleteSearch", func() error { return w.db.DeleteSearch(w.ctx, w.ann.ID, "s1") }},
		{"AddNotice", func() error {
			return w.db.AddNotice(w.ctx, hub.Notice{ID: "n1", AccountID: w.ann.ID, Kind: "offer", Subject: "S", CreatedAt: clock.Now()})
		}},
		{"MarkNotices", func() error { return w.db.MarkNotices(w.ctx, w.ann.ID, "n1") }},
	}
}

func (w *cacheWorld) invitationSteps() []cacheStep {
	bob := chat.Member{Kind: "person", ID: w.bob.ID, Handle: "bob", Role: chat.RoleMember}
	in := chat.Invitees{By: chat.Sender{Kind: "person", ID: w.ann.ID, Handle: "ann"}, People: []chat.Member{bob}}
	room := storetest.Conversation(w.t, w.db, w.ann)
	w.rooms = append(w.rooms, room.ID)
	invite := func() error {
		_, _, err := w.db.InvitePerson(w.ctx, room.ID, in, w.event(), w.event())
		return err
	}
	return []cacheStep{
		{"InvitePerson", invite},
		{"WithdrawInvitation", func() error { return w.db.WithdrawInvitation(w.ctx, room.ID, w.bob.ID) }},
		{"InvitePerson +", invite},
		{"AcceptInvitation", func() error {
			_, err := w.db.AcceptInvitation(w.ctx, room.ID, bob, w.event())
			return err
		}},
		{"CreateInviting", func() error { // bob is added at once
			c := chat.Conversation{ID: ident.NewID(), CreatedAt: clock.Now(), Members: room.Members}
			w.rooms = append(w.rooms, c.ID)
			_, err := w.db.CreateInviting(w.ctx, c, in)
			return err
		}},
		{"Block", func() error {
			return w.db.Block(w.ctx, w.ann.ID, chat.Block{ID: w.bob.ID, Handle: "bob", CreatedAt: clock.Now()})
		}},
		{"Unblock", func() error { return w.db.Unblock(w.ctx, w.ann.ID, w.bob.ID) }},
		{"DeclineInvitation", func() error {
			other := storetest.Conversation(w.t, w.db, w.bob)
			by := chat.Invitees{By: chat.Sender{Kind: "person", ID: w.bob.ID, Handle: "bob"},
				People: []chat.Member{{Kind: "person", ID: w.ann.ID, Handle: "ann", Role: chat.RoleMember}}}
			if _, _, err := w.db.InvitePerson(w.ctx, other.ID, by, w.event(), w.event()); err != nil {
				return err
			}
			return w.db.DeclineInvitation(w.ctx, other.ID, w.ann.ID)
		}},
	}
}

func (w *cacheWorld) roomSteps() []cacheStep {
	event := func(_ chat.Message, err error) error { return err }
	posted := func(_ chat.Posted, err error) error { return err }
	link := chat.Link{ID: "l1", ConversationID: w.room.ID, Kind: chat.JoinLink, Role: chat.RoleMember, Creator: chat.Sender{Kind: "person", ID: w.ann.ID, Handle: "ann"},
		CreatedAt: clock.Now(), ExpiresAt: clock.Now().Add(time.Hour)}
	var hash string
	var visited chat.Conversation // of a guest
	room := func() chat.Conversation {
		c := chat.Conversation{ID: ident.NewID(), CreatedAt: clock.Now(), Members: w.room.Members}
		w.rooms = append(w.rooms, c.ID)
		return c
	}
	return []cacheStep{
		{"CreateConversation", func() error { return w.db.CreateConversation(w.ctx, room(), nil, []chat.Message{w.event()}) }},
		{"CreateConversation +", func() error {
			visited = room()
			visited.Members = []chat.Member{{Kind: "guest", ID: ident.NewID(), Handle: "guest", Role: chat.RoleOwner}}
			return w.db.CreateConversation(w.ctx, visited, nil, nil)
		}},
		{"ReplaceGuest", func() error {
			return event(w.db.ReplaceGuest(w.ctx, visited.ID, visited.Members[0].ID,
				chat.Member{Kind: "person", ID: w.bob.ID, Handle: "bob"}, w.event()))
		}},
		{"CreateAsking", func() error {
			c := room()
			return posted(w.db.CreateAsking(w.ctx, c, nil, storetest.Post(c, w.ann, ident.NewID(), "2 + 2", w.calc), nil))
		}},
		{"CreateAnswered", func() error {
			c := room()
			p := storetest.Post(c, w.ann, ident.NewID(), "2 + 2", w.calc)
			k, m := storetest.Answer(p.Ask[0], task.Completed, "4")
			_, err := w.db.CreateAnswered(w.ctx, chat.Answered{Room: c, Question: p.Message, Answer: m, Task: k})
			return err
		}},
		{"Append", func() error {
			p := storetest.Post(w.room, w.ann, ident.NewID(), "hello", w.calc)
			p.Spoke = w.calc.ID
			return posted(w.db.Append(w.ctx, p))
		}},
		{"Amend", func() error {
			said := storetest.Say(w.t, w.db, w.room, w.ann, "a text").Message
			m := storetest.Post(w.room, w.ann, "", "another text").Message
			m.Kind, m.Target = chat.Edit, said.Seq
			return event(w.db.Amend(w.ctx, m, true))
		}},
		{"Rename", func() error { return event(w.db.Rename(w.ctx, w.room.ID, "A title", w.event())) }},
		{"SetRoom", func() error {
			s := chat.DefaultSettings
			s.Hops++
			return event(w.db.SetRoom(w.ctx, w.room.ID, s, w.event()))
		}},
		{"PutLink", func() error { return w.db.PutLink(w.ctx, link, "hash") }},
		{"Join", func() error {
			return event(w.db.Join(w.ctx, w.room.ID, chat.Member{Kind: "person", ID: w.bob.ID, Handle: "bob", Role: chat.RoleMember}, "l1", w.event()))
		}},
		{"DropLink", func() error { return w.db.DropLink(w.ctx, w.room.ID, "l1") }},
		{"SetRole", func() error {
			return event(w.db.SetRole(w.ctx, w.room.ID, "person", w.bob.ID, chat.RoleOwner, w.event()))
		}},
		{"SetMine", func() error { return w.db.SetMine(w.ctx, w.room.ID, "person", w.ann.ID, chat.Mine{Pinned: true}) }},
		{"MarkRead", func() error { return w.db.MarkRead(w.ctx, w.room.ID, "person", w.ann.ID, 1) }},
		{"Leave", func() error { return event(w.db.Leave(w.ctx, w.room.ID, "person", w.bob.ID, clock.Now(), w.event())) }},
		{"DeleteRoom", func() error { return w.db.DeleteRoom(w.ctx, w.gone.ID) }},
		{"PutBlob", func() (err error) {
			hash, _, _, err = w.db.PutBlob(w.ctx, strings.NewReader("a file"), 100)
			return err
		}},
		{"PutFile", func() error {
			return w.db.PutFile(w.ctx, chat.File{Hash: hash, Size: 6, MediaType: "text/plain", CreatedAt: clock.Now()}, "person", w.ann.ID, 1000)
		}},
		{"DropOrphans", func() error { return w.db.DropOrphans(w.ctx, clock.Now().Add(time.Hour)) }},
		{"DropFiles", func() error { _, err := w.db.DropFiles(w.ctx, clock.Now().Add(time.Hour), 10); return err }},
		{"SweepBlobs", func() error { _, err := w.db.SweepBlobs(w.ctx, clock.Now().Add(time.Hour)); return err }},
		{"IndexWords", func() error { _, err := w.db.IndexWords(w.ctx); return err }},
		{"PurgeWords", func() error { return w.db.PurgeWords(w.ctx) }},
		{"Disclose", func() error {
			return w.db.Disclose(w.ctx, "person", w.ann.ID, chat.Disclosure{AgentID: w.echo.ID, Host: "a.example", Share: chat.ShareOwn, ToldAt: clock.Now()})
		}},
		{"SetPrefs", func() error { return w.db.SetPrefs(w.ctx, w.ann.ID, chat.Prefs{Zone: "UTC"}) }},
	}
}

func (w *cacheWorld) taskSteps() []cacheStep {
	var k task.Task
	return []cacheStep{
		{"Ask", func() error {
			said := storetest.Say(w.t, w.db, w.room, w.ann, "a question").Message
			k = storetest.Post(w.room, w.ann, "", "", w.calc).Ask[0]
			k.MessageSeq = said.Seq
			_, err := w.db.Ask(w.ctx, k)
			return err
		}},
		{"NextFence", func() error { _, err := w.db.NextFence(w.ctx); return err }},
		{"Begin", func() error { _, err := w.db.Begin(w.ctx, k.ID, 1); return err }},
		{"SaveCheckpoint", func() error { return w.db.SaveCheckpoint(w.ctx, k.ID, []byte(`{}`)) }},
		{"Finish", func() error {
			ended, m := storetest.Answer(k, task.Completed, "4")
			_, err := w.db.Finish(w.ctx, chat.Ended{Task: ended, Message: m})
			return err
		}},
	}
}

func (w *cacheWorld) hookSteps() []cacheStep {
	extra := w.hook
	extra.ID = ident.NewID()
	set := func(s notify.State, events ...notify.Type) func() error {
		return func() error {
			h := w.hook
			h.State, h.Events, h.UpdatedAt = s, events, clock.Now()
			return w.db.SetWebhook(w.ctx, h)
		}
	}
	var k task.Task
	return []cacheStep{
		{"AddWebhook", func() error { return w.db.AddWebhook(w.ctx, extra, 3) }},
		{"SetWebhook", set(notify.Paused, notify.AgentRegistered)},
		{"SetWebhook +", set(notify.Active, notify.AgentRegistered)},
		{"SetWebhook ++", set(notify.Active, notify.AgentChanged)},
		{"AddAttempt", func() error {
			return w.db.AddAttempt(w.ctx, extra.ID, notify.Attempt{EventID: "evt_1", At: clock.Now()})
		}},
		{"Settle", func() error { return w.db.Settle(w.ctx, notify.Outcome{HookID: extra.ID, Failed: true}) }},
		{"DropWebhook", func() error { return w.db.DropWebhook(w.ctx, w.ann.ID, w.hook.ID) }},
		{"PutPush", func() error { k = w.asked(); push(w.t, w.db, k, "one"); return nil }},
		{"DropPush", func() error { return w.db.DropPush(w.ctx, k.ID, "one") }},
	}
}

func (w *cacheWorld) otherSteps() []cacheStep {
	facts := federation.Facts{ID: "p1x", URL: "https://a.example", Known: clock.Now()}
	return []cacheStep{
		{"SavePeers", func() error { return w.db.SavePeers(w.ctx, []federation.Facts{facts}, nil, nil) }},
		{"DecidePeers", func() error {
			return w.db.DecidePeers(w.ctx, federation.Decided{By: ident.Actor{Kind: ident.System}, Act: "peer.deny", Subject: "p1x", Save: &facts})
		}},
		{"KeepNonces", func() error { return w.db.KeepNonces(w.ctx, map[[16]byte]time.Time{{1}: clock.Now()}) }},
		{"LoadNonces", func() error { _, err := w.db.LoadNonces(w.ctx, func([16]byte, time.Time) {}); return err }},
		{"EndNonces", func() error { return w.db.EndNonces(w.ctx) }},
		{"KeepCard", func() error { return w.db.KeepCard(w.ctx, "n", record.Version{Epoch: 1, Seq: 1}, []byte("card")) }},
		{"Add", func() error { return w.db.Add(w.ctx, "2026-01-02", "ann", 5) }},
		{"ClaimPortal", func() error {
			_, err := w.db.ClaimPortal(w.ctx, bytes.Repeat([]byte{1}, 32), "https://a.example")
			return err
		}},
		{"PurgeErased", func() error { return w.db.PurgeErased(w.ctx) }},
		{"EraseAuthor", func() error { // the last step, because bob loses his name
			return w.db.EraseAuthor(w.ctx, w.bob.ID, w.bob.Name, true, ident.Actor{Kind: ident.System})
		}},
	}
}
