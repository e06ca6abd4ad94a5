package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"agentsite/bench/corpus"
	"agentsite/bench/proc"
	"agentsite/internal/ident"
	"agentsite/store"
)

// site is a running portal with accounts and agents. The caller must call stop.
type site struct {
	*proc.Process
	dir    string
	args   []string // the program and its settings
	files  int      // limit of descriptors, 0 for that of this process
	models *models
}

// person makes requests: it is an account with a token, or a guest with a cookie. from is the
// address that the portal believes the request comes from, "" for the real one.
type person struct {
	name, token, cookie, from string
	client                    *http.Client
}

// The agents of a site. slowAgent takes answerTime for an answer, the others answer at once.
const (
	slowAgent    = "slow"
	quickAgent   = "quick"
	builtinAgent = "calc"
	answerTime   = time.Second
)

// open starts a portal on a new folder with accounts and the two agents. The first account is an operator, the
// second one owns the agents, the third is the ordinary user; others is the number of further ones. args are
// settings.
func (b *bench) open(others int, args ...string) (*site, []*person, error) {
	dir, err := os.MkdirTemp(b.Dir, "site-")
	if err != nil {
		return nil, nil, err
	}
	return b.openIn(dir, others, args...)
}

// openIn is open on a folder that exists and is empty.
func (b *bench) openIn(dir string, others int, args ...string) (s *site, people []*person, err error) {
	people, err = seed(dir, others+3)
	if err != nil {
		return nil, nil, fmt.Errorf("fill a portal: %w", err)
	}
	if !slices.Contains(args, "--network") {
		args = append(args, "--network", "off")
	}
	s = &site{dir: dir, models: serveModels(), args: append([]string{b.Portal, "serve", "--data", dir, "--log-level", "error",
		"--trusted-proxies", "127.0.0.1/32"}, args...)}
	if err := s.start(); err != nil {
		s.models.close()
		return nil, nil, err
	}
	for _, name := range []string{slowAgent, quickAgent} {
		if err := s.register(people[1], name, name); err != nil {
			s.stop()
			return nil, nil, err
		}
	}
	return s, people, nil
}

// start starts the portal's process at a new address, with at most s.files descriptors unless that is 0.
func (s *site) start() (err error) {
	args := append(slices.Clone(s.args), "--listen", "127.0.0.1:0")
	if s.files > 0 {
		args = append([]string{"prlimit", fmt.Sprintf("--nofile=%d", s.files)}, args...)
	}
	s.Process, err = proc.Start("portal", args[0], args[1:]...)
	return err
}

// register makes an agent of p that is a model of this process.
func (s *site) register(p *person, name, model string) error {
	err := s.call(p, http.MethodPost, "/api/v1/agents", map[string]any{"name": name, "kind": "openai", "description": "Says ok.",
		"endpoint": s.models.base(), "visibility": "public", "config": map[string]any{"model": model}}, nil)
	if err != nil {
		return fmt.Errorf("register %s: %w", name, err)
	}
	return nil
}

// command runs a command of the portal's operator on the data folder and returns its time.
func (s *site) command(stdin string, args ...string) (time.Duration, error) {
	began := time.Now()
	cmd := exec.Command(s.args[0], append(args, "--data", s.dir)...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("agentsite %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return time.Since(began), nil
}

func (s *site) stop() {
	s.Kill()
	s.models.close()
	os.RemoveAll(s.dir)
}

// seed fills a data folder: the first account is an operator.
func seed(dir string, accounts int) (people []*person, err error) {
	if _, err := ident.CreateKeys(dir); err != nil {
		return nil, err
	}
	ctx := context.Background()
	db, err := store.Open(ctx, dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for i := range accounts {
		a, secret, err := corpus.AddPerson(db, fmt.Sprintf("person-%d", i), i == 0)
		if err != nil {
			return nil, err
		}
		people = append(people, &person{name: a.Name, token: secret, client: newClient()})
	}
	return people, nil
}

func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}, Timeout: 2 * time.Minute}
}

// refused is the error for an answer with a status of 400 or above.
type refused struct {
	status int
	body   string
}

func (r *refused) Error() string { return fmt.Sprintf("answered %d: %s", r.status, r.body) }

// request returns a request of p to the portal.
func (s *site) request(ctx context.Context, p *person, method, path string, body any) (*http.Request, error) {
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		in = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.Addr+path, in)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if p.token != "" {
		req.Header.Set("Authorization", "Bearer "+p.token)
	}
	if p.cookie != "" {
		req.Header.Set("Cookie", p.cookie)
	}
	if p.from != "" {
		req.Header.Set("X-Forwarded-For", p.from)
	}
	return req, nil
}

// call makes a request of p and decodes the answer into out, unless that is nil. A status of 400 or above
// is a *refused.
func (s *site) call(p *person, method, path string, body, out any) error {
	req, err := s.request(context.Background(), p, method, path, body)
	if err != nil {
		return err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if p.token == "" && len(resp.Cookies()) > 0 {
		p.cookie = resp.Cookies()[0].Name + "=" + resp.Cookies()[0].Value
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode >= 400 {
		return &refused{resp.StatusCode, string(text[:min(len(text), 300)])}
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}

// guest returns a visitor at an address.
func guest(from string) *person {
	return &person{name: "guest " + from, from: from, client: newClient()}
}

// room opens a conversation of p with agents and returns its id.
func (s *site) room(p *person, agents ...string) (string, error) {
	var c struct{ ID string }
	err := s.call(p, http.MethodPost, "/api/v1/conversations", map[string]any{"members": agents}, &c)
	return c.ID, err
}

// say posts a message. told are the agents on other hosts to which a guest agrees to send it.
func (s *site) say(p *person, room, text string, told ...string) error {
	return s.call(p, http.MethodPost, "/api/v1/conversations/"+room+"/messages",
		map[string]any{"client_id": ident.NewID(), "text": text, "told": told}, nil)
}

// models is a server of the OpenAI API with a slow and a quick model.
type models struct {
	listener net.Listener
	server   *http.Server
}

func serveModels() *models {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err) // a machine without free ports cannot run a benchmark
	}
	m := &models{listener: l}
	m.server = &http.Server{Handler: http.HandlerFunc(answer)}
	go m.server.Serve(l)
	return m
}

func (m *models) base() string { return "http://" + m.listener.Addr().String() + "/v1" }
func (m *models) close()       { m.server.Close() }

// answer is the whole model: it says "ok", the slow one after answerTime.
func answer(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Method != http.MethodPost {
		fmt.Fprint(w, `{"object":"list","data":[{"id":"slow","object":"model"},{"id":"quick","object":"model"}]}`)
		return
	}
	var in struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, 8<<20)).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if in.Model == slowAgent {
		select {
		case <-r.Context().Done():
			return
		case <-time.After(answerTime):
		}
	}
	if in.Stream {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ok\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
		return
	}
	fmt.Fprint(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}`)
}
