package pdf

import (
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/agentruntime/pdf/child"
)

// The process of the reader is locked down as those of hosted programs are, and keeps the bounds that SECURITY.md names.
func TestReader_IsLockedDown(t *testing.T) {
	t.Parallel()
	r := New(Config{Command: []string{os.Args[0], child.Argument}, Folder: t.TempDir(),
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	t.Cleanup(r.Close)
	if l := r.pool.Limits(); l.Run != 10*time.Second || l.Resident != 640<<20 || l.Calls != 1 {
		t.Errorf("the limits are %+v", l)
	}
	guards, err := r.pool.Guards(t.Context())
	if err != nil || !slices.Contains(guards, "limits") {
		t.Fatalf("guards %q, %v", guards, err)
	}
	// A binary with C code keeps its capabilities, so that "privileges" may be missing.
	if !slices.Contains(guards, "folder") && !strings.Contains(os.Getenv("AGENTSITE_TEST_REQUIRE"), "namespaces") {
		t.Skipf("the kernel allows no namespaces, only %q", guards)
	}
	for _, want := range []string{"network", "processes", "folder"} {
		if !slices.Contains(guards, want) {
			t.Errorf("guards %q lack %s", guards, want)
		}
	}
}
