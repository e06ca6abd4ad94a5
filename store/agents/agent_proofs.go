package agents

import (
	"context"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/hub"
	"agentsite/store/engine"
	"agentsite/store/rows"
)

// SetProof implements hub.Proofs. A proof of another origin than the agent's address is stored but has
// no effect until the address matches.
func (d *Owners) SetProof(ctx context.Context, agentID, ownerID string, p hub.Proof) error {
	origin := originOf(p.Origin)
	if p.Method == "" || origin == "" {
		p, origin = hub.Proof{}, ""
	}
	return d.db.Write(ctx, func(t engine.Tx) error {
		d.agents.AgentsChanged(t)
		return rows.CheckChanged(t.Exec(`UPDATE agents SET proof_method = ?, proof_origin = ?, proof_at = ? WHERE id = ? AND owner_id = ? AND deleted_at = 0`, p.Method, origin, clock.Milli(p.At), agentID, ownerID))
	})
}

type domainRow struct {
	AccountID string `db:"account_id"`
	Domain    string `db:"domain"`
	ProvedAt  int64  `db:"proved_at"`
	CheckedAt int64  `db:"checked_at"`
	Failures  int    `db:"failures"`
}

const domainColumns = `account_id, domain, proved_at, checked_at, failures`

func domainsOf(rows []domainRow) []hub.Domain {
	out := make([]hub.Domain, len(rows))
	for i, r := range rows {
		out[i] = hub.Domain{AccountID: r.AccountID, Domain: r.Domain, ProvedAt: clock.FromMilli(r.ProvedAt),
			CheckedAt: clock.FromMilli(r.CheckedAt), Failures: r.Failures}
	}
	return out
}

// Domains implements hub.Proofs. It returns them by name, at most 1,000.
func (d *Owners) Domains(ctx context.Context, accountID string) ([]hub.Domain, error) {
	var rows []domainRow
	err := d.db.List(ctx, &rows, `SELECT `+domainColumns+
		` FROM account_domains WHERE account_id = ? ORDER BY domain LIMIT 1000`, accountID)
	return domainsOf(rows), engine.MapError(err)
}

// maxDomainFailures is the number of failed checks in a row after which an account loses a domain.
const maxDomainFailures = 5

// SetDomain implements hub.Proofs. A failed check of a domain that the account does not have changes
// nothing.
func (d *Owners) SetDomain(ctx context.Context, accountID, domain string, proved bool) error {
	now := clock.Milli(clock.Now())
	return d.db.Write(ctx, func(t engine.Tx) error {
		if proved {
			_, err := t.Exec(`INSERT INTO account_domains (account_id, domain, proved_at, checked_at) VALUES (?, ?, ?, ?)
				ON CONFLICT (account_id, domain) DO UPDATE SET proved_at = excluded.proved_at, checked_at = excluded.checked_at, failures = 0`, accountID, domain, now, now)
			return err
		}
		if _, err := t.Exec(`UPDATE account_domains SET checked_at = ?, failures = failures + 1 WHERE account_id = ? AND domain = ?`, now, accountID, domain); err != nil {
			return err
		}
		_, err := t.Exec(`DELETE FROM account_domains WHERE account_id = ? AND domain = ? AND failures >= ?`, accountID,
			domain, maxDomainFailures)
		return err
	})
}

// RemoveDomain implements hub.Proofs. A domain that the account does not have is a NotFound fault.
func (d *Owners) RemoveDomain(ctx context.Context, accountID, domain string) error {
	return d.db.Write(ctx, func(t engine.Tx) error {
		return rows.CheckChanged(t.Exec(`DELETE FROM account_domains WHERE account_id = ? AND domain = ?`, accountID,
			domain))
	})
}

// StaleDomains implements hub.Proofs. It returns the longest unchecked first.
func (d *Owners) StaleDomains(ctx context.Context, then time.Time, limit int) ([]hub.Domain, error) {
	var rows []domainRow
	err := d.db.List(ctx, &rows, `SELECT `+domainColumns+
		` FROM account_domains WHERE checked_at < ? ORDER BY checked_at LIMIT ?`, clock.Milli(then), limit)
	return domainsOf(rows), engine.MapError(err)
}
