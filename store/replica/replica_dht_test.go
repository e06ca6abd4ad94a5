package replica_test

import (
	"slices"
	"testing"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
	"agentsite/internal/testing/storetest"
)

func TestReplica_KeepsTheDHT(t *testing.T) {
	t.Parallel()
	r := storetest.Replica(t, t.TempDir(), recordtest.NewPortal("own").ID, recordtest.Network)
	ctx := t.Context()
	hash := func(b byte) (h record.Hash) { h[0] = b; return h }
	all := []federation.DHTNode{{ID: hash(3), Node: []byte("three")}, {ID: hash(1)}, {ID: hash(2), Node: []byte("two")}}
	for range 2 { // the second replaces the first
		if err := r.KeepDHTNodes(ctx, all); err != nil {
			t.Fatal(err)
		}
	}
	got, err := r.DHTNodes(ctx)
	if err != nil || len(got) != 3 || got[0].ID != hash(3) || string(got[0].Node) != "three" || len(got[1].Node) != 0 {
		t.Fatalf("%v %v", got, err)
	}

	now := clock.Now()
	var more []federation.DHTRecord
	for i := range 600 { // more than a page
		more = append(more, federation.DHTRecord{Key: hash(byte(i)), Publisher: hash(byte(i / 256)), Expires: now.Add(time.Hour).UnixMilli(), Value: []byte{byte(i), byte(i / 256)}})
	}
	more[7].Expires = now.Add(-time.Second).UnixMilli()
	if err := r.KeepDHTRecords(ctx, more); err != nil {
		t.Fatal(err)
	}
	more[8].Value = []byte("newer")
	if err := r.KeepDHTRecords(ctx, more[8:9]); err != nil {
		t.Fatal(err)
	}
	held := func() (values [][]byte) {
		t.Helper()
		if err := r.DHTRecords(ctx, func(_ record.Hash, v []byte) bool { values = append(values, v); return true }); err != nil {
			t.Fatal(err)
		}
		return values
	}
	if v := held(); len(v) != 599 || !slices.ContainsFunc(v, func(b []byte) bool { return string(b) == "newer" }) {
		t.Fatalf("%d records are held", len(v))
	}
	if err := r.ForgetDHT(ctx, hash(1)); err != nil {
		t.Fatal(err)
	}
	if n := len(held()); n != 599-256 {
		t.Errorf("%d records are left", n)
	}
	if got, err := r.DHTNodes(ctx); err != nil || len(got) != 2 {
		t.Errorf("%v %v", got, err)
	}
}
