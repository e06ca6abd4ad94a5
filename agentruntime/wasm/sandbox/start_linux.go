package sandbox

import (
	"bytes"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// namespaces are those that a child gets if the kernel allows it: no network but an empty one, no other processes.
const namespaces = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC

// nice is the priority of children, so that the portal and its people come first.
const nice = 10

// prepareCommand puts a command into a process group of its own and, with isolate, into namespaces of its own.
func prepareCommand(cmd *exec.Cmd, isolate bool) {
	// Go closes its own descriptors in children, but not those that this process inherited. The call fails before Linux
	// 5.11 only; then such descriptors of the program that started the portal are inherited further.
	_ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if !isolate {
		return
	}
	cmd.SysProcAttr.Cloneflags = namespaces
	// The process is root in its namespace, which is this user outside.
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
}

// startLow starts a command with a low priority, which its threads inherit from the thread that starts it. That thread
// ends, because it cannot raise its own priority again. A failure to lower it costs only fairness.
func startLow(cmd *exec.Cmd) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, nice)
		started <- cmd.Start()
	}()
	return <-started
}

// killGroup kills a process and all that it started.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) } // it may be gone already

// residentBytes returns the memory that a process has in use, 0 if it cannot be read.
func residentBytes(pid int) int64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(b)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
