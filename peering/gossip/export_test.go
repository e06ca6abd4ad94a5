package gossip

import (
	"bytes"

	"github.com/hashicorp/go-msgpack/v2/codec"

	"agentsite/internal/record"
)

// IsBrief reports whether a body is a state that is written briefly.
func IsBrief(b []byte) bool { return len(b) > 0 && b[0] == briefMsg }

// Lies are bodies of requests by which a portal says of another that it is
// gone, in all ways that serf knows, as far up as it may and further.
func Lies(victim, from record.PortalID) [][]byte {
	say := func(kind byte, body any) []byte {
		b := bytes.NewBuffer([]byte{kind})
		if err := codec.NewEncoder(b, &codec.MsgpackHandle{}).Encode(body); err != nil {
			panic(err)
		}
		return b.Bytes()
	}
	var packets [][]byte
	for _, n := range []uint32{1<<32 - 1, 3, 1} {
		for _, by := range []record.PortalID{from, victim} { // a dead one that says so itself has left
			packets = append(packets, say(suspectMsg, &goneBody{n, string(victim), string(by)}), say(deadMsg, &goneBody{n, string(victim), string(by)}))
		}
	}
	for _, at := range []uint64{1<<64 - 1, maxLamport, 100, 5, 1} {
		packets = append(packets, append([]byte{userMsg}, say(serfLeave, &intentBody{LTime: at, Node: string(victim)})...),
			append([]byte{userMsg}, say(serfLeave, &intentBody{LTime: at, Node: string(victim), Prune: true})...))
	}
	return [][]byte{joinFrames(packets)}
}
