package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha1"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/anacrolix/dht/v2"
	"github.com/anacrolix/dht/v2/bep44"
	"github.com/anacrolix/dht/v2/exts/getput"
	"github.com/anacrolix/dht/v2/int160"
	"github.com/anacrolix/dht/v2/krpc"
	"github.com/anacrolix/dht/v2/traversal"
	alog "github.com/anacrolix/log"
	"github.com/anacrolix/torrent/bencode"
	"golang.org/x/time/rate"
)

// mainline is anacrolix/dht, the DHT of BitTorrent, over UDP on the loopback:
// without its limit on what is sent and without ids bound to addresses, of which
// there is one here. Values are mutable items of BEP 44.
type mainline struct {
	base    Memory
	joining time.Time
	nodes   []*mainNode
	keys    keys
}

type mainNode struct {
	*dht.Server
	mute, dead atomic.Bool
}

func newMainline(ctx context.Context, cfg Config) (network, error) {
	m := &mainline{base: memory(), joining: time.Now()}
	var first dht.Addr
	for i := range cfg.Nodes {
		conn, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		n := new(mainNode)
		c := dht.NewDefaultServerConfig()
		c.Conn, c.NoSecurity, c.SendLimiter = mutePacket{conn, &n.mute}, true, rate.NewLimiter(rate.Inf, 1)
		c.Logger = alog.Default.FilterLevel(alog.Critical)
		c.StartingNodes = func() ([]dht.Addr, error) { return nil, nil }
		if i > 0 {
			c.StartingNodes = func() ([]dht.Addr, error) { return []dht.Addr{first}, nil }
		} else {
			first = dht.NewAddr(conn.LocalAddr())
		}
		rand.Read(c.NodeId[:])
		if n.Server, err = dht.NewServer(c); err != nil {
			return nil, err
		}
		m.nodes = append(m.nodes, n)
	}
	for _, n := range m.nodes[1:] {
		if _, err := n.BootstrapContext(ctx); err != nil {
			return nil, err
		}
	}
	rounds(cfg.Nodes, func(i int, target [32]byte) {
		m.find(ctx, i, krpc.ID(target[:20]))
	}, func(i int) {
		m.find(ctx, i, m.nodes[i].ID())
	})
	return m, ctx.Err()
}

// find looks for the nodes nearest to a target.
func (m *mainline) find(ctx context.Context, node int, target krpc.ID) {
	s := m.nodes[node].Server
	op := traversal.Start(traversal.OperationInput{Alpha: 15, Target: target, NodeFilter: s.TraversalNodeFilter,
		DoQuery: func(_ context.Context, addr krpc.NodeAddr) traversal.QueryResult {
			return s.FindNode(dht.NewAddr(addr.UDP()), int160.FromByteArray(target), dht.QueryRateLimiting{}).TraversalQueryResult(addr)
		}})
	defer op.Stop()
	nodes, err := s.TraversalStartingNodes()
	if err != nil {
		return
	}
	op.AddNodes(nodes)
	select {
	case <-op.Stalled():
	case <-ctx.Done():
	}
}

func (m *mainline) target(key int) (bep44.Target, [32]byte) {
	pub := [32]byte(m.keys.of(key).Public().(ed25519.PublicKey))
	return bep44.MakeMutableTarget(pub, nil), pub
}

func (m *mainline) Put(ctx context.Context, node, key int) error {
	target, pub := m.target(key)
	_, err := getput.Put(ctx, target, m.nodes[node].Server, nil, func(seq int64) bep44.Put {
		p := bep44.Put{V: strings.Repeat("x", payloadBytes), K: &pub, Seq: seq + 1}
		p.Sign(m.keys.of(key))
		return p
	})
	return err
}

// First is getput.Get, but for ending with the first item whose signature holds.
func (m *mainline) First(ctx context.Context, node, key int) error {
	s := m.nodes[node].Server
	target, _ := m.target(key)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	found := make(chan struct{}, 1)
	op := traversal.Start(traversal.OperationInput{Alpha: 15, Target: target, NodeFilter: s.TraversalNodeFilter,
		DoQuery: func(_ context.Context, addr krpc.NodeAddr) traversal.QueryResult {
			res := s.Get(ctx, dht.NewAddr(addr.UDP()), target, nil, dht.QueryRateLimiting{})
			if r := res.Reply.R; r != nil && r.Seq != nil && sha1.Sum(r.K[:]) == target && bep44.Verify(r.K[:], nil, *r.Seq, bencode.Bytes(r.V), r.Sig[:]) {
				select {
				case found <- struct{}{}:
				default:
				}
			}
			return res.TraversalQueryResult(addr)
		}})
	defer op.Stop()
	nodes, err := s.TraversalStartingNodes()
	if err != nil {
		return err
	}
	op.AddNodes(nodes)
	select {
	case <-found:
		return nil
	case <-op.Stalled():
		select {
		case <-found:
			return nil
		default:
			return errNotFound
		}
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *mainline) Full(ctx context.Context, node, key int) error {
	target, _ := m.target(key)
	_, _, err := getput.Get(ctx, target, m.nodes[node].Server, nil, nil)
	return err
}

func (m *mainline) Base() Memory       { return m.base }
func (m *mainline) Joining() time.Time { return m.joining }
func (m *mainline) Value() int {
	return payloadBytes + ed25519.PublicKeySize + ed25519.SignatureSize + 8
}
func (m *mainline) CloseIdle() bool { return false }
func (m *mainline) Ends() int       { return 0 }

func (m *mainline) RPCs() (n int64) {
	for _, s := range m.nodes {
		n += s.Stats().OutboundQueriesAttempted
	}
	return n
}

func (m *mainline) Table() float64 {
	n := 0
	for _, s := range m.nodes {
		n += s.NumNodes()
	}
	return float64(n) / float64(len(m.nodes))
}

func (m *mainline) Kill(node int) {
	if n := m.nodes[node]; !n.dead.Swap(true) {
		n.Server.Close()
	}
}

func (m *mainline) Mute(node int) { m.nodes[node].mute.Store(true) }

func (m *mainline) Close() {
	for i := range m.nodes {
		m.Kill(i)
	}
}

// mutePacket sends nothing once it is mute.
type mutePacket struct {
	net.PacketConn
	mute *atomic.Bool
}

func (p mutePacket) WriteTo(b []byte, to net.Addr) (int, error) {
	if p.mute.Load() {
		return len(b), nil
	}
	return p.PacketConn.WriteTo(b, to)
}
