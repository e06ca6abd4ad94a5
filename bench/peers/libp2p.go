package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p"
	dht "github.com/libp2p/go-libp2p-kad-dht"
	pb "github.com/libp2p/go-libp2p-kad-dht/pb"
	"github.com/libp2p/go-libp2p/core/host"
	p2pnet "github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
)

// kadDHT is go-libp2p-kad-dht over TCP, Noise and yamux on the loopback, all in
// server mode, with values in a namespace of its own whose validator checks an
// ed25519 signature.
type kadDHT struct {
	base    Memory
	joining time.Time
	nodes   []*kadNode
	rpcs    atomic.Int64
	keys    keys
}

type kadNode struct {
	host host.Host
	dht  *dht.IpfsDHT
	mute atomic.Bool
	dead atomic.Bool
}

// keys are those that sign values, one for each.
type keys struct {
	mu  sync.Mutex // guards all
	all map[int]ed25519.PrivateKey
}

func (k *keys) of(key int) ed25519.PrivateKey {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil {
		k.all = make(map[int]ed25519.PrivateKey)
	}
	if k.all[key] == nil {
		_, k.all[key], _ = ed25519.GenerateKey(rand.Reader)
	}
	return k.all[key]
}

// payloadBytes is what a value carries beside its signature.
const payloadBytes = 512

// newKadDHT returns it with the options given.
func newKadDHT(more ...dht.Option) func(context.Context, Config) (network, error) {
	return func(ctx context.Context, cfg Config) (network, error) {
		l := &kadDHT{base: memory(), joining: time.Now()}
		for range cfg.Nodes {
			h, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"), libp2p.Transport(tcp.NewTCPTransport),
				libp2p.Security(noise.ID, noise.New), libp2p.Muxer(yamux.ID, yamux.DefaultTransport), libp2p.DisableRelay())
			if err != nil {
				return nil, err
			}
			n := &kadNode{host: h}
			options := append([]dht.Option{dht.Mode(dht.ModeServer), dht.ProtocolPrefix("/bench"), dht.NamespacedValidator("v", signed{}),
				dht.OnRequestHook(func(context.Context, p2pnet.Stream, *pb.Message) { l.rpcs.Add(1) })}, more...)
			if n.dht, err = dht.New(ctx, muteHost{h, &n.mute}, options...); err != nil {
				return nil, err
			}
			if len(l.nodes) > 0 {
				first := l.nodes[0].host
				if err := h.Connect(ctx, peer.AddrInfo{ID: first.ID(), Addrs: first.Addrs()}); err != nil {
					return nil, err
				}
			}
			l.nodes = append(l.nodes, n)
		}
		for range 2 { // fills the tables, as look-ups do for the others
			for _, n := range l.nodes {
				one, cancel := context.WithTimeout(ctx, opTimeout)
				select {
				case <-n.dht.ForceRefresh():
				case <-one.Done():
				}
				cancel()
			}
		}
		return l, ctx.Err()
	}
}

// signed is a validator: a key is a public key, a value its signature, a number
// and a payload.
type signed struct{}

const signedHead = ed25519.SignatureSize + 8

func (signed) Validate(key string, value []byte) error {
	pub, err := hex.DecodeString(strings.TrimPrefix(key, "/v/"))
	if err != nil || len(pub) != ed25519.PublicKeySize || len(value) < signedHead {
		return errors.New("malformed")
	}
	if !ed25519.Verify(pub, value[ed25519.SignatureSize:], value[:ed25519.SignatureSize]) {
		return errors.New("the signature does not hold")
	}
	return nil
}

func (signed) Select(_ string, values [][]byte) (best int, err error) {
	seq := func(v []byte) uint64 { return binary.BigEndian.Uint64(v[ed25519.SignatureSize:]) }
	for i := range values {
		if seq(values[i]) > seq(values[best]) {
			best = i
		}
	}
	return best, nil
}

func (l *kadDHT) name(key int) string {
	return "/v/" + hex.EncodeToString(l.keys.of(key).Public().(ed25519.PublicKey))
}

func (l *kadDHT) Put(ctx context.Context, node, key int) error {
	private := l.keys.of(key)
	body := binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixMicro()))
	body = append(body, make([]byte, payloadBytes)...)
	return l.nodes[node].dht.PutValue(ctx, l.name(key), append(ed25519.Sign(private, body), body...))
}

func (l *kadDHT) First(ctx context.Context, node, key int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	found, err := l.nodes[node].dht.SearchValue(ctx, l.name(key))
	if err != nil {
		return err
	}
	select {
	case _, ok := <-found:
		if !ok {
			return errNotFound
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *kadDHT) Full(ctx context.Context, node, key int) error {
	_, err := l.nodes[node].dht.GetValue(ctx, l.name(key))
	return err
}

func (l *kadDHT) Base() Memory       { return l.base }
func (l *kadDHT) Joining() time.Time { return l.joining }
func (l *kadDHT) RPCs() int64        { return l.rpcs.Load() }
func (l *kadDHT) Value() int         { return signedHead + payloadBytes }
func (l *kadDHT) CloseIdle() bool    { return false }

func (l *kadDHT) Table() float64 {
	n := 0
	for _, d := range l.nodes {
		n += d.dht.RoutingTable().Size()
	}
	return float64(n) / float64(len(l.nodes))
}

func (l *kadDHT) Ends() int {
	n := 0
	for _, d := range l.nodes {
		n += len(d.host.Network().Conns())
	}
	return n
}

func (l *kadDHT) Kill(node int) {
	n := l.nodes[node]
	if n.dead.Swap(true) {
		return
	}
	n.host.Close() // first: its connections break
	n.dht.Close()
}

func (l *kadDHT) Mute(node int) { l.nodes[node].mute.Store(true) }

func (l *kadDHT) Close() {
	var wg sync.WaitGroup
	for i := range l.nodes {
		wg.Go(func() { l.Kill(i) })
	}
	wg.Wait()
}

// muteHost is a host whose streams take what comes and answer nothing, once it is
// mute. Its connections go on, which is milder than what ours gets.
type muteHost struct {
	host.Host
	mute *atomic.Bool
}

func (h muteHost) SetStreamHandler(id protocol.ID, do p2pnet.StreamHandler) {
	h.Host.SetStreamHandler(id, func(s p2pnet.Stream) { do(muteStream{s, h.mute}) })
}

func (h muteHost) SetStreamHandlerMatch(id protocol.ID, match func(protocol.ID) bool, do p2pnet.StreamHandler) {
	h.Host.SetStreamHandlerMatch(id, match, func(s p2pnet.Stream) { do(muteStream{s, h.mute}) })
}

type muteStream struct {
	p2pnet.Stream
	mute *atomic.Bool
}

func (s muteStream) Write(b []byte) (int, error) {
	if s.mute.Load() {
		return len(b), nil
	}
	return s.Stream.Write(b)
}
