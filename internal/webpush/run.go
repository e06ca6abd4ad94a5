package webpush

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	push "github.com/SherClockHolmes/webpush-go"

	"agentsite/internal/clock"
	"agentsite/internal/egress"
	"agentsite/internal/hub"
)

const (
	atOnce      = 16               // browsers that are sent to at the same time
	sendTimeout = 10 * time.Second // of one request
	maxAnswer   = 4 << 10          // bytes of an answer that are read; only its status counts
	noticeLife  = 24 * time.Hour   // older notices are no news
	maxFailures = 40               // in a row, about a day and a half; then the subscription ends
	shortPause  = time.Minute      // after the first failure; it doubles
	longPause   = time.Hour
	maxText     = 300 // runes of a text, so that it fits into a record of 4,096 bytes
)

// Run sends waiting notices until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	for {
		list, later, err := s.cfg.Store.DuePushes(ctx, clock.Now(), atOnce)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			s.cfg.Log.Error("read the notices for browsers", "error", err)
			later = clock.Now().Add(shortPause)
		}
		if len(list) > 0 {
			s.sendAll(ctx, list)
			continue
		}
		pause := longPause
		if !later.IsZero() {
			pause = max(time.Until(later), time.Second)
		}
		timer := time.NewTimer(pause)
		select {
		case <-s.cfg.Wake:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return nil
		}
	}
}

func (s *Service) sendAll(ctx context.Context, list []Waiting) {
	var sending sync.WaitGroup
	for _, w := range list {
		sending.Go(func() {
			o := s.send(ctx, w)
			if ctx.Err() != nil {
				return // the notice stays for the next start
			}
			if err := s.cfg.Store.SettlePush(ctx, o); err != nil && ctx.Err() == nil {
				s.cfg.Log.Error("store the outcome of a push", "session", o.SessionID, "error", err)
			}
		})
	}
	sending.Wait()
}

// send sends one notice.
func (s *Service) send(ctx context.Context, w Waiting) Outcome {
	o := Outcome{SessionID: w.Browser.SessionID, NoticeID: w.Notice.ID, Of: w.Browser.CreatedAt, Done: true}
	now := clock.Now()
	if now.Sub(w.Notice.CreatedAt) > noticeLife {
		return o
	}
	plain, err := s.cfg.Keys.Open(w.Browser.Sealed, sealContext(w.Browser.SessionID))
	var to Draft
	if err == nil {
		err = json.Unmarshal([]byte(plain), &to)
	}
	if err == nil {
		err = s.cfg.Addresses.CheckURL(to.Endpoint) // the operator's choice may have changed
	}
	if err != nil {
		s.cfg.Log.Warn("a browser can get no notices any more", "session", o.SessionID, "error", err)
		o.Gone = true
		return o
	}
	status, reason := s.post(ctx, to, w.Notice)
	switch {
	case status >= 200 && status < 300:
		return o
	case status == http.StatusNotFound || status == http.StatusGone:
		o.Gone = true
		return o
	}
	o.Failures = w.Browser.Failures + 1
	o.NextAt = now.Add(min(shortPause<<min(w.Browser.Failures, 10), longPause))
	o.Gone = o.Failures >= maxFailures
	// A request that the service refuses as such would be refused again.
	o.Done = status >= 400 && status < 500 && status != http.StatusTooManyRequests
	s.cfg.Log.Debug("push a notice", "session", o.SessionID, "status", status, "reason", reason)
	return o
}

// post makes the request and returns its status, 0 and the reason without an answer.
func (s *Service) post(ctx context.Context, to Draft, n hub.Notice) (int, string) {
	body, err := json.Marshal(s.messageFor(n, to.Texts))
	if err != nil {
		return 0, err.Error()
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	subscriber := s.cfg.URL // the contact that push services ask for: the portal's address
	if u, err := url.Parse(s.cfg.URL); err != nil || u.Scheme != "https" {
		subscriber = "operator@localhost"
	}
	resp, err := push.SendNotificationWithContext(ctx, body, &push.Subscription{Endpoint: to.Endpoint,
		Keys: push.Keys{P256dh: to.P256dh, Auth: to.Auth}}, &push.Options{HTTPClient: doer{s.cfg.Transport},
		Subscriber: subscriber, TTL: int(noticeLife / time.Second), Urgency: push.UrgencyNormal,
		VAPIDPublicKey: s.public, VAPIDPrivateKey: s.private})
	if err != nil {
		return 0, egress.Reason(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer))
	return resp.StatusCode, ""
}

// doer lets the library send by a transport, which follows no redirects.
type doer struct{ http.RoundTripper }

func (d doer) Do(r *http.Request) (*http.Response, error) { return d.RoundTrip(r) }

// Message is the JSON that the page's worker shows.
type Message struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Body  string `json:"body"`
	Href  string `json:"href"` // path of a page of the portal
}

// messageFor returns the message of a notice. Without texts it names no person, agent or conversation.
func (s *Service) messageFor(n hub.Notice, texts bool) Message {
	m := Message{ID: n.ID, Title: s.cfg.Name(), Href: "/notices"}
	switch {
	case texts:
		m.Body, m.Href = n.Text, n.Href
		if r := []rune(m.Body); len(r) > maxText {
			m.Body = strings.TrimSpace(string(r[:maxText-1])) + "…"
		}
	case n.Kind == hub.NoticeMention:
		m.Body = "Someone mentioned you."
	case n.Kind == hub.NoticeInvited || n.Kind == hub.NoticeAdded:
		m.Body = "Someone wants you in a conversation."
	default:
		m.Body = "There is a new notice."
	}
	return m
}
