package web

import (
	"net"
	"syscall"
)

// boundUnsent bounds the bytes that the kernel keeps unsent for a connection. The write of an answer then returns
// as its reader receives it; without the bound, a slow reader frees hundreds of kilobytes at once after
// minutes, and looks like one that stands still.
func boundUnsent(c net.Conn) {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return
	}
	// An error leaves the bound of the system, which is only less exact.
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpNotSentLowat, maxUnsent)
	})
}

const (
	tcpNotSentLowat = 25 // TCP_NOTSENT_LOWAT, which package syscall does not have
	maxUnsent       = 64 << 10
)
