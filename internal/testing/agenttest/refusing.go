package agenttest

import (
	"net"
	"testing"
)

// Refusing returns the address, host:port, of a loopback port that refuses
// connections until the test ends. It is the near end of a connection: nobody
// listens there, and nobody else is given it meanwhile, as the port of a
// listener that was closed may be.
func Refusing(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		near.Close()
		far.Close()
	})
	return near.LocalAddr().String()
}
