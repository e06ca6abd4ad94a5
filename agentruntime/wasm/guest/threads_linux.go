package guest

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// allThreads makes a system call that takes the capabilities of a thread on every thread of the process.
func allThreads(call uintptr, head *unix.CapUserHeader, data *[2]unix.CapUserData) error {
	_, _, e := syscall.AllThreadsSyscall(call, uintptr(unsafe.Pointer(head)), uintptr(unsafe.Pointer(data)), 0)
	runtime.KeepAlive(head)
	runtime.KeepAlive(data)
	if e != 0 {
		return e
	}
	return nil
}
