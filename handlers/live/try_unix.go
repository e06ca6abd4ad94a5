//go:build unix

package live

import (
	"net"
	"syscall"
)

// attempt writes as many bytes as a connection accepts without blocking.
type attempt struct {
	conn syscall.RawConn
	b    []byte
	n    int
	err  error
}

// newAttempt returns nil for connections on which every write may block, such as those of TLS.
func newAttempt(c net.Conn) *attempt {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	return &attempt{conn: raw}
}

func (a *attempt) once(fd uintptr) bool {
	for {
		a.n, a.err = syscall.Write(int(fd), a.b)
		switch a.err {
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			a.n, a.err = 0, nil
		}
		return true // true: the runtime must not wait until the connection is writable
	}
}

// try writes b without blocking and returns the number of accepted bytes. Only one goroutine may call it
// at a time.
func (a *attempt) try(b []byte) (int, error) {
	a.b = b
	err := a.conn.Write(a.once)
	a.b = nil
	if err == nil {
		err = a.err
	}
	if err != nil {
		return 0, err
	}
	return a.n, nil
}
