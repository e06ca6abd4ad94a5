package main

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"agentsite/bench/corpus"
	"agentsite/internal/record"
	"agentsite/peering/translate"
)

const (
	network = "bench"
	// doneName stands in a folder whose logs are complete.
	doneName = "done"
	day      = int64(24 * time.Hour / time.Millisecond)
)

// portal signs as a portal would.
type portal struct {
	id       record.PortalID
	origin   string
	root, op ed25519.PrivateKey
	now, seq int64
}

func newPortal(i int, now time.Time) *portal {
	key := func(what string) ed25519.PrivateKey {
		seed := sha256.Sum256(fmt.Appendf(nil, "bench %s %d", what, i))
		return ed25519.NewKeyFromSeed(seed[:])
	}
	p := &portal{origin: fmt.Sprintf("https://portal-%d.example", i), root: key("root"), op: key("op"), now: now.UnixMilli()}
	p.id = record.PortalOf(record.PublicOf(p.root))
	return p
}

func (p *portal) header(life int64) record.Header {
	p.seq++
	return record.Header{Portal: p.id, Epoch: p.now - 1, Seq: p.seq, Issued: p.now, Expires: p.now + life}
}

// write writes the portal's card, its head and its log to a file, each record
// a line.
func (p *portal) write(path string, first, count int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	line := func(r *record.Record, err error) error {
		if err != nil {
			return err
		}
		_, err = w.Write(append(r.Wire, '\n'))
		return err
	}
	pub := record.PublicOf(p.op)
	card := &record.Card{Header: p.header(90 * day), RootPub: record.PublicOf(p.root), Origin: p.origin, Name: p.origin, Tier: record.TierReplica,
		Keys: []record.Key{{ID: record.KeyIDOf(pub), Pub: pub, From: p.now - day, Until: p.now + 80*day}}}
	if err := line(record.Sign(network, card, p.root)); err != nil {
		return err
	}
	var tree record.Tree
	rest := make([]*record.Record, count)
	for i := range rest {
		a := corpus.Agent(first + i)
		a.ID = translate.LocalID(a.ID)
		body, _ := translate.Record(a, p.origin, time.UnixMilli(p.now))
		body.Header = p.header(30 * day)
		r, err := record.Sign(network, body, p.op)
		if err != nil {
			return err
		}
		tree.Apply(r)
		rest[i] = r
	}
	head := &record.Head{Header: p.header(2 * day), Count: int64(tree.Len()), Root: tree.Root(), LogStart: 1}
	if err := line(record.Sign(network, head, p.op)); err != nil {
		return err
	}
	for _, r := range rest {
		if err := line(r, nil); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

func makeLogs(ctx context.Context, p plan) error {
	if err := os.MkdirAll(p.logs, 0o700); err != nil {
		return err
	}
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	each := (p.records + p.portals - 1) / p.portals
	for i := range p.portals {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			return newPortal(i, began).write(filepath.Join(p.logs, fmt.Sprintf("%06d.ndjson", i)), i*each, min(each, p.records-i*each))
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	fmt.Printf("made %d records of %d portals in %.0f s\n", p.records, p.portals, time.Since(began).Seconds())
	return os.WriteFile(filepath.Join(p.logs, doneName), nil, 0o600)
}
