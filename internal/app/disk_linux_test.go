package app_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/ident"
	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/storetest"
	"agentsite/store/space"
)

// mountDisk mounts a file system of that many bytes, or skips the test where that is not allowed.
func mountDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size+",mode=0700"); err != nil {
		if strings.Contains(os.Getenv("AGENTSITE_TEST_REQUIRE"), "mount") {
			t.Fatal(err)
		}
		t.Skipf("a small disk cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fillDisk takes the free space of a disk except for rest bytes.
func fillDisk(t *testing.T, dir, name string, rest int64) {
	t.Helper()
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if free := int64(st.Bavail)*int64(st.Bsize) - rest; free > 0 {
		if err := syscall.Fallocate(int(f.Fd()), 0, 0, free); err != nil {
			t.Fatal(err)
		}
	}
}

// On a full disk a portal starts and can be read, and its operator can sign in, disable and delete. The
// others store nothing until there is room again.
func TestDisk_FullAndFreed(t *testing.T) {
	storetest.SkipOnPostgres(t)
	disk := mountDisk(t, "48m")
	data := filepath.Join(disk, "data")
	limits := func(c *app.Config) { c.Data, c.Limits = data, "disk-free=16M,disk-reserve=8M" }
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	w := apptest.Start(t, limits)
	op, ada := w.Operator(t, "op"), w.User(t, "ada")
	rooms := map[*apptest.Client]string{op: op.Conversation(), ada: ada.Conversation()}
	say := func(c *apptest.Client, bytes, want int) {
		t.Helper()
		a := c.Must(http.MethodPost, "/api/v1/conversations/"+rooms[c]+"/messages", map[string]any{"client_id": ident.NewID(),
			"parts": []any{map[string]any{"text": strings.Repeat("x", bytes)}}}, want)
		if want == http.StatusInsufficientStorage && (a.Kind() != "unavailable" || a.Header.Get("Retry-After") == "") {
			t.Errorf("refused with kind %q and Retry-After %q", a.Kind(), a.Header.Get("Retry-After"))
		}
	}
	say(ada, 20_000, http.StatusCreated)
	reserve := func() int64 {
		st, err := os.Stat(filepath.Join(data, space.FileName))
		if err != nil {
			t.Fatal(err)
		}
		return st.Size()
	}
	if reserve() != 8<<20 {
		t.Fatalf("the reserve has %d bytes", reserve())
	}
	w.Stop()

	fillDisk(t, disk, "nearly", 10<<20)
	w = apptest.Start(t, limits)
	op, ada = w.LogIn(t, "op"), w.LogIn(t, "ada")
	rooms = map[*apptest.Client]string{op: op.Conversation(), ada: ada.Conversation()}
	say(ada, 100, http.StatusCreated)
	say(ada, 20_000, http.StatusInsufficientStorage)
	say(op, 20_000, http.StatusCreated)
	op.Must(http.MethodGet, "/readyz", nil, http.StatusOK)
	w.Stop()

	for _, name := range []string{"full", "full again"} {
		fillDisk(t, disk, name, 0)
		w = apptest.Start(t, limits)
		room := rooms[ada]
		op, ada = w.LogIn(t, "op"), w.LogIn(t, "ada")
		rooms = map[*apptest.Client]string{op: rooms[op], ada: room}
		say(ada, 10, http.StatusInsufficientStorage)
		ada.Must(http.MethodGet, "/api/v1/conversations/"+room+"/messages", nil, http.StatusOK)
		if a := op.Must(http.MethodGet, "/readyz", nil, http.StatusServiceUnavailable); !strings.Contains(string(a.Body), "disk is full") {
			t.Errorf("/readyz says %s", a.Body)
		}
		op.Must(http.MethodDelete, "/api/v1/conversations/"+op.Conversation(), nil, http.StatusNoContent)
		if err := w.Control().SetUserDisabled(t.Context(), "ada", true); err != nil {
			t.Error(err)
		}
		if err := w.Control().SetUserDisabled(t.Context(), "ada", false); err != nil {
			t.Error(err)
		}
		w.Stop()
	}
	for _, name := range []string{"nearly", "full", "full again"} {
		if err := os.Remove(filepath.Join(disk, name)); err != nil {
			t.Fatal(err)
		}
	}
	w = apptest.Start(t, limits)
	room := rooms[ada]
	ada = w.LogIn(t, "ada")
	rooms = map[*apptest.Client]string{ada: room}
	say(ada, 20_000, http.StatusCreated)
	ada.Must(http.MethodGet, "/readyz", nil, http.StatusOK)
	if reserve() != 8<<20 {
		t.Errorf("the reserve has %d bytes after there was room", reserve())
	}
	if r, err := w.Control().Verify(t.Context()); err != nil || !r.OK() {
		t.Errorf("verify: %+v, %v", r, err)
	}
}
