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

// KeyControl are the operations of the command line on the keys of a portal in its network.
type KeyControl interface {
	Keys(ctx context.Context) (federation.SelfStanding, error)
	// RotateKeys takes a new operational key and returns its id.
	RotateKeys(ctx context.Context) (string, error)
	// RevokeKey throws one away: nothing that it signed counts any more.
	RevokeKey(ctx context.Context, id string) error
	// DetachRoot writes the root key to a file and takes it out of the data
	// folder.
	DetachRoot(ctx context.Context, path string) error
	// DraftCard returns the card that the root key should sign, as JSON. TakeCard puts the signed card in use.
	DraftCard(ctx context.Context) (json.RawMessage, error)
	TakeCard(ctx context.Context, wire []byte) error
}

// SignCard signs a portal's card with a root key that is kept in a file. The
// key does not leave this process.
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

// Keyring is the keys of a portal that takes part in a network.
type Keyring struct {
	dir     string
	self    *federation.Self
	keys    *ident.Operational
	replica *replica.Replica // of a portal that does not run
}

// NewKeyring returns the keys of a portal that runs on a data folder.
func NewKeyring(dir string, self *federation.Self, keys *ident.Operational) *Keyring {
	return &Keyring{dir: dir, self: self, keys: keys}
}

var errNoNetwork = fault.New(fault.Conflict, "This portal is in no network, so it needs no keys for one.")

// openKeyring opens the keys of a portal that does not run. It is nil for a portal without a network. The caller closes
// it.
func openKeyring(ctx context.Context, set settings.Settings, origin string, keys *ident.Keys, db *store.DB) (*Keyring,
	error) {
	var none *Keyring // its methods answer errNoNetwork
	if set.NetworkName == "" || !record.ValidOrigin(origin) {
		return none, nil
	}
	id := record.PortalOf(record.Public(keys.Public()))
	op, err := ident.OpenOperational(set.Data, keys.Public(), clock.Now())
	if err != nil {
		return nil, err
	}
	replica, err := replica.Open(ctx, set.Data, id, set.NetworkName, set.NewLogger(discard{}))
	if err != nil {
		return nil, err
	}
	gate, err := record.NewGate(set.NetworkName, replica)
	if err != nil {
		return nil, errors.Join(err, replica.Close())
	}
	name := set.Name
	if card := lastCard(ctx, db, set.NetworkName); name == "" && card != nil {
		name = card.Name // or looking at the keys would change the card
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
	return &Keyring{set.Data, self, op, replica}, nil
}

// closeReplica closes the replica, which a running portal closes itself.
func (k *Keyring) closeReplica() error {
	if k == nil {
		return nil
	}
	return k.replica.Close()
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// Keys implements KeyControl.
func (k *Keyring) Keys(context.Context) (federation.SelfStanding, error) {
	if k == nil {
		return federation.SelfStanding{}, errNoNetwork
	}
	return k.self.Standing(), nil
}

// RotateKeys implements KeyControl.
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

// RevokeKey implements KeyControl.
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

// DetachRoot implements KeyControl.
func (k *Keyring) DetachRoot(ctx context.Context, path string) error {
	if k == nil {
		return errNoNetwork
	}
	if err := k.self.Renew(ctx); err != nil { // the last card it signs here
		return err
	}
	if err := ident.DetachRoot(k.dir, path); err != nil {
		return fault.Wrap(fault.Invalid, err, "%s.", err)
	}
	k.self.Detach()
	return nil
}

// DraftCard implements KeyControl.
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

// TakeCard implements KeyControl.
func (k *Keyring) TakeCard(ctx context.Context, wire []byte) error {
	if k == nil {
		return errNoNetwork
	}
	return k.self.Take(ctx, wire)
}

// serveOps adds the operations of keys to the control socket.
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

// Keys implements KeyControl.
func (c *remoteControl) Keys(ctx context.Context) (out federation.SelfStanding, err error) {
	err = c.callOp(ctx, "keys.list", controlRequest{}, &out)
	return out, err
}

// RotateKeys implements KeyControl.
func (c *remoteControl) RotateKeys(ctx context.Context) (id string, err error) {
	err = c.callOp(ctx, "keys.rotate", controlRequest{}, &id)
	return id, err
}

// RevokeKey implements KeyControl.
func (c *remoteControl) RevokeKey(ctx context.Context, id string) error {
	return c.callOp(ctx, "keys.revoke", controlRequest{Name: id}, nil)
}

// DetachRoot implements KeyControl.
func (c *remoteControl) DetachRoot(ctx context.Context, path string) error {
	return c.callOp(ctx, "keys.detach", controlRequest{Name: path}, nil)
}

// DraftCard implements KeyControl.
func (c *remoteControl) DraftCard(ctx context.Context) (out json.RawMessage, err error) {
	err = c.callOp(ctx, "keys.draft", controlRequest{}, &out)
	return out, err
}

// TakeCard implements KeyControl.
func (c *remoteControl) TakeCard(ctx context.Context, wire []byte) error {
	return c.callOp(ctx, "keys.take", controlRequest{Name: string(wire)}, nil)
}

// lazyKeys opens the keys of a stopped portal at first use: most commands sign no card.
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

// Keys implements KeyControl.
func (l *lazyKeys) Keys(ctx context.Context) (out federation.SelfStanding, err error) {
	k, err := l.loadKeys(ctx)
	if err != nil {
		return out, err
	}
	return k.Keys(ctx)
}

// RotateKeys implements KeyControl.
func (l *lazyKeys) RotateKeys(ctx context.Context) (string, error) {
	k, err := l.loadKeys(ctx)
	if err != nil {
		return "", err
	}
	return k.RotateKeys(ctx)
}

// RevokeKey implements KeyControl.
func (l *lazyKeys) RevokeKey(ctx context.Context, id string) error {
	k, err := l.loadKeys(ctx)
	if err != nil {
		return err
	}
	return k.RevokeKey(ctx, id)
}

// DetachRoot implements KeyControl.
func (l *lazyKeys) DetachRoot(ctx context.Context, path string) error {
	k, err := l.loadKeys(ctx)
	if err != nil {
		return err
	}
	return k.DetachRoot(ctx, path)
}

// DraftCard implements KeyControl.
func (l *lazyKeys) DraftCard(ctx context.Context) (json.RawMessage, error) {
	k, err := l.loadKeys(ctx)
	if err != nil {
		return nil, err
	}
	return k.DraftCard(ctx)
}

// TakeCard implements KeyControl.
func (l *lazyKeys) TakeCard(ctx context.Context, wire []byte) error {
	k, err := l.loadKeys(ctx)
	if err != nil {
		return err
	}
	return k.TakeCard(ctx, wire)
}
