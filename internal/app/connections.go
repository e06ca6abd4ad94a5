package app

import (
	"slices"
	"syscall"

	"agentsite/handlers/request"
	"agentsite/internal/doctor"
	"agentsite/internal/settings"
	"agentsite/web"
)

// connectionLimits are the limits of a portal's connections by the part that enforces each.
type connectionLimits struct {
	clients web.ConnectionLimits
	held    request.ConnectionLimits
	// links bounds the connected programs of all accounts, linksPerAccount those of one.
	links, linksPerAccount int
}

// newConnectionLimits divides the file descriptors of the process. Half are for clients; the rest is for
// databases, the control socket, outgoing calls and refused connections. Half of the clients' may be
// sockets, streams and waiting calls and a quarter linked programs, so that short requests always have a
// quarter.
func newConnectionLimits(set settings.Settings, descriptors int) connectionLimits {
	b := set.Bounds.Connections
	all := min(int(b.All), max(descriptors/2, 1))
	exempt := slices.Concat(settings.LoopbackRanges, set.AllowedNets)
	l := connectionLimits{links: max(all/4, 1)}
	l.linksPerAccount = min(int(b.LinksPerAccount), max(l.links/2, 1))
	perAddress := min(int(b.PerAddress), max(all/4, 1))
	// A proxy connects for many clients. Their addresses count in held, which knows them.
	l.clients = web.ConnectionLimits{All: all, PerAddress: perAddress, Exempt: slices.Concat(exempt, set.Proxies)}
	l.held = request.ConnectionLimits{All: max(all/2, 1), PerAddress: perAddress,
		Sockets: int(b.SocketsPerAccount), Streams: int(b.StreamsPerAccount), Exempt: exempt}
	return l
}

// maxDescriptors is the value for a process without a limit.
const maxDescriptors = 1 << 20

// readDescriptorLimit returns how many file descriptors the process may have open. Go has raised the soft
// limit to the hard one when the process started.
func readDescriptorLimit() (int, error) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return maxDescriptors, err
	}
	return int(min(uint64(l.Cur), maxDescriptors)), nil
}

// checkDescriptors warns if few file descriptors leave few connections.
func (p *Portal) checkDescriptors() {
	if p.descriptors < doctor.FewDescriptors {
		p.log.Warn("the process may open few files, so there are few connections; raise the limit: LimitNOFILE in "+
			"the systemd unit, or ulimit -n", "descriptors", p.descriptors, "connections", p.limits.clients.All,
			"enough", doctor.FewDescriptors)
	}
}
