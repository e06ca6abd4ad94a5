package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentsite/bench/proc"
	"agentsite/internal/chat"
	"agentsite/internal/grant"
	"agentsite/internal/ident"
	"agentsite/store"
)

// portals is the number of portals in the network. Each agent of the chain is on another portal than the one before.
const portals = 3

// knownTime is the longest time until the portals know the agents of each other.
const knownTime = time.Minute

// people is the number of callers. Each may call an agent of another portal 20 times, and all of a portal 300
// times, before both limits slow them down, so that only a few questions can be measured: one of each in a round.
const people = 8

// network is the chain of agents on its portals. One goroutine uses it.
type network struct {
	portals  []*portal
	asked    int
	contexts [people]string // the conversation of each person
}

// startNetwork starts the portals and registers the chain. The caller must call stop, also after an error.
func (b *bench) startNetwork(model *proc.Process) (n *network, err error) {
	n = new(network)
	for i := range portals {
		var flags []string
		if i > 0 {
			flags = []string{"--join", "http://" + n.portals[0].Addr}
		}
		p, err := b.startPortal(model, people, flags...)
		if err != nil {
			return n, err
		}
		n.portals = append(n.portals, p)
	}
	for i := range chain {
		instructions, tools := "Answer.", []string(nil)
		if i < chain-1 {
			instructions, tools = askNext+n.handleOf(i+1)+";", []string{"ask"}
		}
		if err := n.portalOf(i).registerAgent(nameOf(i), instructions, tools...); err != nil {
			return n, err
		}
		for _, token := range n.portalOf(i).tokens {
			if err := n.portalOf(i).allowAsking(token, nameOf(i)); err != nil {
				return n, err
			}
		}
	}
	for i := range chain - 1 {
		if err := n.portalOf(i).awaitAgent(n.handleOf(i + 1)); err != nil {
			return n, err
		}
	}
	return n, n.allowAll()
}

// allowAll asks the chain for each person until the answer comes from the last agent. Each portal sees the person as
// one of another portal, so its agent asks once more. The question after that is taken as an answer that no person gave.
func (n *network) allowAll() error {
	for i := 0; ; i++ {
		var failed error
		for person := range people {
			if _, err := n.askChain(person); err != nil {
				failed = err
			}
		}
		if failed == nil || i == 2*chain {
			return failed
		}
		for _, p := range n.portals {
			if err := p.allowVisitors(); err != nil {
				return err
			}
		}
	}
}

func nameOf(i int) string                 { return fmt.Sprintf("link-%d", i) }
func (n *network) portalOf(i int) *portal { return n.portals[i%portals] }
func (n *network) handleOf(i int) string  { return nameOf(i) + "@" + n.portalOf(i).Addr }

func (n *network) stop() {
	for _, p := range n.portals {
		p.Stop()
	}
}

// sumCPU adds up the processor time of the portals by a method of proc.Process.
func (n *network) sumCPU(read func(*proc.Process) (time.Duration, error)) (sum time.Duration, err error) {
	for _, p := range n.portals {
		used, err := read(p.Process)
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

// answer is the part of an answer by A2A that the benchmark reads.
type answer struct {
	Result struct {
		Task struct {
			ContextID string
			Status    struct{ Message said }
			Artifacts []said
		}
	}
	Error struct{ Message string }
}

type said struct{ Parts []struct{ Text string } }

// askChain asks the first agent for a person, in one conversation of that person, and returns the time until the
// answer, which has come from the last agent.
func (n *network) askChain(person int) (time.Duration, error) {
	n.asked++
	message := map[string]any{"messageId": fmt.Sprintf("m-%d", n.asked), "role": "ROLE_USER",
		"parts": []any{map[string]string{"text": "go on"}}}
	if id := n.contexts[person]; id != "" {
		message["contextId"] = id
	}
	at := time.Now()
	p := n.portals[0]
	res, err := sendJSON(p.client, http.MethodPost, "http://"+p.Addr+"/agents/"+nameOf(0)+"/a2a", p.tokens[person],
		map[string]any{"jsonrpc": "2.0", "id": n.asked, "method": "SendMessage", "params": map[string]any{"message": message}})
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	var a answer
	if err := json.NewDecoder(res.Body).Decode(&a); err != nil {
		return 0, err
	}
	took, text := time.Since(at), a.Error.Message
	for _, s := range append(a.Result.Task.Artifacts, a.Result.Task.Status.Message) {
		for _, part := range s.Parts {
			text += part.Text
		}
	}
	if n.contexts[person] == "" {
		n.contexts[person] = a.Result.Task.ContextID
		// The default is too few for a chain of this length: each agent may pass on half of the calls.
		if err := p.callAPI(p.tokens[person], http.MethodPatch, "/api/v1/conversations/"+a.Result.Task.ContextID,
			map[string]int{"turns": chat.MaxSettings.Turns}); err != nil {
			return 0, err
		}
	}
	if !strings.Contains(text, lastWord) {
		return 0, fmt.Errorf("the chain answered: %.600s", text)
	}
	return took, nil
}

// awaitAgent waits until the portal knows an agent of another one.
func (p *portal) awaitAgent(handle string) error {
	for end := time.Now().Add(knownTime); ; time.Sleep(100 * time.Millisecond) {
		err := p.callAPI(p.tokens[0], http.MethodGet, "/api/v1/agents/"+handle, nil)
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}

// allowVisitors gives people of other portals that asked agents here the grants of the account, as if they had
// answered the question of the agent.
func (p *portal) allowVisitors() (err error) {
	ctx := context.Background()
	db, err := store.Open(ctx, p.dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	account, err := db.Accounts.AccountByName(ctx, "person-0")
	if err != nil {
		return err
	}
	own, err := db.Grants.GrantsOf(ctx, grant.Person{Kind: string(ident.Person), ID: account.ID}, "")
	if err != nil {
		return err
	}
	asking, _, err := db.Tasks.ActivePortals(ctx)
	if err != nil {
		return err
	}
	for _, id := range asking {
		list, err := db.Tasks.TasksFor(ctx, id)
		if err != nil {
			return err
		}
		for _, t := range list {
			i := slices.IndexFunc(own, func(g grant.Grant) bool { return g.AgentID == t.AgentID })
			if i < 0 {
				continue
			}
			g := own[i]
			g.ID, g.Person = ident.NewID(), grant.Person{Kind: string(ident.Portal), ID: t.CallerID}
			if err := db.Grants.PutGrant(ctx, g); err != nil {
				return err
			}
		}
	}
	return nil
}

// countWrites returns the number of durable transactions on all portals for one question to the chain.
func (n *network) countWrites() (int, error) {
	for person := range people {
		before, err := n.readLogs()
		if err != nil {
			return 0, err
		}
		if _, err := n.askChain(person); err != nil {
			return 0, err
		}
		after, err := n.readLogs()
		if err != nil {
			return 0, err
		}
		sum, whole := 0, true
		for i := range after {
			whole = whole && after[i].generation == before[i].generation
			sum += after[i].commits - before[i].commits
		}
		if whole {
			return sum, nil
		}
	}
	return 0, errors.New("the write-ahead logs began anew with each question")
}

// writeLog is the number of transactions in a write-ahead log since it began anew.
type writeLog struct {
	generation uint64
	commits    int
}

func (n *network) readLogs() (list []writeLog, err error) {
	for _, p := range n.portals {
		l, err := readLog(filepath.Join(p.dir, "agentsite.db-wal"))
		if err != nil {
			return nil, err
		}
		list = append(list, l)
	}
	return list, nil
}

// readLog counts the transactions in a write-ahead log of SQLite: the frames of its generation that end one, which
// have the size of the database.
func readLog(path string) (l writeLog, err error) {
	const header, frame = 32, 24
	b, err := os.ReadFile(path)
	if err != nil || len(b) < header {
		return l, err
	}
	l.generation = binary.BigEndian.Uint64(b[16:])
	page := int(binary.BigEndian.Uint32(b[8:]))
	for b = b[header:]; len(b) >= frame+page && binary.BigEndian.Uint64(b[8:]) == l.generation; b = b[frame+page:] {
		if binary.BigEndian.Uint32(b[4:]) > 0 {
			l.commits++
		}
	}
	return l, nil
}
