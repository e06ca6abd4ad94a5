// Package embedding lets searches compare the vectors of a model on a server that the operator chose, in place of the
// model in the binary. Only the texts of listed agents, which are public, and those of searches go there; texts of
// conversations and goals only if the operator allows it.
//
// A search is by one model. While the server does not answer, or has not encoded the agents yet, all searches are by
// the model in the binary.
//
//	s := embedding.New(embedding.Config{Server: server, Transport: rt, Index: x, Builtin: model, Path: path})
//	go s.Run(ctx)
//	page, err := s.Search(hub.Query{Text: "my puppy has a fever"})
package embedding

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/hub"
	"agentsite/internal/index"
)

const (
	// queryWait is the longest wait for the vector of a query. After it the model in the binary answers.
	queryWait = 1500 * time.Millisecond
	// textsWait is the longest wait for the vectors of other texts.
	textsWait = time.Minute
	// maxQueries is the number of queries that are asked for at the same time. The model in the binary answers others.
	maxQueries = 8
	// maxKept is the number of vectors of queries and other passing texts that are kept in memory.
	maxKept = 2000
	// maxBeside is the number of texts of agents outside of the index that one search asks for. With more, it
	// compares words only.
	maxBeside = maxTexts
	// missingShare is the divisor of the number of agents that gives how many may lack vectors in a search.
	missingShare = 20
	// firstPause and lastPause are the pauses after failures in a row, doubled each time.
	firstPause = time.Second
	lastPause  = time.Minute
	// tidyEvery is how often vectors of texts that no agent has any more are removed.
	tidyEvery = 24 * time.Hour
)

// Config has the parts of a Service.
type Config struct {
	Server    Server
	Transport http.RoundTripper
	Index     *index.Index
	// Builtin is the model in the binary. The cosines are brought to its scale.
	Builtin index.Encoder
	// Path is the file of the cache, and Secret the key for its hashes of texts.
	Path   string
	Secret []byte
	// Private lets texts of conversations and goals go to the server.
	Private bool
	Log     *slog.Logger
}

// Service searches by the model of a server. It implements hub.Index with the index in its Config.
type Service struct {
	*index.Index
	cfg    Config
	client *client
	slots  chan struct{} // of maxQueries
	failed chan struct{} // wakes Run after a query failed

	mu    sync.Mutex // guards the following fields
	ready index.Model
	up    bool // the server has answered since the last failure
	err   error
	since time.Time            // of the last change of up
	kept  map[string][]float32 // of queries and passing texts, by the model ready
	cache *cache               // nil before the server answered for the first time
}

// New returns a service that searches by the model in the binary until Run has reached the server.
func New(cfg Config) *Service {
	return &Service{Index: cfg.Index, cfg: cfg, client: newClient(cfg.Server, cfg.Transport),
		slots: make(chan struct{}, maxQueries), failed: make(chan struct{}, 1), since: clock.Now(),
		kept: make(map[string][]float32)}
}

// Status is the state of the server as an operator sees it.
type Status struct {
	Model, URL string
	Up         bool
	// Reason is the last error, "" if the server answers or was not asked yet.
	Reason string
	Since  time.Time
	// Missing is the number of agents without vectors; all of them before the server was reached.
	Missing, Agents int
	Private         bool
}

// Status returns the state of the server.
func (s *Service) Status() Status {
	s.mu.Lock()
	st := Status{Model: s.cfg.Server.Model, URL: s.cfg.Server.URL, Up: s.up, Since: s.since, Private: s.cfg.Private}
	if s.err != nil {
		st.Reason = s.err.Error()
	}
	known := s.ready.ID != 0
	s.mu.Unlock()
	st.Agents = s.Len()
	if st.Missing = st.Agents; known {
		st.Missing, _ = s.Missing()
	}
	return st
}

// Describe returns the state as a sentence for an operator, and whether searches are by the server's model.
func (s *Service) Describe() (text string, ok bool) {
	st := s.Status()
	at := fmt.Sprintf("%s at %s", st.Model, st.URL)
	switch {
	case st.Up && st.Missing > 0:
		return fmt.Sprintf("%s; %d of %d agents wait for their vectors", at, st.Missing, st.Agents), true
	case st.Up:
		return fmt.Sprintf("%s; it has encoded all %d agents", at, st.Agents), true
	case st.Reason == "":
		return at + " was not asked yet", true
	}
	return fmt.Sprintf("%s cannot be used since %s, so the model in the binary answers: %s", at,
		st.Since.Format(time.RFC3339), st.Reason), false
}

// Run reaches the server, encodes agents as they come and change, and tries again after failures, until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	defer s.closeFile()
	pause, tidied := firstPause, time.Time{}
	for ctx.Err() == nil {
		err := s.reachServer(ctx)
		if err == nil {
			pause = firstPause
			err = s.encodeAgents(ctx, &tidied)
		}
		if ctx.Err() != nil {
			return nil
		}
		s.noteFailure(err)
		clock.Sleep(ctx, pause)
		pause = min(2*pause, lastPause)
	}
	return nil
}

// reachServer asks for the vectors of the probe and, if the model is another than before, begins to encode all agents.
func (s *Service) reachServer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, textsWait)
	defer cancel()
	vectors, err := s.client.askServer(ctx, probeTexts())
	if err != nil {
		return err
	}
	gain, shift, err := calibrateCosines(vectors, s.cfg.Builtin.Encode)
	if err != nil {
		return err
	}
	h := header{Form: cacheForm, Model: s.cfg.Server.Model, Dims: len(vectors[0]), Mark: vectors[0]}
	s.mu.Lock()
	same := s.cache != nil && s.cache.head.isSame(h)
	s.mu.Unlock()
	if !same {
		if err := s.changeModel(h, gain, shift); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.failed: // of before
	default:
	}
	if !s.up {
		s.up, s.err, s.since = true, nil, clock.Now()
		s.cfg.Log.Info("the server of embeddings answers", "model", s.cfg.Server.Model, "dimensions", h.Dims)
	}
	return nil
}

// changeModel makes the model of h the one of the index.
func (s *Service) changeModel(h header, gain, shift float32) error {
	opened, err := openCache(s.cfg.Path, s.cfg.Secret, h)
	if err != nil {
		return err
	}
	hash := fnv.New32a()
	hash.Write([]byte(h.Model))
	hash.Write(appendVector(nil, opened.head.Mark))
	m := index.Model{ID: max(hash.Sum32(), 1), Dims: h.Dims, Gain: gain, Shift: shift}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cache != nil {
		s.cache.closeFile()
	}
	s.cache, s.ready, s.kept = opened, m, make(map[string][]float32)
	s.UseModel(m)
	return nil
}

// encodeAgents encodes agents without vectors as they come, until a request fails or ctx ends.
func (s *Service) encodeAgents(ctx context.Context, tidied *time.Time) error {
	for {
		if err := s.FillModel(ctx, s.encodeTexts); err != nil {
			return err
		}
		if now := clock.Now(); now.Sub(*tidied) >= tidyEvery {
			*tidied = now
			s.removeUnused()
		}
		_, woken := s.Missing()
		again := time.NewTimer(tidyEvery)
		select {
		case <-woken:
		case <-again.C:
		case <-s.failed:
			again.Stop()
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.err
		case <-ctx.Done():
			again.Stop()
			return ctx.Err()
		}
		again.Stop()
	}
}

// removeUnused removes the vectors of texts that no agent has any more from the cache.
func (s *Service) removeUnused() {
	used := make(map[textKey]bool)
	s.EachText(func(text string) { used[s.cache.keyOf(text)] = true })
	if err := s.cache.keepUsed(used); err != nil {
		s.cfg.Log.Warn("remove unused vectors", "error", err)
	}
}

// encodeTexts returns the vectors of the texts of agents, from the cache or the server.
func (s *Service) encodeTexts(ctx context.Context, texts []string) ([][]float32, error) {
	list := make([][]float32, len(texts))
	var absent []int
	var asked []string
	for i, text := range texts {
		if list[i] = s.cache.getVector(text); list[i] == nil && text != "" {
			absent, asked = append(absent, i), append(asked, text)
		}
	}
	if len(asked) == 0 {
		return list, nil
	}
	ctx, cancel := context.WithTimeout(ctx, textsWait)
	defer cancel()
	got, err := s.client.askEach(ctx, asked)
	if err != nil {
		return nil, err
	}
	for _, v := range got {
		if v != nil && len(v) != s.cache.head.Dims {
			return nil, errDims
		}
	}
	for i, v := range got {
		list[absent[i]] = roundVector(v)
	}
	if err := s.cache.putVectors(asked, got); err != nil {
		s.cfg.Log.Warn("keep vectors for the next start", "error", err)
	}
	return list, nil
}

var errDims = errors.New("vectors have other dimensions than at first")

// noteFailure records a failure of the server.
func (s *Service) noteFailure(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.up || s.err == nil {
		s.cfg.Log.Warn("the server of embeddings cannot be used; the model in the binary answers searches",
			"model", s.cfg.Server.Model, "error", err)
		s.since = clock.Now()
	}
	s.up, s.err = false, err
}

// Search implements hub.Index.
func (s *Service) Search(q hub.Query) (hub.Page, error) { return s.SearchBy(q, s.seekVector(&q)) }

// Beside implements hub.Index. It compares words only if the search is by the server's model and the server does not
// give the vectors of the agents in time.
func (s *Service) Beside(few []hub.Agent, q hub.Query) (hub.Page, error) {
	by := s.seekVector(&q)
	if by.Model == 0 {
		return s.BesideBy(few, q, by, nil)
	}
	var texts []string
	for i := range few {
		texts = append(texts, index.TextsOf(&few[i])...)
	}
	got, ok := s.askPassing(texts, by.Model)
	if !ok {
		q.Mode = hub.ModeWords
		return s.BesideBy(few, q, index.Sought{}, nil)
	}
	vectors := make([][][]float32, len(few))
	for i := range few {
		n := len(index.TextsOf(&few[i]))
		vectors[i], got = got[:n], got[n:]
	}
	return s.BesideBy(few, q, by, vectors)
}

// seekVector returns the vector of a query's text; the zero index.Sought if the query is not searched by the server's
// model.
func (s *Service) seekVector(q *hub.Query) index.Sought {
	text := soughtText(q.Text)
	if text == "" || q.Mode == hub.ModeWords || q.Private && !s.cfg.Private {
		return index.Sought{}
	}
	s.mu.Lock()
	model := s.ready.ID
	s.mu.Unlock()
	if model == 0 {
		return index.Sought{}
	}
	if missing, _ := s.Missing(); missing > s.Len()/missingShare {
		return index.Sought{}
	}
	if got, ok := s.askPassing([]string{text}, model); ok {
		return index.Sought{Model: model, Vector: got[0]}
	}
	return index.Sought{}
}

// soughtText returns the text of a query without the words that it excludes; "" for a query with a phrase, which is
// searched by words.
func soughtText(text string) string {
	if strings.ContainsAny(text, `"“”„`) {
		return ""
	}
	words := strings.Fields(text)
	kept := words[:0]
	for _, w := range words {
		if !strings.HasPrefix(w, "-") {
			kept = append(kept, w)
		}
	}
	return strings.Join(kept, " ")
}

// askPassing returns the vectors of texts that no agent of the index has. ok is false if the server does not give them
// in time, or has another model meanwhile.
func (s *Service) askPassing(texts []string, model uint32) (list [][]float32, ok bool) {
	list = make([][]float32, len(texts))
	var absent []int
	var asked []string
	s.mu.Lock()
	up := s.up && s.ready.ID == model
	for i, text := range texts {
		if list[i] = s.kept[text]; list[i] == nil && text != "" {
			absent, asked = append(absent, i), append(asked, text)
		}
	}
	s.mu.Unlock()
	if len(asked) == 0 || !up || len(asked) > maxBeside {
		return list, len(asked) == 0
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		return nil, false
	}
	ctx, cancel := context.WithTimeout(context.Background(), queryWait)
	defer cancel()
	got, err := s.client.askServer(ctx, asked)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.ready.ID == model && len(got[0]) != s.ready.Dims {
		err = errDims
	}
	switch {
	case errors.Is(err, errRefused):
		return nil, false // of this text only
	case err != nil:
		s.markDown(err)
		return nil, false
	case s.ready.ID != model:
		return nil, false
	}
	if len(s.kept)+len(asked) > maxKept {
		clear(s.kept)
	}
	for i, v := range got {
		list[absent[i]] = v
		s.kept[asked[i]] = v
	}
	return list, true
}

// markDown marks the server as not answering until Run has reached it again. The caller must hold mu.
func (s *Service) markDown(err error) {
	if s.up {
		s.cfg.Log.Warn("the server of embeddings did not answer a search; the model in the binary answers", "error", err)
		s.up, s.err, s.since = false, err, clock.Now()
	}
	select {
	case s.failed <- struct{}{}:
	default: // Run has not seen the last one yet
	}
}

func (s *Service) closeFile() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cache != nil {
		s.cache.closeFile()
	}
}
