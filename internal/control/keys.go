package control

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/ident"
	"agentsite/internal/record"
	"agentsite/internal/settings"
	"agentsite/store"
	"agentsite/store/replica"
)

// KeyControl is the set of operations of the command line on a portal's keys. Without a network all of
// them return a Conflict fault.
type KeyControl interface {
	Keys(ctx context.Context) (federation.SelfStanding, error)
	// RotateKeys makes a new operational key, which becomes part of the portal's card, and returns its
	// id.
	RotateKeys(ctx context.Context) (string, error)
	// RevokeKey deletes an operational key. Other portals then accept nothing that was signed with it.
	RevokeKey(ctx context.Context, id string) error
	// DetachRoot moves the root key from its place to a new file at path.
	DetachRoot(ctx context.Context, path string) error
	// DraftCard returns the unsigned card as JSON, for signing with a detached root key. TakeCard checks
	// and publishes the signed card.
	DraftCard(ctx context.Context) (json.RawMessage, error)
	TakeCard(ctx context.Context, wire []byte) error
}

// SignCard signs the card of the portal behind c with the root key in the file at path. The key stays in
// this process; only the signature reaches the portal.
func SignCard(ctx context.Context, c Control, path string) error {
	root, err := ident.ReadRoot(path)
	if err != nil {
		return err
	}
	state, err := c.Keys(ctx)
	if err != nil {
		return err
	}
	draft, err := c.DraftCard(ctx)
	if err != nil {
		return err
	}
	var card record.Card
	if err := json.Unmarshal(draft, &card); err != nil {
		return err
	}
	if card.RootPub != record.PublicOf(root) {
		return errors.New(path + " holds the root key of another portal")
	}
	r, err := record.Sign(state.Network, &card, root)
	if err != nil {
		return err
	}
	return c.TakeCard(ctx, r.Wire)
}

// Keyring implements KeyControl for a portal with its keys in this process. On a nil Keyring, which
// stands for a portal without a network, all methods return errNoNetwork.
type Keyring struct {
	files   ident.KeyFiles
	self    *federation.Self
	keys    *ident.Operational
	replica *replica.Replica // set only for a stopped portal, and closed by closeReplica
}

// NewKeyring returns the Keyring of the running portal with those settings.
func NewKeyring(cfg settings.Config, self *federation.Self, keys *ident.Operational) *Keyring {
	return &Keyring{files: keyFiles(cfg), self: self, keys: keys}
}

var errNoNetwork = fault.New(fault.Conflict, "This portal is in no network, so it needs no keys for one.")

// openKeyring returns the Keyring of a portal that does not run, nil if it has no network. The caller
// must call closeReplica.
func openKeyring(ctx context.Context, set settings.Settings, origin string, keys *ident.Keys, db *store.DB) (*Keyring,
	error) {
	var none *Keyring // a nil Keyring answers errNoNetwork
	if set.NetworkName == "" || !record.ValidOrigin(origin) {
		return none, nil
	}
	id := record.PortalOf(record.Public(keys.Public()))
	op, err := ident.OpenOperational(set.Data, keys.Public(), clock.Now())
	if err != nil {
		return nil, err
	}
	replica, err := replica.Open(ctx, replica.Config{Dir: set.Data, Database: set.Database, Own: id,
		Network: set.NetworkName, Log: set.NewLogger(discard{})})
	if err != nil {
		return nil, err
	}
	gate, err := record.NewGate(set.NetworkName, replica)
	if err != nil {
		return nil, errors.Join(err, replica.Close())
	}
	name := set.Name
	if card := lastCard(ctx, db, set.NetworkName); name == "" && card != nil {
		name = card.Name // with another name than before, the card would be renewed
	}
	if name == "" {
		name = federation.HostOf(origin)
	}
	self, err := federation.NewSelf(ctx, federation.SelfConfig{Network: set.NetworkName, Origin: origin, Name: name,
		Root: keys.Portal, Public: keys.Public(),
		Keys: op, Cards: db.Peers, Gate: gate, Replica: replica, Log: set.NewLogger(discard{}), Policy: func() string {
			if pol, ok, err := db.Peers.PeerPolicy(ctx); err == nil && ok {
				return pol.Mode
			}
			return federation.DefaultPolicy().Mode
		}})
	if err != nil {
		return nil, errors.Join(err, replica.Close())
	}
	return &Keyring{keyFiles(set.Config), self, op, replica}, nil
}

// closeReplica closes the replica of a stopped portal. It accepts a nil Keyring.
func (k *Keyring) closeReplica() error {
	if k == nil {
		return nil
	}
	return k.replica.Close()
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

func (k *Keyring) Keys(context.Context) (federation.SelfStanding, error) {
	if k == nil {
		return federation.SelfStanding{}, errNoNetwork
	}
	return k.self.Standing(), nil
}

func (k *Keyring) RotateKeys(ctx context.Context) (string, error) {
	if k == nil {
		return "", errNoNetwork
	}
	key, err := k.keys.Rotate(clock.Now())
	if errors.Is(err, ident.ErrTooManyKeys) {
		return "", fault.New(fault.Conflict, "There are 4 operational keys already. Revoke one, or wait until the oldest has ended.")
	}
	if err != nil {
		return "", err
	}
	return string(record.KeyIDOf(record.PublicOf(key.Key))), k.self.Renew(ctx)
}

// RevokeKey implements KeyControl. An unknown id is a NotFound fault.
func (k *Keyring) RevokeKey(ctx context.Context, id string) error {
	if k == nil {
		return errNoNetwork
	}
	list := k.keys.List()
	i := slices.IndexFunc(list, func(o ident.OperationalKey) bool { return string(record.KeyIDOf(record.PublicOf(o.Key))) == id })
	if i < 0 {
		return fault.New(fault.NotFound, "There is no operational key %.40q; `agentsite keys list` names them.", id)
	}
	if err := k.keys.Revoke(clock.Now(), list[i].Public()); err != nil {
		return err
	}
	return k.self.Renew(ctx)
}

func (k *Keyring) DetachRoot(ctx context.Context, path string) error {
	if k == nil {
		return errNoNetwork
	}
	if err := k.self.Renew(ctx); err != nil { // the last card signed with the root key in the folder
		return err
	}
	if err := k.files.DetachRoot(path); err != nil {
		return fault.Wrap(fault.Invalid, err, "%s.", err)
	}
	k.self.Detach()
	return nil
}

func (k *Keyring) DraftCard(ctx context.Context) (json.RawMessage, error) {
	if k == nil {
		return nil, errNoNetwork
	}
	card, err := k.self.Draft(ctx)
	if err != nil {
		return nil, err
	}
	return json.Marshal(card)
}

func (k *Keyring) TakeCard(ctx context.Context, wire []byte) error {
	if k == nil {
		return errNoNetwork
	}
	return k.self.Take(ctx, wire)
}

// serveOps registers the key operations on the control socket.
func (k *Keyring) serveOps(op func(name string, f func(context.Context, controlRequest) (any, error))) {
	op("keys.list", func(ctx context.Context, _ controlRequest) (any, error) { return k.Keys(ctx) })
	op("keys.rotate", func(ctx context.Context, _ controlRequest) (any, error) { return k.RotateKeys(ctx) })
	op("keys.revoke", func(ctx context.Context, in controlRequest) (any, error) {
		return nil,
			k.RevokeKey(ctx, in.Name)
	})
	op("keys.detach", func(ctx context.Context, in controlRequest) (any, error) {
		return nil,
			k.DetachRoot(ctx, in.Name)
	})
	op("keys.draft", func(ctx context.Context, _ controlRequest) (any, error) { return k.DraftCard(ctx) })
	op("keys.take", func(ctx context.Context, in controlRequest) (any, error) {
		return nil, k.TakeCard(ctx, []byte(in.Name))
	})
}

func (c *remoteControl) Keys(ctx context.Context) (out federation.SelfStanding, err error) {
	err = c.callOp(ctx, "keys.list", controlRequest{}, &out)
	return out, err
}

func (c *remoteControl) RotateKeys(ctx context.Context) (id string, err error) {
	err = c.callOp(ctx, "keys.rotate", controlRequest{}, &id)
	return id, err
}

func (c *remoteControl) RevokeKey(ctx context.Context, id string) error {
	return c.callOp(ctx, "keys.revoke", controlRequest{Name: id}, nil)
}

func (c *remoteControl) DetachRoot(ctx context.Context, path string) error {
	return c.callOp(ctx, "keys.detach", controlRequest{Name: path}, nil)
}

func (c *remoteControl) DraftCard(ctx context.Context) (out json.RawMessage, err error) {
	err = c.callOp(ctx, "keys.draft", controlRequest{}, &out)
	return out, err
}

func (c *remoteControl) TakeCard(ctx context.Context, wire []byte) error {
	return c.callOp(ctx, "keys.take", controlRequest{Name: string(wire)}, nil)
}

// lazyKeys implements KeyControl for a stopped portal. It opens the keys at first use, because most
// commands need none, and opening them reads the replica.
type lazyKeys struct {
	folder *folder
	ring   *Keyring
	opened bool
}

func (l *lazyKeys) loadKeys(ctx context.Context) (k *Keyring, err error) {
	if !l.opened {
		o := l.folder
		if l.ring, err = openKeyring(ctx, o.set, o.url, o.keys, o.db); err != nil {
			return nil, err
		}
		l.opened = true
	}
	return l.ring, nil
}

func (l *lazyKeys) closeKeyring() error { return l.ring.closeReplica() }

func (l *lazyKeys) Keys(ctx context.Context) (out federation.SelfStanding, err error) {
	k, err := l.loadKeys(ctx)
	if err != nil {
		return out, err
	}
	return k.Keys(ctx)
}

func (l *lazyKeys) RotateKeys(ctx context.Context) (string, error) {
	k, err := l.loadKeys(ctx)
	if err != nil {
		return "", err
	}
	return k.RotateKeys(ctx)
}

func (l *lazyKeys) RevokeKey(ctx context.Context, id string) error {
	k, err := l.loadKeys(ctx)
	if err != nil {
		return err
	}
	return k.RevokeKey(ctx, id)
}

func (l *lazyKeys) DetachRoot(ctx context.Context, path string) error {
	k, err := l.loadKeys(ctx)
	if err != nil {
		return err
	}
	return k.DetachRoot(ctx, path)
}

func (l *lazyKeys) DraftCard(ctx context.Context) (json.RawMessage, error) {
	k, err := l.loadKeys(ctx)
	if err != nil {
		return nil, err
	}
	return k.DraftCard(ctx)
}

func (l *lazyKeys) TakeCard(ctx context.Context, wire []byte) error {
	k, err := l.loadKeys(ctx)
	if err != nil {
		return err
	}
	return k.TakeCard(ctx, wire)
}
