package control_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agentsite/internal/control"
	"agentsite/internal/ident"
	"agentsite/internal/settings"
	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/filetest"
	"agentsite/store"
)

// readOnlyDir names the data folder that TestReadOnly_InNamespace makes read-only.
const readOnlyDir = "AGENTSITE_TEST_READ_ONLY"

// Operations that change nothing work on a folder on a read-only disk, also when a killed portal left
// messages in the write-ahead log. Permissions do not stop root, so a child process mounts the folder.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	p.Operator(t, "otto")
	for _, killed := range []bool{true, false} {
		names := []string{store.FileName, ident.PortalKeyFile, ident.SealKeyFile}
		if killed {
			names = append(names, store.FileName+"-wal")
		} else {
			p.Stop()
		}
		dir := filetest.CopyFiles(t, p.Dir, names...)
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestReadOnly_InNamespace$", "-test.v")
		cmd.Env = append(os.Environ(), readOnlyDir+"="+dir)
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
		if os.Getuid() != 0 {
			cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		}
		out, err := cmd.CombinedOutput()
		required := strings.Contains(os.Getenv("AGENTSITE_TEST_REQUIRE"), "mount")
		if required && (err != nil || strings.Contains(string(out), "--- SKIP")) {
			t.Fatalf("%v\n%s", err, out)
		}
		if err != nil && !strings.Contains(string(out), "RUN") {
			t.Skipf("this machine has no mount namespaces: %v", err)
		}
		if strings.Contains(string(out), "--- SKIP") {
			t.Skipf("%s", out)
		}
		if err != nil {
			t.Errorf("killed %v: %v\n%s", killed, err, out)
		}
	}
}

func TestReadOnly_InNamespace(t *testing.T) {
	dir := os.Getenv(readOnlyDir)
	if dir == "" {
		t.Skip("TestReadOnly runs this")
	}
	for _, flags := range []uintptr{syscall.MS_REC | syscall.MS_PRIVATE, syscall.MS_BIND, syscall.MS_BIND | syscall.MS_REMOUNT | syscall.MS_RDONLY} {
		target := dir
		if flags&syscall.MS_PRIVATE != 0 {
			target = "/"
		}
		if err := syscall.Mount(dir, target, "", flags, ""); err != nil {
			t.Skipf("mount: %v", err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o600); err == nil {
		t.Fatal("the folder can be written")
	}
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	cfg := settings.Defaults()
	cfg.Data = dir
	r, err := control.VerifyData(t.Context(), settings.Config{Data: dir})
	if err != nil || !r.OK() || r.Accounts != 1 {
		t.Errorf("verify: %+v %v", r, err)
	}
	c, err := control.OpenToRead(t.Context(), cfg, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if users, err := c.Users(t.Context()); err != nil || len(users) != 1 || users[0].Name != "otto" {
		t.Errorf("%v %v", users, err)
	}
	to := filepath.Join(t.TempDir(), "backup")
	if _, err := control.BackupTo(t.Context(), c, to, ""); err != nil {
		t.Error(err)
	}
	if _, err := control.BackupTo(t.Context(), c, to, ""); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("a second backup of the name: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	f, err := os.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if r, err := control.VerifyBackup(t.Context(), f, ""); err != nil || r.Accounts != 1 {
		t.Errorf("%+v %v", r, err)
	}
	d, err := control.Doctor(t.Context(), cfg, "", "", io.Discard)
	if err != nil || d.Healthy || !strings.Contains(d.Findings[len(d.Findings)-1].Text, "a copy of it was examined") {
		t.Errorf("%+v %v", d, err)
	}
	// A command that changes the folder is refused with the reason.
	if _, err := control.Open(t.Context(), cfg, false, io.Discard); err == nil || !strings.Contains(err.Error(), "Nothing can be written into the data folder") {
		t.Error(err)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("%v were left: %v", left, err)
	}
}
