package guest

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"agentsite/agentruntime/wasm/frame"
)

// maxFiles bounds the descriptors of the process: three pipes, those of Go's poller, and the cache.
const maxFiles = 32

// lockDown gives up all that running a program does not need. In namespaces of its own the process shuts itself into
// the folder of the cache and drops all capabilities. It returns the protections that hold.
func lockDown(set *frame.Settings) (guards []string, err error) {
	limits := map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_NOFILE: maxFiles}
	if set.DataBytes > 0 {
		limits[unix.RLIMIT_DATA] = set.DataBytes
	}
	for which, most := range limits {
		if err := unix.Setrlimit(which, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return nil, err
		}
	}
	guards = append(guards, frame.GuardLimits)
	if set.Isolated && set.Cache != "" {
		if err := shutIn(set); err != nil {
			return nil, err
		}
		guards = append(guards, frame.GuardNetwork, frame.GuardProcesses, frame.GuardFolder)
	}
	switch err := dropPrivileges(); {
	case err == nil:
		guards = append(guards, frame.GuardPrivileges)
	case !errors.Is(err, syscall.ENOTSUP): // a binary with C code cannot change all of its threads
		return nil, err
	}
	return guards, nil
}

func shutIn(set *frame.Settings) error {
	if err := os.MkdirAll(set.Cache, 0o700); err != nil {
		return err
	}
	if err := unix.Chroot(set.Cache); err != nil {
		return err
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	set.Cache = "/"
	return nil
}

// dropPrivileges empties the sets of capabilities of all threads and forbids to gain others. Code that escapes into a
// process that is root in its namespace could otherwise leave the folder again.
func dropPrivileges() error {
	if _, _, e := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); e != 0 {
		return e
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return allThreads(unix.SYS_CAPSET, &head, &data)
}
