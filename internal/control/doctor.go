package control

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentsite/internal/doctor"
	"agentsite/internal/egress"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/internal/settings"
	"agentsite/internal/weborigin"
	"agentsite/store"
	"agentsite/store/replica"
)

// Diagnosis is the result of examining a portal, for callers that do not import package doctor.
type Diagnosis = doctor.Report

const (
	// checkFor limits the time to check one database. The check reads the whole file and prevents
	// the journal of writes from being shortened.
	checkFor = 30 * time.Second
	// doctorFor limits the time of the whole examination.
	doctorFor = 2 * time.Minute
	// maxScrubFaults bounds the faults of the check in the background in a report; verify lists all.
	maxScrubFaults = 10
)

// Doctor examines the portal on a data folder, whether it runs or not. With agent set, it follows that
// agent to the other portal instead. A folder that cannot be opened is a fault in the report, not an
// error.
func Doctor(ctx context.Context, cfg settings.Config, agent, portal string, stderr io.Writer) (Diagnosis, error) {
	ctx, cancel := context.WithTimeout(ctx, doctorFor)
	defer cancel()
	q := doctor.Question{Agent: agent, Portal: portal}
	if c, ok := dialControl(ctx, cfg.Data); ok {
		defer c.Close()
		return c.Doctor(ctx, q)
	}
	if !dataExists(cfg) {
		return Diagnosis{}, errNoPortal(cfg.Data)
	}
	if _, err := cfg.Parse(); err != nil {
		return Diagnosis{}, err
	}
	if isReadOnly(cfg.Data) {
		return examineCopy(ctx, cfg, agent, portal, stderr)
	}
	lock, err := LockData(cfg.Data)
	if err == nil && cfg.Database != "" {
		lock.Release()
	} else if err == nil {
		ill := doctor.FolderOf(cfg.Data)
		healthy := lookAt(ctx, cfg.Data, &ill)
		lock.Release()
		if !healthy {
			ill.Add(doctor.Settings, doctor.Skipped, "", "Nothing else can be looked at before that is mended.")
			ill.Judge()
			return ill, nil
		}
	}
	c, err := Open(ctx, cfg, false, stderr)
	if err != nil {
		if ctx.Err() != nil {
			return Diagnosis{}, err
		}
		ill := doctor.FolderOf(cfg.Data)
		text := err.Error()
		if f := fault.As(err); f.Kind != fault.Internal {
			text = f.Safe
		}
		ill.Add(doctor.Data, doctor.Fault, "Mend what it says, or restore a backup: agentsite restore FILE",
			"The data cannot be opened: %s.", strings.TrimSuffix(text, "."))
		ill.Judge()
		return ill, nil
	}
	defer c.Close()
	return c.Doctor(ctx, q)
}

// examineCopy examines a copy of a data folder that cannot be written.
func examineCopy(ctx context.Context, cfg settings.Config, agent, portal string, stderr io.Writer) (Diagnosis, error) {
	dir := cfg.Data
	copied, err := copyReadOnly(ctx, dir)
	if err != nil {
		return Diagnosis{}, err
	}
	defer copied.Remove()
	cfg.Data = filepath.Join(copied.Path, store.CopiedFolder)
	r, err := Doctor(ctx, cfg, agent, portal, stderr)
	r.Add(doctor.Data, doctor.Fault,
		"Give the folder to the user that the portal runs as, or mount its disk for writing.",
		"Nothing can be written into %s: a copy of it was examined.", dir)
	r.Judge()
	return r, err
}

// lookAt checks the databases of a folder that no portal uses, without changing them, and adds the
// findings to r. It reports whether the databases may be opened: opening would upgrade an old database
// and move a damaged replica aside.
func lookAt(ctx context.Context, dir string, r *Diagnosis) bool {
	ctx, cancel := context.WithTimeout(ctx, checkFor)
	defer cancel()
	look, err := store.LookAt(ctx, dir)
	switch {
	case ctx.Err() != nil:
		r.Add(doctor.Data, doctor.Note, "agentsite verify", "The databases are too large for a quick look.")
		return true
	case err != nil:
		r.Add(doctor.Data, doctor.Fault, "Restore a backup: agentsite restore FILE", "The database cannot be used: %v.",
			err)
		return false
	case len(look.Faults) > 0:
		r.Add(doctor.Data, doctor.Fault, "agentsite verify says more; restore a backup: agentsite restore FILE",
			"The database is damaged: %s.", look.Faults[0])
		return false
	case look.Schema < look.Newest:
		r.Add(doctor.Data, doctor.Note, "Make a copy of the folder, and start the portal: it upgrades",
			"The database has schema %d, this binary has %d.", look.Schema, look.Newest)
		return false
	}
	if len(look.ReplicaFaults) > 0 {
		r.Add(doctor.Data, doctor.Fault, "Start the portal: it begins a new replica, which is filled from the other portals", "The replica of other portals' agents is damaged: %s.", look.ReplicaFaults[0])
		return false
	}
	return true
}

// Databases implements doctor.Databases for a portal's open databases. Replica is nil without a network,
// Scrub for a portal that does not run.
type Databases struct {
	DB      *store.DB
	Replica *replica.Replica
	Scrub   *store.Scrub
}

// CheckState adds findings for the failures of the databases that the running portal has noticed.
func (d Databases) CheckState(ctx context.Context, r *Diagnosis) {
	db, replica := d.DB, d.Replica
	if replica != nil {
		if err := replica.Err(); err != nil {
			r.Add(doctor.Data, doctor.Fault, "Start the portal again: that mends it, or begins a new one",
				"The replica failed: %v.", err)
		}
	}
	if err := db.Err(); err != nil {
		r.Add(doctor.Data, doctor.Fault, "Start the portal again: what was confirmed is safe",
			"The database failed: %v.", err)
	}
	if err := db.CheckSettings(ctx); err != nil {
		text := err.Error()
		if f := fault.As(err); f.Kind != fault.Internal {
			text = f.Safe
		}
		r.Add(doctor.Data, doctor.Fault, "Correct it, then start the portal again", "%s", text)
	}
	if d.Scrub != nil {
		state := d.Scrub.State()
		for _, fault := range state.Faults[:min(len(state.Faults), maxScrubFaults)] {
			r.Add(doctor.Data, doctor.Fault, "agentsite verify says more; restore a backup: agentsite restore FILE",
				"The check in the background found damage: %s", fault)
		}
		if len(state.Faults) == 0 && !state.Completed.IsZero() {
			r.Add(doctor.Data, doctor.OK, "", "All data was read in the background without damage, until %s.",
				state.Completed.UTC().Format(time.DateTime))
		}
	}
}

// CheckFiles reads the files of the databases and adds a finding for each to r. Each check is limited to checkFor.
func (d Databases) CheckFiles(ctx context.Context, r *Diagnosis) {
	type checked interface {
		QuickCheck(ctx context.Context) ([]string, error)
		Name() string
	}
	files := []checked{d.DB}
	if d.Replica != nil {
		files = append(files, d.Replica)
	}
	for _, f := range files {
		name := f.Name()
		bounded, cancel := context.WithTimeout(ctx, checkFor)
		list, err := f.QuickCheck(bounded)
		slow := bounded.Err() != nil
		cancel()
		switch {
		case slow:
			r.Add(doctor.Data, doctor.Note, "agentsite verify", "%s is too large for a quick look.", name)
		case err != nil:
			r.Add(doctor.Data, doctor.Fault, "agentsite verify", "%s cannot be checked: %v.", name, err)
		case len(list) > 0:
			r.Add(doctor.Data, doctor.Fault, "agentsite verify says more; restore a backup: agentsite restore FILE",
				"%s is damaged: %s.", name, list[0])
		default:
			r.Add(doctor.Data, doctor.OK, "", "%s is sound.", name)
		}
	}
}

func (c *localControl) Doctor(ctx context.Context, q doctor.Question) (doctor.Report, error) {
	return c.examiner.Examine(ctx, q)
}

// Examine implements Examiner for a portal that does not run. Checks that need the running portal are
// skipped.
func (o *folder) Examine(ctx context.Context, q doctor.Question) (r doctor.Report, err error) {
	web := egress.New(egress.Config{AllowCIDR: o.reachableNets(), UserAgent: "agentsite/" + settings.Release()})
	defer web.CloseIdle()
	s := doctor.Subject{Dir: o.set.Data, URL: o.url, Listen: o.set.Listen, Network: o.set.NetworkName,
		Web: web.RoundTripper(),
		ID:  record.PortalOf(record.Public(o.keys.Public())), Agents: o.db.Hub}
	ring, err := openKeyring(ctx, o.set, o.url, o.keys, o.db)
	if err != nil {
		s.Keyring = brokenKeyring{err}
	}
	defer func() { err = errors.Join(err, ring.closeReplica()) }()
	cfg := federation.PeersConfig{Signer: offline{id: s.ID, network: o.set.NetworkName, origin: o.url}, Log: o.log}
	var replica *replica.Replica
	if ring != nil {
		replica = ring.replica
		cfg.Replica, s.Replica, s.Keyring = replica, replica, ring
	}
	peers, perr := federation.NewPeers(ctx, o.db.Peers, cfg)
	if perr != nil {
		s.PeersError = perr
	} else {
		s.Peers = peers
	}
	s.Databases = Databases{DB: o.db, Replica: replica}
	return doctor.Examine(ctx, s, q), nil
}

// brokenKeyring is the doctor.Keyring of a portal whose keys cannot be read; every call returns the
// reason.
type brokenKeyring struct{ err error }

func (b brokenKeyring) Keys(context.Context) (federation.SelfStanding, error) {
	return federation.SelfStanding{}, b.err
}

// reachableNets returns the private networks that the portal would call: those that the operator
// allowed, and loopback if the portal's own address is loopback.
func (o *folder) reachableNets() []netip.Prefix {
	allow := slices.Clone(o.set.AllowedNets)
	if u, err := url.Parse(o.url); err == nil && weborigin.IsLoopback(u.Hostname()) {
		allow = append(allow, settings.LoopbackRanges...)
	}
	return allow
}
