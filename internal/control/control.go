// Package control contains the command line's operations on a portal's data: over a unix socket if the
// portal runs, otherwise directly on the data folder, which is then locked.
package control

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/doctor"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/personal"
	"agentsite/internal/record"
	"agentsite/internal/settings"
	"agentsite/store"
	"agentsite/store/replica"
	"agentsite/store/rows"
	"agentsite/store/space"
)

// Control is the set of operations of the command line on a portal's data, whether the portal runs or
// not. Callers need no login: access to the data folder is the permission for all operations.
type Control interface {
	AddUser(ctx context.Context, name, password string, operator bool) error
	Users(ctx context.Context) ([]User, error)
	SetUserDisabled(ctx context.Context, name string, disabled bool) error
	// RemoveUser erases an account and its data. After an interruption it may be called again.
	RemoveUser(ctx context.Context, name string, messages personal.Messages) (Removal, error)
	// ExportUser writes all data about an account to w as a zip file. If it fails, the bytes written are useless.
	ExportUser(ctx context.Context, name string, w io.Writer) error
	ResetLink(ctx context.Context, name string) (string, error)
	AddToken(ctx context.Context, user, label string, scopes []string, life time.Duration) (string, error)
	// Backup writes a verified copy of everything to w. If it fails, the bytes written to w are useless.
	Backup(ctx context.Context, w io.Writer, passphrase string) error
	Verify(ctx context.Context) (store.Report, error)
	// Peers returns a transport to the API about other portals, for addresses below
	// http://portal/api/v1. It acts as the system.
	Peers(ctx context.Context) (http.RoundTripper, error)
	KeyControl
	// Doctor examines the portal. Faults are findings of the report, not errors.
	Doctor(ctx context.Context, q doctor.Question) (doctor.Report, error)
	Close() error
}

// User is an account in the output of `user list`.
type User struct {
	Name     string    `json:"name"`
	Operator bool      `json:"operator"`
	Disabled bool      `json:"disabled"`
	Created  time.Time `json:"created"`
}

// Open connects to the portal that runs on the data folder, or locks and opens the folder if none runs.
// It fails if the folder holds no portal yet, unless create is set. The caller must close the result.
func Open(ctx context.Context, cfg settings.Config, create bool, stderr io.Writer) (Control, error) {
	if c, ok := dialControl(ctx, cfg.Data); ok {
		return c, nil
	}
	if !create && !dataExists(cfg) {
		return nil, errNoPortal(cfg.Data)
	}
	o, err := openFolder(ctx, cfg, stderr)
	if errors.Is(err, errReachable) {
		if c, ok := dialControl(ctx, cfg.Data); ok {
			return c, nil
		}
	}
	if err != nil {
		return nil, err
	}
	keys := &lazyKeys{folder: o}
	return &stoppedControl{
		localControl: localControl{
			KeyControl: keys,
			accounts: account.New(o.db.Accounts, account.Config{Policy: account.Closed, URL: o.url, Log: o.log,
				CheapHashes: cfg.CheapHashes}),
			db:       o.db,
			examiner: o,
			rooms: chat.New(o.db.Chat, nil, stoppedRuntime{}, chat.Config{Portal: rows.HostOf(o.url), URL: o.url,
				Log: o.log}),
			agents: stoppedIndex{},
		},
		folder: o, keys: keys}, nil
}

// OpenToRead is Open for operations that change nothing. They work on a copy of a folder that cannot be
// written, such as a snapshot of the disk.
func OpenToRead(ctx context.Context, cfg settings.Config, stderr io.Writer) (Control, error) {
	if c, ok := dialControl(ctx, cfg.Data); ok {
		return c, nil
	}
	if !dataExists(cfg) || !isReadOnly(cfg.Data) {
		return Open(ctx, cfg, false, stderr)
	}
	copied, err := copyReadOnly(ctx, cfg.Data)
	if err != nil {
		return nil, err
	}
	cfg.Data = filepath.Join(copied.Path, store.CopiedFolder)
	c, err := Open(ctx, cfg, false, stderr)
	if err != nil {
		copied.Remove()
		return nil, err
	}
	return &copyControl{c, copied}, nil
}

// copyReadOnly copies a data folder that cannot be written while it holds the folder's lock.
func copyReadOnly(ctx context.Context, dir string) (*store.Scratch, error) {
	lock, err := lockFolder(dir, false)
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	return store.CopyFolder(ctx, dir)
}

// copyControl is the Control of a copy, which it removes at the end.
type copyControl struct {
	Control
	copied *store.Scratch
}

func (c *copyControl) Close() error {
	defer c.copied.Remove()
	return c.Control.Close()
}

// stoppedControl is the Control of a portal that does not run. It holds the data folder until Close.
type stoppedControl struct {
	localControl
	folder *folder
	keys   *lazyKeys
	opened []*offlinePeers
}

// Verify implements Control. It opens the replica, which the other methods leave closed.
func (c *stoppedControl) Verify(ctx context.Context) (store.Report, error) {
	r, err := c.localControl.Verify(ctx)
	if err == nil {
		r.Replica, err = replica.Verify(ctx, replica.Config{Dir: c.folder.set.Data, Database: c.folder.set.Database,
			Log: slog.New(slog.DiscardHandler)})
	}
	return r, err
}

// Close implements Control. It stores the portals that were added and releases the data folder.
func (c *stoppedControl) Close() error {
	var errs []error
	for _, p := range c.opened {
		errs = append(errs, p.closePeers())
	}
	return errors.Join(append(errs, c.keys.closeKeyring(), c.folder.close())...)
}

// folder is the open data folder of a portal that does not run. The folder is locked until close.
type folder struct {
	set  settings.Settings
	keys *ident.Keys
	db   *store.DB
	url  string // the portal's address, without a trailing slash
	log  *slog.Logger
	lock *DataLock
}

// openFolder locks a data folder and opens its database, which it upgrades to the current schema if
// necessary. The error is errReachable if the portal started in the meantime.
func openFolder(ctx context.Context, cfg settings.Config, stderr io.Writer) (o *folder, err error) {
	o = &folder{}
	if o.set, err = cfg.Parse(); err != nil {
		return nil, err
	}
	o.set.Level = 8 // above all levels: a command reports its own result
	o.lock, err = LockData(cfg.Data)
	if errors.Is(err, ErrInUse) {
		// The portal is starting or stopping: either its socket appears or its lock is released.
		o.lock, err = waitForData(ctx, cfg.Data)
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = o.close() // err is reported instead
			o = nil
		}
	}()
	o.log = o.set.NewLogger(stderr)
	if o.keys, err = OpenKeys(cfg); err != nil {
		return o, err
	}
	disk := store.Config{Database: cfg.Database, KeyFile: cfg.KeyFile,
		Space: space.Config{Floor: o.set.Bounds.Disk.Floor, Reserve: o.set.Bounds.Disk.Reserve}}
	if o.db, err = store.OpenWith(ctx, cfg.Data, disk, o.log); err != nil {
		return o, err
	}
	if o.url, err = o.db.ClaimPortal(ctx, o.keys.Public(), ""); err != nil {
		return o, err
	}
	// The same choice as app.Portal makes at its start, but without storing the result.
	switch {
	case o.set.Address != nil:
		o.url = o.set.Address.String()
	case o.url == "":
		if o.url = "http://" + cfg.Listen; o.set.NetworkName != "" {
			if card := lastCard(ctx, o.db, o.set.NetworkName); card != nil {
				o.url = card.Origin // the address of the last run, at which no address was configured
			}
		}
	}
	return o, nil
}

// lastCard returns the newest card that the portal signed in a network, or nil if there is none or it
// cannot be read.
func lastCard(ctx context.Context, db *store.DB, network string) *record.Card {
	_, wire, err := db.Peers.LastCard(ctx, network)
	if err != nil || wire == nil {
		return nil
	}
	r, err := record.Open(network, wire)
	if err != nil {
		return nil
	}
	card, _ := r.Body.(*record.Card)
	return card
}

// close closes the database and releases the lock of the folder.
func (o *folder) close() error {
	defer o.lock.Release()
	if o.db == nil {
		return nil
	}
	return o.db.Close()
}

func errNoPortal(dir string) error {
	return errors.New("there is no portal in " + dir +
		"; name its folder with --data, or start one with `agentsite serve`")
}

var errReachable = errors.New("the portal answers now")

// waitForData waits up to 5 s for the lock of a portal that is starting or stopping. The error is
// errReachable if the portal answers on its socket.
func waitForData(ctx context.Context, dir string) (*DataLock, error) {
	deadline := time.NewTimer(5 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-deadline.C:
			return LockData(dir)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if _, err := os.Stat(filepath.Join(dir, controlSocket)); err == nil {
			if c, ok := dialControl(ctx, dir); ok {
				c.Close()
				return nil, errReachable
			}
		}
		if lock, err := LockData(dir); err == nil || !errors.Is(err, ErrInUse) {
			return lock, err
		}
	}
}

// Examiner examines a portal for its operator. It is implemented by app.Portal for a running portal and
// by folder for a stopped one.
type Examiner interface {
	Examine(ctx context.Context, q doctor.Question) (doctor.Report, error)
}

// localControl is a Control on an open database, acting as the system. The running portal uses it behind
// the socket.
type localControl struct {
	KeyControl
	accounts *account.Service
	db       *store.DB
	replica  *replica.Replica // nil without a network, and for a stopped portal
	examiner Examiner
	rooms    RoomLeaver
	agents   AgentIndex
	programs Programs // nil for a stopped portal
}

var system = ident.Actor{Kind: ident.System}

func (c *localControl) AddUser(ctx context.Context, name, password string, operator bool) error {
	_, err := c.accounts.Add(ctx, system, account.SignUp{Name: name, Password: password}, operator)
	return err
}

func (c *localControl) Users(ctx context.Context) ([]User, error) {
	out := []User{}
	after := ""
	for {
		page, err := c.accounts.List(ctx, system, after)
		if err != nil || len(page) == 0 {
			return out, err
		}
		for _, a := range page {
			out = append(out, User{a.Name, a.Operator, a.Disabled(), a.CreatedAt})
		}
		after = page[len(page)-1].Name
	}
}

func (c *localControl) SetUserDisabled(ctx context.Context, name string, disabled bool) error {
	if disabled {
		return c.accounts.Disable(ctx, system, name)
	}
	return c.accounts.Enable(ctx, system, name)
}

func (c *localControl) ResetLink(ctx context.Context, name string) (string, error) {
	return c.accounts.ResetLink(ctx, system, name)
}

func (c *localControl) AddToken(ctx context.Context, user, label string, scopes []string, life time.Duration) (string,
	error) {
	in := account.NewToken{Label: label, Life: life}
	for _, s := range scopes {
		in.Scopes = append(in.Scopes, ident.Scope(s))
	}
	return c.accounts.CreateTokenFor(ctx, system, user, in)
}

func (c *localControl) Backup(ctx context.Context, w io.Writer, passphrase string) error {
	_, err := c.db.Backups.Backup(ctx, w, store.BackupOptions{Passphrase: passphrase, App: settings.Version()})
	return err
}

func (c *localControl) Verify(ctx context.Context) (store.Report, error) {
	r, err := c.db.Backups.Verify(ctx)
	if err == nil && c.replica != nil {
		r.Replica, err = c.replica.Verify(ctx)
	}
	return r, err
}

// Close does nothing: the running portal closes its own database.
func (c *localControl) Close() error { return nil }

// RestoreBackup restores a backup into the data folder, which must be empty or missing, and into the
// database of the settings. passphrase is "" for a backup without encryption.
func RestoreBackup(ctx context.Context, r io.Reader, cfg settings.Config, passphrase string) (store.Report, error) {
	return store.RestoreInto(ctx, r, cfg.Data, passphrase, cfg.Database, slog.New(slog.DiscardHandler))
}

// VerifyBackup checks the contents of a backup without restoring it. passphrase is "" for a backup
// without encryption.
func VerifyBackup(ctx context.Context, r io.Reader, passphrase string) (store.Report, error) {
	return store.VerifyBackup(ctx, r, passphrase)
}

// VerifyData checks the databases of a data folder: through the running portal, or directly if none
// runs. The only change it makes is to remove damaged parts of the replica, which are fetched again from
// other portals. A folder that cannot be written is checked without a change.
func VerifyData(ctx context.Context, cfg settings.Config) (store.Report, error) {
	if cfg.Database != "" {
		c, err := Open(ctx, cfg, false, discard{})
		if err != nil {
			return store.Report{}, err
		}
		defer c.Close()
		return c.Verify(ctx)
	}
	dir := cfg.Data
	if c, ok := dialControl(ctx, dir); ok {
		defer c.Close()
		return c.Verify(ctx)
	}
	if !dataExists(cfg) {
		return store.Report{}, errNoPortal(dir)
	}
	readOnly := isReadOnly(dir)
	if readOnly && store.NeedsCopy(dir) {
		copied, err := copyReadOnly(ctx, dir)
		if err != nil {
			return store.Report{}, err
		}
		defer copied.Remove()
		dir, readOnly = filepath.Join(copied.Path, store.CopiedFolder), false
	}
	lock, err := lockFolder(dir, !readOnly)
	if err != nil {
		return store.Report{}, err
	}
	defer lock.Release()
	r, err := store.VerifyFiles(ctx, ident.KeyFiles{Dir: dir, Root: cfg.KeyFile})
	if err == nil {
		r.Replica, err = replica.Verify(ctx, replica.Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	}
	return r, err
}

// SchemaVersion returns the newest database schema that this binary supports.
func SchemaVersion() int64 { return store.SchemaVersion() }

// asFault rebuilds an error that was sent over the control socket, with its kind and its message for
// users.
func asFault(kind, message string) error { return fault.New(fault.Kind(kind), "%s", message) }

// Report is the result of checking a data folder or a backup.
type Report = store.Report
