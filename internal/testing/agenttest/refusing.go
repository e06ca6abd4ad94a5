package agenttest

import (
	"net"
	"testing"
)

// Refusing returns the address, host:port, of a loopback port that refuses connections until the test
// ends. The port belongs to the client end of an open connection: nothing listens on it, and unlike the
// port of a closed listener it cannot be given to another program.
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
