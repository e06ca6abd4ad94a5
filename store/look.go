package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"agentsite/store/replica"
	"agentsite/store/sqlite"
)

// Look is the result of a quick check of the databases in a data folder, of pages only; Verify checks
// the contents.
type Look struct {
	// Schema is the version of the portal's database, Newest the version that this binary knows.
	Schema, Newest int64
	// Faults and ReplicaFaults are messages of SQLite about damage, at most 5 each; none means no damage
	// was found. HasReplica is true when a replica exists.
	Faults, ReplicaFaults []string
	HasReplica            bool
}

// LookAt checks the databases in the folder dir while no portal runs on it, and changes nothing there.
// An error means that the portal's database could not be read at all, or that a newer binary wrote it.
func LookAt(ctx context.Context, dir string) (Look, error) {
	out := Look{Newest: sqlite.SchemaVersion()}
	path := filepath.Join(dir, sqlite.FileName)
	err := sqlite.CheckFile(path)
	if err == nil {
		out.Schema, err = sqlite.PortalSchema(ctx, path)
	}
	if err == nil {
		out.Faults, err = sqlite.QuickCheckFile(ctx, path)
	}
	if err != nil {
		return out, err
	}
	path = filepath.Join(dir, replica.FileName)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return out, nil
	}
	out.HasReplica = true
	if out.ReplicaFaults, err = sqlite.QuickCheckFile(ctx, path); err != nil && ctx.Err() == nil {
		out.ReplicaFaults = append(out.ReplicaFaults, err.Error())
	}
	return out, ctx.Err()
}
