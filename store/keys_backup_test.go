package store_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"agentsite/internal/ident"
	"agentsite/internal/testing/storetest"
	"agentsite/internal/usage"
	"agentsite/store"
)

// A portal whose root key is elsewhere is backed up with the keys that it has.
func TestBackup_HoldsAllKeysThatAreThere(t *testing.T) {
	t.Parallel()
	for _, away := range []bool{false, true} {
		db := storetest.New(t)
		dir := storetest.Dir(db)
		keys, err := ident.LoadKeys(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ClaimPortal(t.Context(), keys.Public(), ""); err != nil {
			t.Fatal(err)
		}
		op, err := ident.OpenOperational(dir, keys.Public(), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if away {
			if err := ident.DetachRoot(dir, filepath.Join(t.TempDir(), "root.key")); err != nil {
				t.Fatal(err)
			}
		}
		prices := []byte(`{"currency":"EUR","models":{"m":{"input":1}}}`)
		if err := os.WriteFile(filepath.Join(dir, usage.PricesFile), prices, 0o600); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if _, err := db.Backup(t.Context(), &b, store.BackupOptions{}); err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(t.TempDir(), "restored")
		if _, err := store.Restore(t.Context(), &b, to, ""); err != nil {
			t.Fatal(err)
		}
		again, err := ident.LoadKeys(to)
		if err != nil || !again.Public().Equal(keys.Public()) || (again.Portal == nil) != away {
			t.Errorf("away %v: %v", away, err)
		}
		if got, err := os.ReadFile(filepath.Join(to, usage.PricesFile)); err != nil || !bytes.Equal(got, prices) {
			t.Errorf("away %v: the prices are %q: %v", away, got, err)
		}
		kept, err := ident.OpenOperational(to, keys.Public(), time.Now())
		if err != nil || !kept.List()[0].Key.Equal(op.List()[0].Key) {
			t.Errorf("away %v: the operational keys are others: %v", away, err)
		}
		if r, err := store.Verify(t.Context(), to); err != nil || len(r.Faults) > 0 {
			t.Errorf("away %v: %v %v", away, r.Faults, err)
		}
		// What is damaged is told.
		if err := os.WriteFile(filepath.Join(to, ident.OperationalKeysFile), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := store.Verify(t.Context(), to); err != nil || len(r.Faults) != 1 {
			t.Errorf("away %v: damage is not seen: %v %v", away, r.Faults, err)
		}
	}
}
