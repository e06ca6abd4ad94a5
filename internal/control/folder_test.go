package control_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"agentsite/internal/control"
)

func TestLockData_HoldsWithoutItsFile(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	lock, err := control.LockData(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	if err := os.Remove(filepath.Join(dir, "lock")); err != nil {
		t.Fatal(err)
	}
	if _, err := control.LockData(dir); !errors.Is(err, control.ErrInUse) {
		t.Errorf("a second process comes in when the file is removed: %v", err)
	}
	if err := lock.CheckPlace(); err != nil {
		t.Error(err)
	}
	if err := os.Rename(dir, dir+"-moved"); err != nil {
		t.Fatal(err)
	}
	other, err := control.LockData(dir) // another folder, which nobody uses
	if err != nil {
		t.Fatal(err)
	}
	defer other.Release()
	if err := lock.CheckPlace(); err == nil || !strings.Contains(err.Error(), "moved, replaced or deleted") {
		t.Error(err)
	}
	if _, err := control.LockData(dir + "-moved"); !errors.Is(err, control.ErrInUse) {
		t.Error(err)
	}
}

// A portal of an older version locks the file alone.
func TestLockData_LocksTheFileToo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lock, err := control.LockData(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	// The same file in another folder stands for a process that does not know of the folder's lock.
	elsewhere := t.TempDir()
	if err := os.Link(filepath.Join(dir, "lock"), filepath.Join(elsewhere, "lock")); err != nil {
		t.Fatal(err)
	}
	if _, err := control.LockData(elsewhere); !errors.Is(err, control.ErrInUse) {
		t.Error(err)
	}
}

// A released folder is free although a process that is being started still has copies of the descriptors.
func TestLockData_IsReleasedWithCopies(t *testing.T) {
	dir := t.TempDir()
	lock, err := control.LockData(dir)
	if err != nil {
		t.Fatal(err)
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no list of descriptors: ", err)
	}
	var locked []int // listed before the first copy is made, which the list may otherwise contain
	for _, fd := range fds {
		to, err := os.Readlink("/proc/self/fd/" + fd.Name())
		if n, nerr := strconv.Atoi(fd.Name()); err == nil && nerr == nil && (to == dir || to == filepath.Join(dir, "lock")) {
			locked = append(locked, n)
		}
	}
	if len(locked) != 2 {
		t.Fatalf("%d descriptors are open", len(locked))
	}
	for _, n := range locked {
		c, err := syscall.Dup(n)
		if err != nil {
			t.Fatal(err)
		}
		defer syscall.Close(c)
	}
	lock.Release()
	again, err := control.LockData(dir)
	if err != nil {
		t.Fatal(err)
	}
	again.Release()
}
