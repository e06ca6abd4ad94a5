//go:build !linux

package web

import "net"

// boundUnsent does nothing: only Linux has a bound for unsent bytes alone.
func boundUnsent(net.Conn) {}
