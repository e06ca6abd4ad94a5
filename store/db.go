// Package store opens a portal's database with the stores on it, and makes, verifies and restores
// backups. Exported methods open the transaction, helpers take it and compose. The stores implement
// the ports that the services in internal/ declare and hold no rules: they do not decide on
// permissions.
package store

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/quota"
	"agentsite/store/accounts"
	"agentsite/store/adjusted"
	"agentsite/store/agents"
	"agentsite/store/chats"
	"agentsite/store/engine"
	"agentsite/store/erasure"
	"agentsite/store/figures"
	"agentsite/store/grants"
	"agentsite/store/halts"
	"agentsite/store/hooks"
	"agentsite/store/library"
	"agentsite/store/memories"
	"agentsite/store/models"
	"agentsite/store/modules"
	"agentsite/store/packages"
	"agentsite/store/personal"
	"agentsite/store/postgres"
	"agentsite/store/profiles"
	"agentsite/store/quotas"
	"agentsite/store/replica"
	"agentsite/store/space"
	"agentsite/store/sqlite"
	"agentsite/store/tasks"
	"agentsite/store/teams"
	"agentsite/store/usages"
)

// FileName is the name of the database file in the data folder.
const FileName = sqlite.FileName

// SchemaVersion returns the version of the newest migration in this binary.
func SchemaVersion() int64 { return sqlite.SchemaVersion() }

// DB is the open database of a portal with its stores. It is safe for concurrent use. Close waits for
// queued writes and must be called once the services have ended.
type DB struct {
	Engine
	file *sqlite.DB // nil on PostgreSQL
	dir  string     // the data folder
	// reserve makes the forms under which the names of erased accounts stay taken.
	reserve *erasure.Reserve

	Accounts *accounts.Accounts
	Hub      *Hub
	Chat     *Chat
	Tasks    *tasks.Tasks
	Hooks    *hooks.Hooks
	Browsers *hooks.Browsers
	Grants   *grants.Grants
	Usages   *usages.Usages
	Personal *personal.Data
	Models   *models.Models
	Halts    *halts.Halts
	Adjusted *adjusted.Settings
	Figures  *figures.Figures
	Modules  *modules.Modules
	Memories *memories.Memories
	Library  *library.Library
	Profiles *profiles.Profiles
	Packages *packages.Packages
	Teams    *teams.Teams
	Talks    *chats.Summaries
	Peers    *Peers
	Words    *chats.Words
	Quotas   *quotas.Quotas
	Space    *space.Space
	Backups  *Backups
	ready    readiness
}

// Hub joins the stores of agents and notices to one hub.Store.
type Hub struct {
	*agents.Agents
	*agents.Owners
	*agents.Health
	*agents.Uses
	*agents.Registry
	*hooks.Inbox
}

// Chat joins the stores of conversations, files and tasks to one chat.Store.
type Chat struct {
	*chats.Chats
	*chats.Files
	*chats.Search
	*tasks.Tasks
}

var (
	_ hub.Store  = (*Hub)(nil)
	_ chat.Store = (*Chat)(nil)
)

// Config holds the bounds on stored data. The zero Config has none.
type Config struct {
	// Database is the URL of a PostgreSQL database, postgres://…; "" for SQLite in the data folder.
	Database string
	// KeyFile is the file of the root key; "" for the one in the data folder. Backups contain it.
	KeyFile string
	// Quota bounds the bytes of each account, agent, network of guests and portal.
	Quota quota.Limits
	// Space keeps free space on the disk of SQLite's file; it has no effect on PostgreSQL.
	Space space.Config
}

// Open is OpenWith without bounds, for commands of the operator and for tests.
func Open(ctx context.Context, dir string, log *slog.Logger) (*DB, error) {
	return OpenWith(ctx, dir, Config{}, log)
}

// OpenWith opens or creates the database of the portal with the data folder dir, with the checks of
// sqlite.OpenPortal or postgres.Open, and removes temporary files of an interrupted upload.
func OpenWith(ctx context.Context, dir string, cfg Config, log *slog.Logger) (*DB, error) {
	before, err := refuseRemains(ctx, dir, cfg.Database != "")
	if err != nil {
		return nil, err
	}
	if cfg.Database != "" {
		cfg.Space = space.Config{} // texts and files are on the disk of the server
	}
	disk := space.New(dir, cfg.Space)
	if err := disk.Refill(); err != nil {
		log.Warn("fill the reserve", "error", err)
	}
	sqlite.RemoveScratch(filepath.Join(dir, chats.BlobsDir))
	if cfg.Database != "" {
		server, err := postgres.Open(ctx, cfg.Database, postgres.Portal(), log)
		if err != nil {
			return nil, err
		}
		if err := refuseMoved(ctx, server, before); err != nil {
			return nil, errors.Join(err, server.Close())
		}
		return newDB(server, nil, dir, cfg, disk), nil
	}
	file, err := sqlite.OpenPortal(ctx, dir, disk, log)
	if err != nil {
		return nil, err
	}
	if err := refuseMoved(ctx, file, moveMark{}); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return newDB(file, file, dir, cfg, disk), nil
}

// refuseMoved returns an error for a database on which no portal may start because of a move. before is the
// mark of a database file beside one on a server: if the portal was moved, the database must hold it.
func refuseMoved(ctx context.Context, db Engine, before moveMark) error {
	m, err := readMark(ctx, db)
	if err != nil {
		return err
	}
	if err := m.refusal(nameOf(db)); err != nil {
		return err
	}
	if before.State == none || before.ID == m.ID {
		return nil
	}
	var portals int
	if err := db.Get(ctx, &portals, `SELECT COUNT(*) FROM portal`); err != nil || portals > 0 {
		return err
	}
	return fault.New(fault.Conflict, "The portal in this data folder was moved to the %s, and --database names "+
		"another one, which is empty.", before.Other)
}

// refuseRemains returns an error for a folder that has other data of a portal but no database. A new
// database beside them would be a second life of the same portal: it has the keys of the first, and signs
// other records under the numbers that the first one used. With a database on a server it refuses a
// folder that has a database, unless that was moved or is an incomplete copy, and returns its mark.
func refuseRemains(ctx context.Context, dir string, server bool) (before moveMark, err error) {
	if server {
		path := filepath.Join(dir, sqlite.FileName)
		if _, err := os.Lstat(path); err != nil {
			return before, nil
		}
		if before, err = markOfFile(ctx, path); err == nil && (before.State == moved || before.State == incomplete) {
			return before, nil
		}
		return before, fault.New(fault.Conflict, "%s holds %s, the database of a portal. Start without --database, move it "+
			"with `agentsite migrate-database --to …`, or name an empty folder: a portal cannot have two databases.", dir,
			sqlite.FileName)
	}
	if _, err := os.Stat(filepath.Join(dir, sqlite.FileName)); !errors.Is(err, fs.ErrNotExist) {
		return before, nil // sqlite.OpenPortal reports other errors
	}
	for _, name := range []string{replica.FileName, chats.BlobsDir} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return before, fault.New(fault.Conflict, "The database %s is missing in %s, but %s of a portal is there. "+
				"Put the database back, or restore a backup into a new folder with `agentsite restore FILE`. "+
				"To start afresh, use an empty folder.", sqlite.FileName, dir, name)
		}
	}
	return before, nil
}

// newDB joins the stores on an engine. file is the engine if it is SQLite, otherwise nil.
func newDB(f Engine, file *sqlite.DB, dir string, cfg Config, disk *space.Space) *DB {
	bounds := quotas.New(f, cfg.Quota, disk)
	hook, word, blobs := hooks.New(f, bounds), chats.NewWords(f), chats.NewFiles(f, dir, bounds, disk)
	if file == nil {
		blobs = chats.NewFilesInRows(f, bounds)
	}
	reserve := erasure.NewReserve(dir)
	agent, queue := agents.New(f, hook, bounds, reserve.Form), tasks.New(f, hook)
	chat := chats.New(f, hook, word, bounds)
	return &DB{
		ready:  readiness{turn: make(chan struct{}, 1)},
		Engine: f, file: file, dir: dir, reserve: reserve,
		Accounts: accounts.New(f, agent, bounds),
		Hub: &Hub{agent, agents.NewOwners(f, agent), agents.NewHealth(f, agent, hook), agents.NewUses(f, agent),
			agents.NewRegistry(f, agent), hooks.NewInbox(f, hook)},
		Chat:  &Chat{chat, blobs, chats.NewSearch(f, chat, word), queue},
		Tasks: queue, Hooks: hook, Browsers: hooks.NewBrowsers(hook), Grants: grants.New(f), Usages: usages.New(f), Personal: personal.New(f),
		Models: models.New(f), Halts: halts.New(f), Adjusted: adjusted.New(f), Figures: figures.New(f),
		Modules: modules.New(f, bounds), Teams: teams.New(f),
		Memories: memories.New(f, bounds),
		Library:  library.New(f, bounds),
		Profiles: profiles.New(f),
		Packages: packages.New(f),
		Talks:    chats.NewSummaries(f),
		Peers:    newPeers(f), Words: word, Quotas: bounds, Space: disk,
		Backups: newBackups(f, file, cfg, dir, word, blobs),
	}
}

// Engine is a database engine of a portal.
type Engine interface {
	engine.DB
	// Fatal returns a channel that is closed when an error has stopped all writing; Err returns that
	// error. The portal should exit then and be started again.
	Fatal() <-chan struct{}
	Err() error
	// CheckSettings returns an error unless the database runs with the settings that durability needs.
	CheckSettings(ctx context.Context) error
	// CheckPlace returns an error if the database was moved or replaced since it was opened.
	CheckPlace() error
	// QuickCheck returns messages about damage; none means that no damage was found.
	QuickCheck(ctx context.Context) ([]string, error)
	// Compact gives free space in the database back, and returns the number of pages.
	Compact(ctx context.Context) (int64, error)
	// Size returns the size of the database in bytes, Name its name for messages.
	Size(ctx context.Context) (int64, error)
	Name() string
}

// Dir returns the data folder.
func (d *DB) Dir() string { return d.dir }
