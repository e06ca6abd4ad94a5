package liveness_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/testing/racetest"
	"agentsite/internal/testing/storetest"
)

func TestOwners_AreToldOnceAndWhenItIsBack(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bubble) {
		const address = "https://good.example/v1"
		a := b.publish("helper", address)
		bob := storetest.Account(t, b.db, "bob")
		if err := b.db.AddCoOwner(t.Context(), a.ID, bob.ID); err != nil {
			t.Fatal(err)
		}
		b.far.set("never.example", gone)
		b.publish("broken", "https://never.example/v1") // was never alive: its owner knows
		b.pass(3 * time.Hour)
		b.far.set(address, hub.Unreachable)
		b.pass(time.Hour)
		// A restart does not tell anybody again.
		b.stop()
		b.start()
		b.pass(5 * time.Hour)
		told := b.told()
		if len(told) != 1 || !strings.HasPrefix(told[0], "down: helper could not be reached since 1 January, 03:") || !strings.HasSuffix(told[0], " UTC. It is unreachable.") {
			t.Fatalf("%q", told)
		}
		b.far.set(address, hub.Alive)
		b.pass(3 * time.Hour)
		if told = b.told(); len(told) != 2 || !strings.HasPrefix(told[1], "up: helper is back after ") || !strings.HasSuffix(told[1], " hours.") {
			t.Errorf("%q", told)
		}
		if list, err := b.db.Notices(t.Context(), bob.ID, 10); err != nil || len(list) != 2 || list[0].Subject != "helper" || list[0].Href != "/agents/helper" {
			t.Errorf("the co-owner: %v %v", list, err)
		}
		// A moment of trouble is no news.
		b.far.set(address, gone)
		for len(b.far.contacts(address)) == 0 || b.agent("helper").Liveness.State == hub.Alive {
			b.pass(time.Second)
		}
		b.far.set(address, hub.Alive)
		b.pass(time.Hour)
		if n := len(b.told()); n != 2 {
			t.Errorf("a hiccup is told: %q", b.told()[2:])
		}
		for i, state := range []hub.Live{hub.NeedsAuth, hub.WrongProtocol} {
			b.far.set(address, state)
			b.pass(time.Hour)
			b.far.set(address, hub.Alive)
			b.pass(3 * time.Hour)
			told := b.told()[2+2*i:]
			want := map[hub.Live]string{hub.NeedsAuth: "down: helper has refused this portal since", hub.WrongProtocol: "down: helper has not been speaking its protocol since"}[state]
			if len(told) != 2 || !strings.HasPrefix(told[0], want) {
				t.Errorf("%s: %q", state, told)
			}
		}
	})
}

func TestOwners_AreNotFloodedByAnAgentThatComesAndGoes(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bubble) {
		const address = "https://flap.example/v1"
		a := b.publish("flap", address)
		b.pass(time.Hour)
		for i := range 60 { // five minutes down, five minutes up
			state := hub.Unreachable
			if i%2 == 1 {
				state = hub.Alive
			}
			b.far.set(address, state)
			for range 5 {
				if err := b.db.DueAt(t.Context(), a.ID, clock.Now()); err != nil {
					t.Fatal(err)
				}
				b.pass(time.Minute)
			}
		}
		told := b.told()
		if len(told) < 6 || len(told) > 10 {
			t.Errorf("%d notices in five hours", len(told))
		}
		for i, text := range told {
			if want := []string{"down:", "up:"}[i%2]; !strings.HasPrefix(text, want) {
				t.Errorf("notice %d: %s", i, text)
			}
		}
	})
}

func TestOwners_OfALinkedAgentAreToldAfterTenMinutes(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bubble) {
		name, kind := "mine", hub.Link
		a, err := b.Publish(t.Context(), b.ada, hub.Draft{Name: &name, Kind: &kind, Description: ptr("It is at home.")})
		if err != nil {
			t.Fatal(err)
		}
		is := func(state hub.Live) {
			b.Observe(t.Context(), a.ID, hub.Liveness{State: state, Reason: "So it is.", CheckedAt: clock.Now()})
		}
		is(hub.Alive)
		b.pass(time.Hour)
		is(hub.Unreachable)
		b.pass(9 * time.Minute)
		is(hub.Alive)
		b.pass(time.Hour)
		if told := b.told(); len(told) != 0 {
			t.Fatalf("nine minutes are told: %q", told)
		}
		is(hub.Unreachable)
		b.pass(9 * time.Minute)
		is(hub.Unreachable) // seen again, as after a restart
		b.pass(50 * time.Second)
		if told := b.told(); len(told) != 0 {
			t.Fatalf("told early: %q", told)
		}
		b.pass(time.Hour)
		if told := b.told(); len(told) != 1 || !strings.HasPrefix(told[0], "down: mine has not been connected since 1 January, ") {
			t.Fatalf("%q", told)
		}
		b.stop()
		b.start()
		is(hub.Unreachable)
		b.pass(time.Hour)
		is(hub.Alive)
		b.pass(time.Minute)
		if told := b.told(); len(told) != 2 || told[1] != "up: mine is back after 2 hours." {
			t.Fatalf("%q", told)
		}
		if l := b.agent("mine").Liveness; l.State != hub.Alive {
			t.Error(l)
		}
	})
}

func TestLearn_WhatACardSays(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bubble) {
		kind := hub.A2A
		a := b.publish("late", "https://card.example/a2a", func(d *hub.Draft) { d.Kind, d.Config = &kind, nil })
		if a.Version != 1 {
			t.Fatal(a.Version)
		}
		b.pass(time.Minute)
		b.reader.set(hub.Described{Kind: hub.A2A, Endpoint: "https://card.example/rpc", Config: json.RawMessage(`{"binding":"JSONRPC","version":"1.0"}`),
			Skills: []hub.Skill{{ID: "x", Name: "X"}}, InputModes: []string{"text/plain", "image/png"}, OutputModes: []string{"text/plain"}}, nil)
		b.pass(10 * time.Minute)
		a = b.agent("late")
		if a.Version != 2 || a.Note != "" && a.Note != "Learnt from its card" || a.Endpoint != "https://card.example/rpc" || len(a.Skills) != 1 || len(a.InputModes) != 2 || len(a.OutputModes) != 1 {
			t.Errorf("%+v", a)
		}
		if list, _, err := b.Versions(t.Context(), b.ada, "late", 0); err != nil || list[0].Note != "Learnt from its card" || list[0].Author != "" {
			t.Errorf("%+v %v", list, err)
		}
		reads := b.reader.reads()
		b.skip(2)
		if b.agent("late").Version != 2 || b.reader.reads() != reads {
			t.Errorf("version %d, read %d times more", b.agent("late").Version, b.reader.reads()-reads)
		}
	})
}

func TestLearn_ToolsOnceADay(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bubble) {
		tools := func(names ...string) hub.Described {
			conf := hub.MCPConfig{Version: "2026-07-28", Server: "kit 1"}
			d := hub.Described{Kind: hub.MCP, Endpoint: "https://tools.example/mcp"}
			for _, n := range names {
				conf.Tools = append(conf.Tools, hub.Tool{Name: n, InputSchema: json.RawMessage(`{"type":"object"}`)})
				d.Skills = append(d.Skills, hub.Skill{ID: n, Name: n})
			}
			d.Config, _ = json.Marshal(conf)
			return d
		}
		kind := hub.MCP
		b.publish("kit", "https://tools.example/mcp", func(d *hub.Draft) {
			d.Kind, d.Config = &kind, map[string]json.RawMessage{"auth_header": json.RawMessage(`"X-Key"`)}
			d.Skills = &[]hub.Skill{{ID: "own", Name: "The owner's words"}}
		})
		b.reader.set(tools("add", "sub"), nil)
		b.pass(10 * time.Minute)
		a := b.agent("kit")
		if a.Version != 2 || len(a.Skills) != 3 {
			t.Fatalf("version %d: %+v", a.Version, a.Skills)
		}
		reads := b.reader.reads()
		b.skip(10)
		if n := b.reader.reads() - reads; n != 10 || b.agent("kit").Version != 2 {
			t.Errorf("read %d times in ten days, version %d", n, b.agent("kit").Version)
		}
		reads = b.reader.reads()
		b.pass(24 * time.Hour)
		if n := b.reader.reads() - reads; n != 1 {
			t.Errorf("read %d times in a whole day", n)
		}
		b.reader.set(tools("add", "mul"), nil)
		b.skip(1)
		list, _, err := b.Versions(t.Context(), b.ada, "kit", 0)
		if err != nil || len(list) != 3 || list[0].Note != "Its tools changed: added mul; removed sub" {
			t.Fatalf("%+v %v", list, err)
		}
		var names []string
		for _, s := range b.agent("kit").Skills {
			names = append(names, s.ID)
		}
		if got := fmt.Sprint(names); got != "[own add mul]" {
			t.Error(got)
		}
		var conf hub.MCPConfig
		if json.Unmarshal(b.agent("kit").Config, &conf) != nil || conf.AuthHeader != "X-Key" || len(conf.Tools) != 2 {
			t.Errorf("%+v", conf)
		}
		// One that cannot be read changes nothing.
		b.reader.set(hub.Described{}, fault.New(fault.Invalid, "no"))
		b.skip(2)
		if b.agent("kit").Version != 3 {
			t.Error("it forgot its tools")
		}
	})
}

func TestProof_EndsAfterFiveLooks(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bubble) {
		looks := func() int {
			b.witness.mu.Lock()
			defer b.witness.mu.Unlock()
			return b.witness.asked
		}
		b.publish("helper", "https://good.example/v1")
		if _, err := b.Proofs.Prove(t.Context(), b.ada, "helper"); err != nil {
			t.Fatal(err)
		}
		b.skip(5)
		b.pass(25 * time.Hour)
		proof := b.agent("helper").Proof
		if proof.State != hub.Proved || time.Since(proof.At) > 2*time.Hour || looks() < 5 || looks() > 7 {
			t.Errorf("%+v after %d looks", proof, looks())
		}
		b.witness.mu.Lock()
		b.witness.asked, b.witness.err = 0, fault.New(fault.Invalid, "There is no token.")
		b.witness.mu.Unlock()
		at := proof.At
		for b.agent("helper").Proof.State == hub.Proved && time.Since(at) < 10*24*time.Hour {
			b.pass(30 * time.Minute)
		}
		if took := time.Since(at); took < 72*time.Hour || took > 80*time.Hour || looks() != 5 {
			t.Errorf("it ended after %v and %d looks", took, looks())
		}
		if told := b.told(); len(told) != 1 || told[0] != "proof: https://good.example no longer shows that you may list helper, so it is shown as unproven. There is no token." {
			t.Errorf("%q", told)
		}
		b.skip(2)
		if looks() != 5 {
			t.Error("what has no proof is looked at")
		}
	})
}
