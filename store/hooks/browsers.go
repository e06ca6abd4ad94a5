package hooks

import (
	"context"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/webpush"
	"agentsite/store/engine"
)

// Browsers stores the browsers that get notices by their push service, and the notices that wait for them. It
// implements webpush.Store.
type Browsers struct {
	db      engine.DB
	waiting *engine.Signal // raised when a notice waits
}

var _ webpush.Store = (*Browsers)(nil)

// NewBrowsers returns the store of the browsers to which the notices of h are queued.
func NewBrowsers(h *Hooks) *Browsers { return &Browsers{db: h.db, waiting: h.pushed} }

// Pushed signals that notices may wait. It is for one reader.
func (d *Browsers) Pushed() <-chan struct{} { return d.waiting.Wake() }

// queuePushes queues a notice for the browsers of its account.
func (d *Hooks) queuePushes(t engine.Tx, noticeID, accountID string) error {
	var n int
	if err := t.Get(&n, `SELECT COUNT(*) FROM push_browsers WHERE account_id = ?`, accountID); err != nil || n == 0 {
		return err
	}
	if _, err := t.Exec(`INSERT INTO push_notices (notice_id, session_id)
		SELECT ?1, session_id FROM push_browsers WHERE account_id = ?2`, noticeID, accountID); err != nil {
		return err
	}
	d.pushed.Raise(t)
	return nil
}

// PutBrowser implements webpush.Store.
func (d *Browsers) PutBrowser(ctx context.Context, b webpush.Browser) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		var own bool
		if err := t.Get(&own, `SELECT EXISTS (SELECT 1 FROM credentials
			WHERE id = ? AND account_id = ? AND kind = 'session')`,
			b.SessionID, b.AccountID); err != nil {
			return err
		}
		if !own {
			return fault.New(fault.Forbidden, "Only a browser that is signed in can get notices.")
		}
		if _, err := t.Exec(`DELETE FROM push_browsers WHERE session_id = ?`, b.SessionID); err != nil {
			return err
		}
		_, err := t.Exec(`INSERT INTO push_browsers (session_id, account_id, host, secret, texts, failures,
			next_at, created_at)
			VALUES (?, ?, ?, ?, ?, 0, 0, ?)`, b.SessionID, b.AccountID, b.Host, b.Sealed, boolInt(b.Texts),
			clock.Milli(b.CreatedAt))
		return err
	})
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

type browserRow struct {
	SessionID string `db:"session_id"`
	AccountID string `db:"account_id"`
	Host      string `db:"host"`
	Secret    []byte `db:"secret"`
	Texts     int    `db:"texts"`
	Failures  int    `db:"failures"`
	CreatedAt int64  `db:"created_at"`
}

func (r browserRow) browser() webpush.Browser {
	return webpush.Browser{SessionID: r.SessionID, AccountID: r.AccountID, Host: r.Host, Sealed: r.Secret,
		Texts: r.Texts != 0, Failures: r.Failures, CreatedAt: clock.FromMilli(r.CreatedAt)}
}

// Browsers implements webpush.Store.
func (d *Browsers) Browsers(ctx context.Context, accountID string) ([]webpush.Browser, error) {
	var rows []browserRow
	if err := d.db.List(ctx, &rows, `SELECT session_id, account_id, host, secret, texts, failures, created_at
		FROM push_browsers WHERE account_id = ? ORDER BY created_at DESC, session_id`, accountID); err != nil {
		return nil, engine.MapError(err)
	}
	out := make([]webpush.Browser, len(rows))
	for i, r := range rows {
		out[i] = r.browser()
	}
	return out, nil
}

// DropBrowsers implements webpush.Store.
func (d *Browsers) DropBrowsers(ctx context.Context, accountID, sessionID string) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		_, err := t.Exec(`DELETE FROM push_browsers WHERE account_id = ?1 AND (?2 = '' OR session_id = ?2)`,
			accountID, sessionID)
		return err
	})
}

// DuePushes implements webpush.Store. Sessions that have expired and accounts that are disabled get nothing.
func (d *Browsers) DuePushes(ctx context.Context, now time.Time, limit int) ([]webpush.Waiting, time.Time, error) {
	var rows []struct {
		browserRow
		ID       string `db:"id"`
		Kind     string `db:"kind"`
		Subject  string `db:"subject"`
		Text     string `db:"text"`
		Href     string `db:"href"`
		NoticeAt int64  `db:"notice_at"`
	}
	const waiting = ` FROM push_browsers b JOIN credentials c ON c.id = b.session_id AND c.expires_at > ?1
		JOIN accounts a ON a.id = b.account_id AND a.disabled_at = 0 `
	if err := d.db.List(ctx, &rows, `SELECT b.session_id, b.account_id, b.host, b.secret, b.texts, b.failures,
		b.created_at,
		n.id, n.kind, n.subject, n.text, n.href, n.created_at AS notice_at`+waiting+`
		JOIN notices n ON n.id = (SELECT MIN(q.notice_id) FROM push_notices q WHERE q.session_id = b.session_id)
		WHERE b.next_at <= ?1 ORDER BY n.id, b.session_id LIMIT ?2`, clock.Milli(now), limit); err != nil {
		return nil, time.Time{}, engine.MapError(err)
	}
	out := make([]webpush.Waiting, len(rows))
	for i, r := range rows {
		out[i] = webpush.Waiting{Browser: r.browser(), Notice: hub.Notice{ID: r.ID, AccountID: r.AccountID, Kind: r.Kind,
			Subject: r.Subject, Text: r.Text, Href: r.Href, CreatedAt: clock.FromMilli(r.NoticeAt)}}
	}
	var next int64
	err := d.db.Get(ctx, &next, `SELECT COALESCE(MIN(b.next_at), 0)`+waiting+`WHERE b.next_at > ?1
		AND EXISTS (SELECT 1 FROM push_notices q WHERE q.session_id = b.session_id)`, clock.Milli(now))
	return out, clock.FromMilli(next), engine.MapError(err)
}

// SettlePush implements webpush.Store.
func (d *Browsers) SettlePush(ctx context.Context, o webpush.Outcome) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		var same bool
		if err := t.Get(&same, `SELECT EXISTS (SELECT 1 FROM push_browsers WHERE session_id = ? AND created_at = ?)`,
			o.SessionID, clock.Milli(o.Of)); err != nil || !same {
			return err
		}
		if o.Gone {
			_, err := t.Exec(`DELETE FROM push_browsers WHERE session_id = ?`, o.SessionID)
			return err
		}
		if o.Done {
			if _, err := t.Exec(`DELETE FROM push_notices WHERE notice_id = ? AND session_id = ?`, o.NoticeID,
				o.SessionID); err != nil {
				return err
			}
		}
		_, err := t.Exec(`UPDATE push_browsers SET failures = ?, next_at = ? WHERE session_id = ?`, o.Failures,
			clock.Milli(o.NextAt), o.SessionID)
		return err
	})
}
