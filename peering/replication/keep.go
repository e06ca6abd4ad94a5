package replication

import (
	"bytes"
	"context"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

// logMemory is the memory of a gate that admits entries of one portal's log. Other portals are unknown
// to it, so that a log cannot bring in records of another portal.
type logMemory struct {
	federation.Replica
	portal record.PortalID
}

// Standing implements record.Memory.
func (m logMemory) Standing(ctx context.Context, id record.PortalID) (record.Standing, error) {
	if id != m.portal {
		return record.Standing{}, nil
	}
	return m.Replica.Standing(ctx, id)
}

// agentEnd is the end of an agent's envelope in its only valid form.
var agentEnd = []byte(`","t":"` + string(record.TypeAgent) + `"}`)

// keepEntries admits and keeps records of one portal's agents. There is a result for each; kept holds
// the new ones.
func (s *Syncer) keepEntries(ctx context.Context, portal record.PortalID, wires [][]byte) (kept []*record.Record,
	results []record.Result, err error) {
	gate, err := record.NewGate(s.Self.Network(), logMemory{s.Replica, portal})
	if err != nil {
		return nil, nil, err
	}
	results = make([]record.Result, len(wires))
	list, places := make([][]byte, 0, len(wires)), make([]int, 0, len(wires))
	for i, wire := range wires {
		if !bytes.HasSuffix(wire, agentEnd) {
			results[i].Err = &record.Refused{Reason: record.NotConsistent, Text: "a log holds agents of one portal"}
			continue
		}
		list, places = append(list, wire), append(places, i)
	}
	admitted, err := gate.AdmitAll(ctx, list, clock.Now())
	if err != nil {
		return nil, nil, err
	}
	for i, res := range admitted {
		results[places[i]] = res
		if res.Err == nil && res.Fresh {
			kept = append(kept, res.Record)
		}
	}
	return kept, results, nil
}
