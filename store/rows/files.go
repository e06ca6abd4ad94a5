package rows

import "agentsite/store/engine"

// Unheld limits a query on files to those that no message and no library holds.
const Unheld = `NOT EXISTS (SELECT 1 FROM file_uses u WHERE u.hash = files.hash)
	AND NOT EXISTS (SELECT 1 FROM library_versions v WHERE v.hash = files.hash)`

// LoosenFiles marks the files that are not held any more as waiting for their deletion since a time.
func LoosenFiles(t engine.Tx, hashes []string, at int64) error {
	for _, hash := range hashes {
		if _, err := t.Exec(`UPDATE files SET loose_at = ? WHERE hash = ? AND `+Unheld, max(at, 1), hash); err != nil {
			return err
		}
	}
	return nil
}

// DropLibrary deletes the versions in the library of a person; at is the time from which their contents wait for their
// deletion.
func DropLibrary(t engine.Tx, personID string, at int64) error {
	var hashes []string
	if err := t.List(&hashes, `SELECT DISTINCT hash FROM library_versions WHERE person_id = ? AND hash IS NOT NULL`,
		personID); err != nil {
		return err
	}
	// The rows of the newest versions hold the contents too.
	for _, table := range []string{"library_files", "library_versions"} {
		if _, err := t.Exec(`DELETE FROM `+table+` WHERE person_id = ?`, personID); err != nil {
			return err
		}
	}
	return LoosenFiles(t, hashes, at)
}
