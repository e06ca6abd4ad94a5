package app

import (
	"agentsite/handlers/peer"
	"agentsite/internal/federation/archive"
	"agentsite/internal/record"
	"agentsite/peering/replication"
)

// follow makes the portal keep what others sign, hand it on, and tell them of
// its own. It comes after find, whose catalog is told of what is held.
func (f *federated) follow() error {
	trees := archive.NewTrees(f.p.replica)
	var err error
	f.syncer, err = replication.New(replication.Config{Self: f.self, Caller: f.client, Replica: f.p.replica, Registry: f.peers, Trees: trees,
		Directory: f.catalog, News: f.peers.Changed, Tiers: f.tiers, Summaries: f.summaries, Ahead: f.ahead, OwnCard: f.self.Saw, Log: f.p.log})
	if err != nil {
		return err
	}
	f.archive = archive.New(f.p.set.network, f.id, f.p.replica, f.peers, trees)
	peer.NewRecords(f.archive, f.syncer).Routes(f.door)
	f.led = func([]byte) { f.syncer.Published() }
	f.run = append(f.run, f.syncer.Run)
	return nil
}

// ahead says that others have heads of this portal that it has not, and has it
// begin a new count, so that what is signed from now on is newer than those.
func (f *federated) ahead(head record.Version) {
	if f.p.publisher.Overtaken(head) {
		f.p.log.Warn("others hold a newer head of this portal than it has: its folder is a copy of an older state, or it runs twice; it begins a new count. Stop the other one if there is one",
			"epoch", head.Epoch, "seq", head.Seq)
	}
}
