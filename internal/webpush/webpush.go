// Package webpush sends the notices of accounts to browsers by Web Push (RFC 8030), encrypted for the browser (RFC
// 8291) and signed with a key of the portal (RFC 8292). A subscription belongs to one session and ends with it. The
// store queues each notice in the transaction that stores it, so that a crash loses none. The package knows neither
// SQL nor pages.
package webpush

import (
	"context"
	"crypto/ecdh"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
)

// Bounds of a subscription, in bytes.
const (
	maxEndpoint = 1500
	maxKey      = 120 // of a key in base64; real ones have 87 and 22
)

// Draft is a subscription as a browser gives it.
type Draft struct {
	Endpoint string // address at the push service
	P256dh   string // public key of the browser in base64url
	Auth     string // secret of the browser in base64url
	Texts    bool   // send the texts of notices too
}

// Browser is a stored subscription. A session has at most one, so that those of an account are bounded as its
// sessions are.
type Browser struct {
	SessionID, AccountID string
	Host                 string // of the push service
	Sealed               []byte // sealed Draft
	Texts                bool
	Failures             int // failed attempts in a row
	CreatedAt            time.Time
}

// Waiting is a notice that waits to be sent to a browser.
type Waiting struct {
	Browser Browser
	Notice  hub.Notice
}

// Outcome is the result of an attempt to send a notice.
type Outcome struct {
	SessionID, NoticeID string
	// Of is the time at which the subscription was made. The outcome does not apply to a newer one of the session.
	Of time.Time
	// Done deletes the notice from the queue, Gone the subscription.
	Done, Gone bool
	Failures   int
	NextAt     time.Time
}

// Store holds subscriptions and their queue.
type Store interface {
	// PutBrowser stores the subscription of a session, in place of an earlier one. It returns a Forbidden fault if
	// there is no such session of the account.
	PutBrowser(ctx context.Context, b Browser) error
	// Browsers returns the subscriptions of an account, the newest first.
	Browsers(ctx context.Context, accountID string) ([]Browser, error)
	// DropBrowsers deletes those of an account: of one session, or all if sessionID is empty.
	DropBrowsers(ctx context.Context, accountID, sessionID string) error
	// DuePushes returns the oldest waiting notice of each of up to limit browsers that may be tried now. later is the
	// time at which another one may be tried, zero without one.
	DuePushes(ctx context.Context, now time.Time, limit int) (list []Waiting, later time.Time, err error)
	// SettlePush stores an outcome.
	SettlePush(ctx context.Context, o Outcome) error
}

// Keys are the portal's keys. The key of Web Push is made of Mark, so that a backup of the keys has it.
type Keys interface {
	Mark(purpose, subject string) string
	Seal(plain, bound string) []byte
	Open(sealed []byte, bound string) (string, error)
}

// Config holds the parts of the portal that the service uses. All but Log must be set.
type Config struct {
	Store Store
	Keys  Keys
	// Addresses decides to which addresses may be sent. It does not resolve host names.
	Addresses hub.AddressPolicy
	// Transport sends the requests. It must return an error for redirects and for addresses that this portal may not
	// connect to.
	Transport http.RoundTripper
	// Wake receives a value when notices wait. A lost value only delays them.
	Wake <-chan struct{}
	// Name returns the portal's name, which an operator may change.
	Name func() string
	URL  string // address of the portal
	Log  *slog.Logger
}

// Service manages subscriptions and sends notices. Create it with New and call Run. It is safe for concurrent use.
type Service struct {
	cfg                 Config
	private, public     string // the portal's key in base64url
	changesOfOneAccount *limit.Keyed
}

// New returns a service. Nothing is sent until Run is called.
func New(cfg Config) (*Service, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	key, err := deriveKey(cfg.Keys)
	if err != nil {
		return nil, err
	}
	return &Service{cfg: cfg, private: encodeKey(key.Bytes()), public: encodeKey(key.PublicKey().Bytes()),
		changesOfOneAccount: limit.New(6*time.Second, 20, 10_000)}, nil
}

// deriveKey makes the key that browsers know the portal by.
func deriveKey(keys Keys) (*ecdh.PrivateKey, error) {
	for i := range 10 { // nearly every number is a key
		n := strconv.Itoa(i)
		seed := sha256.Sum256([]byte(keys.Mark("agentsite/webpush/1", "a"+n) + keys.Mark("agentsite/webpush/1", "b"+n)))
		if key, err := ecdh.P256().NewPrivateKey(seed[:]); err == nil {
			return key, nil
		}
	}
	return nil, fmt.Errorf("no key for Web Push can be made of the portal's keys")
}

func encodeKey(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// PublicKey returns the portal's public key in base64url, which a browser subscribes with.
func (s *Service) PublicKey() string { return s.public }

// Subscribe stores the subscription of the actor's browser.
func (s *Service) Subscribe(ctx context.Context, actor ident.Actor, d Draft) error {
	if err := requireSession(actor); err != nil {
		return err
	}
	if wait, ok := s.changesOfOneAccount.Allow(actor.ID); !ok {
		return fault.Limited(wait, "You switched this very often. Wait a moment.")
	}
	host, err := s.checkDraft(d)
	if err != nil {
		return err
	}
	plain, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("encode a subscription: %w", err)
	}
	return s.cfg.Store.PutBrowser(ctx, Browser{SessionID: actor.Credential, AccountID: actor.ID, Host: host,
		Sealed: s.cfg.Keys.Seal(string(plain), sealContext(actor.Credential)), Texts: d.Texts, CreatedAt: clock.Now()})
}

// checkDraft returns the host of the push service.
func (s *Service) checkDraft(d Draft) (string, error) {
	u, err := url.Parse(d.Endpoint)
	var c fault.Check
	c.Field(err == nil && len(d.Endpoint) <= maxEndpoint && u.Host != "" && u.User == nil, "endpoint",
		"is not the address of a push service")
	if err == nil {
		refused := s.cfg.Addresses.CheckURL(d.Endpoint)
		c.Field(refused == nil, "endpoint", "%v", refused)
	}
	key, err := readKey(d.P256dh)
	if err == nil {
		_, err = ecdh.P256().NewPublicKey(key)
	}
	c.Field(err == nil, "p256dh", "is not a key")
	auth, err := readKey(d.Auth)
	c.Field(err == nil && len(auth) == 16, "auth", "is not a secret of 16 bytes")
	if err := c.Err(); err != nil {
		return "", err
	}
	return u.Host, nil
}

func readKey(s string) ([]byte, error) {
	if len(s) > maxKey {
		return nil, base64.CorruptInputError(maxKey)
	}
	return base64.RawURLEncoding.DecodeString(s)
}

func sealContext(sessionID string) string { return "webpush/" + sessionID }

func requireSession(actor ident.Actor) error {
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Log in first.")
	}
	if actor.Narrowed || actor.Credential == "" {
		return fault.New(fault.Forbidden, "Only a browser that is signed in can get notices.")
	}
	return nil
}

// State is the choice of an account, as a page shows it.
type State struct {
	Here, Texts bool // this browser gets notices, and their texts
	Browsers    int  // all browsers of the account that do
}

// Get returns the state for the actor's browser.
func (s *Service) Get(ctx context.Context, actor ident.Actor) (State, error) {
	if !actor.IsPerson() {
		return State{}, fault.New(fault.Unauthenticated, "Log in first.")
	}
	list, err := s.cfg.Store.Browsers(ctx, actor.ID)
	out := State{Browsers: len(list)}
	for _, b := range list {
		if b.SessionID == actor.Credential {
			out.Here, out.Texts = true, b.Texts
		}
	}
	return out, err
}

// Unsubscribe ends the subscription of the actor's browser, or those of all browsers of the account.
func (s *Service) Unsubscribe(ctx context.Context, actor ident.Actor, all bool) error {
	if err := requireSession(actor); err != nil {
		return err
	}
	session := actor.Credential
	if all {
		session = ""
	}
	return s.cfg.Store.DropBrowsers(ctx, actor.ID, session)
}
