package store

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/store/agents"
	"agentsite/store/engine"
)

// Pictures that no version of an agent has are forgotten after a day, by and
// by; those that one has never.
func TestPutIcon_ForgetsUnused(t *testing.T) {
	t.Parallel()
	d := openTest(t, t.TempDir())
	put := func(text string) string {
		t.Helper()
		hash := agents.IconHash([]byte(text))
		if err := d.PutIcon(t.Context(), hash, []byte(text)); err != nil {
			t.Fatal(err)
		}
		return hash
	}
	there := func(hash, text string) bool {
		t.Helper()
		b, err := d.Icon(t.Context(), hash)
		if err != nil && !fault.Is(err, fault.NotFound) {
			t.Fatal(err)
		}
		return err == nil && bytes.Equal(b, []byte(text))
	}
	used, before, unused := put("used"), put("before"), put("unused")
	a := hub.Agent{ID: "g1", Name: "helper", Kind: hub.Link, Visibility: hub.Public, Version: 1, Icon: before, CreatedAt: clock.Now(), UpdatedAt: clock.Now()}
	if err := d.CreateAgent(t.Context(), a, nil); err != nil {
		t.Fatal(err)
	}
	a.Version, a.Icon = 2, used
	if err := d.UpdateAgent(t.Context(), a, 1, nil, ident.Actor{}); err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		put(fmt.Sprint("young ", i))
	}
	if !there(unused, "unused") {
		t.Fatal("forgotten at once")
	}
	if err := d.Write(t.Context(), func(t engine.Tx) error {
		_, err := t.Exec(`UPDATE icons SET created_at = ?`, clock.Milli(clock.Now().Add(-25*time.Hour)))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	again := put("young 7") // put anew, it is as good as new
	const puts = 400
	for i := range puts {
		put(fmt.Sprint("new ", i))
	}
	var n int
	if err := d.Get(t.Context(), &n, `SELECT COUNT(*) FROM icons`); err != nil {
		t.Fatal(err)
	}
	if n < puts+3 || n > puts+10 { // at the end of the hashes one may be left
		t.Errorf("%d pictures are left of %d", n, puts+3)
	}
	if !there(used, "used") || !there(before, "before") || !there(again, "young 7") {
		t.Error("a picture in use was forgotten")
	}
	if err := d.PutIcon(t.Context(), used, []byte("another")); !fault.Is(err, fault.Invalid) {
		t.Error(err)
	}
	big := make([]byte, 131073)
	if err := d.PutIcon(t.Context(), agents.IconHash(big), big); !fault.Is(err, fault.Invalid) {
		t.Error(err)
	}
	if r, err := d.Verify(t.Context()); err != nil || !r.OK() {
		t.Errorf("%+v %v", r, err)
	}
}
