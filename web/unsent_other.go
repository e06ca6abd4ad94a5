//go:build !linux

package web

import "net"

// boundUnsent does nothing: only Linux bounds what is unsent apart from what is under way.
func boundUnsent(net.Conn) {}
