package settings

// ConnectionLimits bound the connections that clients hold open. The limits per account hold for the guests
// of one address as well.
type ConnectionLimits struct {
	// All bounds the open connections of all clients. Half of the process's file descriptors bounds them
	// too.
	All int64
	// PerAddress bounds the connections of one IPv4 address or IPv6 /64. Loopback and the addresses of
	// --allow-cidr are exempt.
	PerAddress int64
	// SocketsPerAccount and StreamsPerAccount bound WebSockets and event streams of conversations.
	SocketsPerAccount, StreamsPerAccount int64
	// LinksPerAccount bounds the programs that are connected at /link for one account, and
	// StrangersPerAddress those connections of one address that have not sent a token.
	LinksPerAccount, StrangersPerAddress int64
}

// defaultConnectionLimits returns limits with room for many pages of one person and many people behind
// one address. 20,000 connections take about 500 MiB.
func defaultConnectionLimits() ConnectionLimits {
	return ConnectionLimits{All: 20_000, PerAddress: 512, SocketsPerAccount: 64, StreamsPerAccount: 64,
		LinksPerAccount: 1100, StrangersPerAddress: 64}
}

func (c *ConnectionLimits) list() []Limit {
	return []Limit{
		{"connections", UnitCount, 16, 1_000_000, &c.All},
		{"connections-per-address", UnitCount, 2, 1_000_000, &c.PerAddress},
		{"sockets-per-account", UnitCount, 1, 1_000_000, &c.SocketsPerAccount},
		{"streams-per-account", UnitCount, 1, 1_000_000, &c.StreamsPerAccount},
		{"links-per-account", UnitCount, 1, 1_000_000, &c.LinksPerAccount},
		{"links-per-address", UnitCount, 1, 1_000_000, &c.StrangersPerAddress},
	}
}
