package record_test

import (
	"bytes"
	"testing"
	"time"

	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

func TestOpenCard_ChecksWhatNeedsNoMemory(t *testing.T) {
	t.Parallel()
	p := recordtest.NewPortal("one")
	card := p.Sign(t, p.Card())
	if c, err := record.OpenCard(recordtest.Network, card.Wire, recordtest.Start); err != nil || c.Portal != p.ID {
		t.Fatal(c, err)
	}
	forged, err := record.Sign(recordtest.Network, card.Body, recordtest.Key("x"))
	if err != nil {
		t.Fatal(err)
	}
	bent := bytes.Clone(card.Wire)
	at := bytes.Index(bent, []byte(`"s":"`)) + 5
	bent[at] ^= 1 // another digit
	for what, c := range map[string]struct {
		network string
		wire    []byte
		now     time.Time
		want    record.Reason
	}{
		"of another root key": {recordtest.Network, forged.Wire, recordtest.Start, record.NoKey},
		"of another network":  {"elsewhere", card.Wire, recordtest.Start, record.BadSignature},
		"over":                {recordtest.Network, card.Wire, recordtest.Start.Add(91 * 24 * time.Hour), record.Expired},
		"to come":             {recordtest.Network, card.Wire, recordtest.Start.Add(-time.Hour), record.FromFuture},
		"bent":                {recordtest.Network, bent, recordtest.Start, record.BadSignature},
		"no card":             {recordtest.Network, p.Sign(t, p.Agent("x")).Wire, recordtest.Start, record.BadField},
	} {
		if _, err := record.OpenCard(c.network, c.wire, c.now); record.ReasonOf(err) != c.want {
			t.Errorf("%s: %v", what, err)
		}
	}
}
