package gossip

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"log/slog"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/serf/serf"

	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

// Portals of the tests; what they show is their contact where holds has it.
var me, honest, liar = recordtest.NewPortal("me"), recordtest.NewPortal("honest"), recordtest.NewPortal("liar")

func testGuard() *guard {
	g := newGuard(Config{Self: me.ID, Log: slog.New(slog.DiscardHandler), Check: func(_ context.Context, _ record.PortalID, wire []byte) (*record.Contact, error) {
		for _, p := range []*recordtest.Portal{me, honest, liar} {
			if string(wire) == "signed again by "+string(p.ID) {
				return &record.Contact{Header: record.Header{Portal: p.ID, Seq: 1, Expires: time.Now().Add(time.Hour).UnixMilli()}, Host: "x.example", Port: 443}, nil
			}
			if string(wire) == "signed by "+string(p.ID) {
				return &record.Contact{Header: record.Header{Portal: p.ID, Expires: time.Now().Add(time.Hour).UnixMilli()}, Host: "x.example", Port: 443}, nil
			}
		}
		return nil, errors.New("not signed")
	}})
	g.count, g.full = new(counters), func() bool { return false }
	return g
}

// message is one of memberlist's or serf's.
func message(kind byte, body any) []byte {
	b := bytes.NewBuffer([]byte{kind})
	if err := codec.NewEncoder(b, &codec.MsgpackHandle{}).Encode(body); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func user(kind byte, body any) []byte { return append([]byte{userMsg}, message(kind, body)...) }

// tags are those of a member that shows a contact.
func tags(contact string) []byte {
	return message(tagsMagic, map[string]string{contactTag: contact})
}

func alive(p, shows *recordtest.Portal, change func(*aliveBody)) []byte {
	a := aliveBody{Incarnation: 1, Node: string(p.ID), Addr: addressOf(string(p.ID)), Port: anyPort, Meta: tags("signed by " + string(shows.ID))}
	if change != nil {
		change(&a)
	}
	return message(aliveMsg, &a)
}

func compound(list ...[]byte) []byte {
	out := []byte{compoundMsg, byte(len(list))}
	for _, m := range list {
		out = binary.BigEndian.AppendUint16(out, uint16(len(m)))
	}
	return append(out, bytes.Join(list, nil)...)
}

func withCRC(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{crcMsg}, crc32.ChecksumIEEE(b)), b...)
}

// TestGuard_BoundsTheHintsOfOneMember has a liar make hints up, each another.
func TestGuard_BoundsTheHintsOfOneMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGuard()
		hint := func(mark uint64, seq int64) []byte {
			return user(serfEvent, &eventBody{LTime: 7, Name: headEvent, Payload: Hint{mark, record.Version{Epoch: 1, Seq: seq}}.encodeHint()})
		}
		passes := func(from *recordtest.Portal, mark uint64, seq int64) bool {
			return len(g.splitPacket(t.Context(), string(from.ID), hint(mark, seq))) == 1
		}
		lies := func(from int) (passed int) {
			for i := range 10_000 {
				if passes(liar, 1, int64(from+i)) {
					passed++
				}
			}
			return passed
		}
		if n := lies(0); n != hintBurst {
			t.Errorf("%d hints of a liar are handed on", n)
		}
		if !passes(liar, 1, 0) {
			t.Error("what is known already is refused, which others would bring too")
		}
		if !passes(honest, 2, 1) || !passes(honest, 1, 9_999) {
			t.Error("another member is kept from telling")
		}
		if !passes(liar, 2, 1) {
			t.Error("what an honest one told is refused when a liar brings it too")
		}
		time.Sleep(hintGap)
		if n := lies(20_000); n != 2*hintsOf {
			t.Errorf("%d more hints of a liar are handed on after a minute", n)
		}
	})
}

func TestGuard_LetsInOnlyWhatAnHonestMemberSays(t *testing.T) {
	hint := Hint{1, record.Version{Epoch: 1, Seq: 2}}.encodeHint()
	ping := func(from, to string) []byte {
		return message(pingMsg, &pingBody{SeqNo: 1, Node: to, SourceNode: from})
	}
	for name, c := range map[string]struct {
		packet []byte
		fit    int
	}{
		"a ping":                                {ping(string(liar.ID), string(me.ID)), 1},
		"a ping whose answer goes to another":   {ping(string(honest.ID), string(me.ID)), 0},
		"a ping for another":                    {ping(string(liar.ID), string(honest.ID)), 0},
		"a ping to hand on":                     {message(indirectPingMsg, &pingBody{Node: string(honest.ID), Target: addressOf(string(honest.ID)), Port: anyPort, SourceNode: string(liar.ID)}), 1},
		"one to somewhere else":                 {message(indirectPingMsg, &pingBody{Node: string(honest.ID), Target: []byte{127, 0, 0, 1}, Port: 22, SourceNode: string(liar.ID)}), 0},
		"one whose answer goes to another":      {message(indirectPingMsg, &pingBody{Node: string(honest.ID), Target: addressOf(string(honest.ID)), Port: anyPort, SourceNode: string(me.ID)}), 0},
		"an answer":                             {message(ackMsg, &struct{ SeqNo uint32 }{1}), 1},
		"one that is long":                      {append(message(ackMsg, &struct{ SeqNo uint32 }{1}), make([]byte, 300)...), 0},
		"alive":                                 {alive(honest, honest, nil), 1},
		"alive with what another signed":        {alive(honest, liar, nil), 0},
		"alive with nothing signed":             {alive(honest, honest, func(a *aliveBody) { a.Meta = tags("forged") }), 0},
		"alive without tags":                    {alive(honest, honest, func(a *aliveBody) { a.Meta = nil }), 0},
		"alive somewhere else":                  {alive(honest, honest, func(a *aliveBody) { a.Addr = addressOf(string(liar.ID)) }), 0},
		"alive at another port":                 {alive(honest, honest, func(a *aliveBody) { a.Port = 443 }), 0},
		"alive by a name that is no portal's":   {alive(honest, honest, func(a *aliveBody) { a.Node = "p1x" }), 0},
		"alive as nobody can be again":          {alive(honest, honest, func(a *aliveBody) { a.Incarnation = 1<<32 - 1 }), 0},
		"suspect":                               {message(suspectMsg, &goneBody{2, string(honest.ID), string(liar.ID)}), 1},
		"suspect as nobody can deny":            {message(suspectMsg, &goneBody{1<<32 - 1, string(honest.ID), string(liar.ID)}), 0},
		"dead as nobody can deny":               {message(deadMsg, &goneBody{1<<32 - 1, string(me.ID), string(liar.ID)}), 0},
		"dead, who is no portal":                {message(deadMsg, &goneBody{1, "x", string(liar.ID)}), 0},
		"a hint":                                {user(serfEvent, &eventBody{LTime: 5, Name: headEvent, Payload: hint}), 1},
		"one of another name":                   {user(serfEvent, &eventBody{LTime: 5, Name: "deploy", Payload: hint}), 0},
		"one that is none":                      {user(serfEvent, &eventBody{LTime: 5, Name: headEvent, Payload: []byte("hello")}), 0},
		"one from the end of time":              {user(serfEvent, &eventBody{LTime: 1<<64 - 1, Name: headEvent, Payload: hint}), 0},
		"somebody joins":                        {user(serfJoin, &intentBody{LTime: 5, Node: string(honest.ID)}), 1},
		"somebody leaves":                       {user(serfLeave, &intentBody{LTime: 5, Node: string(honest.ID)}), 1},
		"somebody is to be forgotten":           {user(serfLeave, &intentBody{LTime: 5, Node: string(honest.ID), Prune: true}), 0},
		"a query":                               {user(4, &struct{ LTime uint64 }{5}), 0},
		"a key":                                 {user(7, &struct{ Key []byte }{[]byte("k")}), 0},
		"a relayed message":                     {user(9, &struct{ DestName string }{string(honest.ID)}), 0},
		"a compressed message":                  {message(9, &struct{ Buf []byte }{make([]byte, 100)}), 0},
		"an encrypted message":                  {append([]byte{10}, make([]byte, 40)...), 0},
		"a state as a packet":                   {message(pushPullMsg, &stateHeader{}), 0},
		"several":                               {compound(alive(honest, honest, nil), ping(string(liar.ID), string(me.ID)), alive(me, honest, nil)), 3},
		"several of which one is bad":           {compound(alive(honest, honest, nil), alive(honest, liar, nil)), 1},
		"several within several":                {compound(compound(alive(honest, honest, nil))), 0},
		"several that are cut":                  {compound(alive(honest, honest, nil))[:40], 0},
		"with a sum":                            {withCRC(alive(honest, honest, nil)), 1},
		"with a wrong sum":                      {append(withCRC(alive(honest, honest, nil)), 0), 0},
		"a label":                               {append([]byte{244, 1, 'x'}, alive(honest, honest, nil)...), 0},
		"nothing":                               {nil, 0},
		"a body that ends early":                {alive(honest, honest, nil)[:20], 0},
		"a list longer than what it comes with": {append([]byte{aliveMsg}, 0xdd, 0xff, 0xff, 0xff, 0xff), 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := testGuard()
			if got := g.splitPacket(t.Context(), string(liar.ID), c.packet); len(got) != c.fit {
				t.Errorf("%d are fit, want %d", len(got), c.fit)
			}
			if refused := g.count.refused.Load(); (refused == 0) != (c.fit > 0 && name != "several of which one is bad") {
				t.Errorf("%d refused", refused)
			}
		})
	}
}

func TestGuard_NumbersGoUpInSteps(t *testing.T) {
	g := testGuard()
	from := string(liar.ID)
	say := func(n uint32) bool {
		return len(g.splitPacket(t.Context(), from, message(suspectMsg, &goneBody{n, string(honest.ID), from}))) == 1
	}
	at := func(n uint64) bool {
		return len(g.splitPacket(t.Context(), from, user(serfJoin, &intentBody{LTime: n, Node: from}))) == 1
	}
	if !say(3) || say(3+maxIncarnations+1) || !say(3+maxIncarnations) || say(maxIncarnation+1) {
		t.Error("a member's number may be anything")
	}
	if !at(7) || at(7+maxLamports+1) || !at(7+maxLamports) || at(maxLamport+1) {
		t.Error("the clock may be anything")
	}
}

// state is one of a pool.
func state(nodes []nodeState, s *serfState) []byte {
	b := bytes.NewBuffer([]byte{pushPullMsg})
	enc := codec.NewEncoder(b, &codec.MsgpackHandle{})
	var tail []byte
	if s != nil {
		tail = message(serfPushPull, s)
	}
	if err := enc.Encode(&stateHeader{len(nodes), len(tail), true}); err != nil {
		panic(err)
	}
	for i := range nodes {
		if err := enc.Encode(&nodes[i]); err != nil {
			panic(err)
		}
	}
	return append(b.Bytes(), tail...)
}

func nodeOf(p, shows *recordtest.Portal) nodeState {
	return nodeState{Name: string(p.ID), Addr: addressOf(string(p.ID)), Port: anyPort, Meta: tags("signed by " + string(shows.ID)), Incarnation: 1, Vsn: []byte{1, 5, 2, 2, 5, 4}}
}

func TestGuard_TakesOfAStateWhatIsFit(t *testing.T) {
	g := testGuard()
	forged, far := nodeOf(honest, liar), nodeOf(liar, liar)
	far.Incarnation = 1 << 31
	in := state([]nodeState{nodeOf(honest, honest), forged, far, nodeOf(me, me)}, &serfState{LTime: 4, StatusLTimes: map[string]uint64{string(honest.ID): 3, "x": 4, string(liar.ID): 1 << 63},
		LeftMembers: []string{string(honest.ID), "x", string(liar.ID)}, EventLTime: 2, QueryLTime: 1 << 63})
	out, _, err := g.take(t.Context(), string(liar.ID), in)
	if err != nil {
		t.Fatal(err)
	}
	want := state([]nodeState{nodeOf(honest, honest), nodeOf(me, me)}, &serfState{LTime: 4, StatusLTimes: map[string]uint64{string(honest.ID): 3}, LeftMembers: []string{string(honest.ID)}, EventLTime: 2})
	if !bytes.Equal(out, want) {
		t.Errorf("got  %q\nwant %q", out, want)
	}
	if n := g.count.refused.Load(); n != 2 {
		t.Errorf("%d refused, want 2", n)
	}
	for name, b := range map[string][]byte{
		"nothing":               nil,
		"more than it says":     append(state(nil, &serfState{}), 0),
		"less than it says":     state([]nodeState{nodeOf(honest, honest)}, nil)[:60],
		"a thousand millions":   message(pushPullMsg, &stateHeader{Nodes: 1 << 30}),
		"less than none":        message(pushPullMsg, &stateHeader{Nodes: -1}),
		"a long tail":           message(pushPullMsg, &stateHeader{UserStateLen: 1 << 30}),
		"another tail":          append(message(pushPullMsg, &stateHeader{UserStateLen: 2}), 5, 5),
		"a clock that is a lie": state(nil, &serfState{LTime: 1 << 63}),
		"a user message":        message(userMsg, &struct{ UserMsgLen int }{5}),
		"a compressed state":    message(9, &struct{ Buf []byte }{make([]byte, 100)}),
		"an encrypted one":      append([]byte{10}, make([]byte, 100)...),
		"too much":              append(state(nil, nil), make([]byte, MaxStream)...),
	} {
		if _, _, err := testGuard().take(t.Context(), string(liar.ID), b); err == nil {
			t.Errorf("%s is taken in", name)
		}
	}
}

// What a member showed last counts, whoever says again what it showed before.
func TestGuard_KeepsTheNewestContact(t *testing.T) {
	g, id := testGuard(), string(honest.ID)
	check := func(wire string) bool { return g.checkContact(t.Context(), string(liar.ID), id, wire) }
	if !check("signed by "+id) || !check("signed again by "+id) || check("signed by "+id) || g.contactOf(id) != "signed again by "+id {
		t.Errorf("it shows %q", g.contactOf(id))
	}
}

// take is what is done with a question on a stream.
func (g *guard) take(ctx context.Context, from string, b []byte) ([]byte, *briefExtras, error) {
	return g.checkStream(ctx, from, b, g.contactOf)
}

// written is a brief state of such parts.
func written(t *testing.T, head briefHead, parts ...any) []byte {
	t.Helper()
	w := newBrief(&head)
	for _, p := range parts {
		w.addPart(p)
	}
	if w.err != nil {
		t.Fatal(w.err)
	}
	return w.out.Bytes()
}

// brief writes a state of memberlist's briefly.
func brief(b []byte, has func(name string, m mark) bool, lacks []string) []byte {
	out, err := stateOf(b).encodeBrief(has, lacks)
	if err != nil {
		panic(err)
	}
	return out
}

// parsed is a state in which the order of maps is the same each time.
func parsed(t *testing.T, b []byte) *poolState {
	t.Helper()
	s, err := readState(b[1:])
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// On the way a state has a mark for what the other side has shown, and says
// whose contacts who wrote it has.
func TestState_IsWrittenBriefly(t *testing.T) {
	clocks := &serfState{LTime: 4, StatusLTimes: map[string]uint64{string(honest.ID): 3, string(liar.ID): 2}, LeftMembers: []string{string(liar.ID)}, EventLTime: 2}
	full := state([]nodeState{nodeOf(honest, honest), nodeOf(me, me)}, clocks)
	short := brief(full, func(string, mark) bool { return true }, nil)
	if len(short) > 250 { // two members of 60, and one by its name
		t.Errorf("%d bytes", len(short))
	}
	g := testGuard()
	g.setOwn("signed by " + string(me.ID))
	out, says, err := g.take(t.Context(), string(honest.ID), short)
	if err != nil {
		t.Fatal(err)
	}
	// honest showed nothing here yet: it is left out, and asked for.
	if want := state([]nodeState{nodeOf(me, me)}, clocks); !reflect.DeepEqual(parsed(t, out), parsed(t, want)) {
		t.Errorf("got  %q\nwant %q", out, want)
	}
	if len(says.has) != 2 || says.has[string(honest.ID)] != markOf("signed by "+string(honest.ID)) || !slices.Equal(says.unknown, []string{string(honest.ID)}) {
		t.Errorf("it says %+v", says)
	}
	if !g.checkContact(t.Context(), string(honest.ID), string(honest.ID), "signed by "+string(honest.ID)) {
		t.Fatal("honest is not let in")
	}
	if out, _, err := g.take(t.Context(), string(honest.ID), short); err != nil || !reflect.DeepEqual(parsed(t, out), parsed(t, full)) {
		t.Errorf("got  %q, %v\nwant %q", out, err, full)
	}
	lacking := brief(full, func(string, mark) bool { return true }, says.unknown)
	if _, says, err := g.take(t.Context(), string(honest.ID), lacking); err != nil || !slices.Equal(says.lacks, []string{string(honest.ID)}) || says.only {
		t.Errorf("lacking one: %+v, %v", says, err)
	}
	only, err := parsed(t, full).encodeOnly([]string{string(honest.ID)})
	if err != nil {
		t.Fatal(err)
	}
	one := state([]nodeState{nodeOf(honest, honest)}, nil)
	one = bytes.Replace(one, []byte("Join\xc3"), []byte("Join\xc2"), 1)
	if out, says, err := testGuard().take(t.Context(), string(honest.ID), only); err != nil || !says.only || !bytes.Equal(out, one) {
		t.Errorf("that one alone: %q, %+v, %v\nwant %q", out, says, err, one)
	}
	// Of another contact than the one that was shown it says nothing.
	forged := brief(state([]nodeState{nodeOf(honest, liar)}, nil), func(string, mark) bool { return true }, nil)
	if out, _, err := g.take(t.Context(), string(liar.ID), forged); err != nil || !bytes.Equal(out, state(nil, nil)) {
		t.Errorf("a mark of another contact: %q, %v", out, err)
	}
	// What the other side lacks goes whole, and what shows more than a contact.
	more := nodeOf(honest, honest)
	more.Meta = message(tagsMagic, map[string]string{contactTag: "signed by " + string(honest.ID), "x": "y"})
	for _, n := range []nodeState{more, nodeOf(honest, honest)} {
		all := brief(state([]nodeState{n}, nil), func(string, mark) bool { return len(n.Meta) == len(more.Meta) }, nil)
		if out, _, err := testGuard().take(t.Context(), string(honest.ID), all); err != nil || !bytes.Equal(out, state([]nodeState{n}, nil)) {
			t.Errorf("whole: %q, %v", out, err)
		}
	}
	nothing := bytes.Repeat([]byte{0xc0}, MaxStream-100) // nils, a byte each
	for name, in := range map[string][]byte{
		"a digest that is none":  written(t, briefHead{Nodes: 1}, &briefNode{Digest: make([]byte, 31)}),
		"more than a pool holds": written(t, briefHead{Nodes: maxNodes + 1}),
		"less than none":         written(t, briefHead{Nodes: -1}),
		"many times":             append(written(t, briefHead{Times: maxNodes + 1}), nothing...),
		"many that left":         append(written(t, briefHead{Left: 1 << 40}), nothing...),
		"many that are lacked":   append(written(t, briefHead{Lacks: 1 << 40}), nothing...),
		"a clock that is a lie":  written(t, briefHead{User: true, LTime: 1 << 63}),
		"less than it says":      written(t, briefHead{Nodes: 3}),
	} {
		if _, _, err := testGuard().take(t.Context(), string(liar.ID), in); err == nil {
			t.Errorf("%s is taken in", name)
		}
	}
	// A question costs no more memory than what a pool may have.
	many := append(written(t, briefHead{Nodes: maxNodes}), nothing...)
	if got := testing.AllocsPerRun(1, func() { testGuard().take(t.Context(), string(liar.ID), many) }); got > 1000 {
		t.Errorf("%v allocations for nothing", got)
	}
	if stateOf(message(errMsg, &struct{ Error string }{"no"})) != nil || stateOf(nil) != nil {
		t.Error("what is no state is one")
	}
}

// What serf has to say may be longer here than what is sent to anybody.
func TestTransport_SendsNoMoreThanItMay(t *testing.T) {
	g := &Gossip{cfg: Config{Self: me.ID}, guard: testGuard()}
	tr := newTransport(g)
	defer tr.Shutdown()
	for _, c := range []struct {
		ask  []byte
		long int
		fits bool
	}{{state(nil, nil), MaxStream + 1, false}, {state(nil, nil), MaxStream - 100, true}, {brief(state(nil, nil), nil, nil), MaxStream + 1, false}} {
		go func() {
			s := <-tr.streams
			s.Write(make([]byte, c.long))
			s.Close()
		}()
		out, err := tr.serveStream(t.Context(), string(liar.ID), c.ask)
		if (err == nil) != c.fits || c.fits && len(out) != c.long || !c.fits && out != nil {
			t.Errorf("of %d bytes %d are sent, %v", c.long, len(out), err)
		}
	}
}

// Who comes into the pool has shown a contact before: serf asks again.
func TestGuard_NotifyMerge(t *testing.T) {
	g := testGuard()
	m := &serf.Member{Name: string(honest.ID), Addr: addressOf(string(honest.ID)), Port: anyPort, Tags: map[string]string{contactTag: "signed by " + string(honest.ID)}}
	if g.NotifyMerge([]*serf.Member{m}) == nil {
		t.Error("who showed nothing is let in")
	}
	g.splitPacket(t.Context(), string(honest.ID), alive(honest, honest, nil))
	if err := g.NotifyMerge([]*serf.Member{m}); err != nil {
		t.Error(err)
	}
	other := *m
	other.Tags = map[string]string{contactTag: "another"}
	elsewhere := *m
	elsewhere.Addr = addressOf(string(liar.ID))
	for _, m := range []*serf.Member{&other, &elsewhere} {
		if g.NotifyMerge([]*serf.Member{m}) == nil {
			t.Errorf("%+v is let in", m)
		}
	}
	if err := g.NotifyMerge([]*serf.Member{&other, &elsewhere}); err != nil {
		t.Error("one bad member keeps all from joining")
	}
	// A full pool takes nobody more, and keeps those it has.
	g.full = func() bool { return true }
	if len(g.splitPacket(t.Context(), string(honest.ID), alive(honest, honest, nil))) != 1 || len(g.splitPacket(t.Context(), string(liar.ID), alive(liar, liar, nil))) != 0 {
		t.Error("a full pool")
	}
	// A contact that is over counts no more.
	g.mu.Lock()
	s := g.shown[string(honest.ID)]
	s.until = time.Now().Add(-time.Second)
	g.shown[string(honest.ID)] = s
	g.mu.Unlock()
	if g.NotifyMerge([]*serf.Member{m}) == nil {
		t.Error("a contact that is over is good")
	}
}

func TestFrames(t *testing.T) {
	list := [][]byte{{1}, {2, 3}, bytes.Repeat([]byte{4}, maxPacket)}
	got, err := splitFrames(joinFrames(list))
	if err != nil || len(got) != 3 || !bytes.Equal(got[2], list[2]) {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"one byte": {1}, "cut": {0, 2, 1}, "empty": {0, 0}, "a long one": append([]byte{0xff, 0xff}, make([]byte, 0xffff)...), "many": bytes.Repeat([]byte{0, 1, 7}, maxPackets+1), "much": make([]byte, maxBody+1)} {
		if _, err := splitFrames(b); err == nil {
			t.Errorf("%s is taken in", name)
		}
	}
}

func TestReadHint(t *testing.T) {
	h := Hint{1 << 63, record.Version{Epoch: 1<<53 - 1, Seq: 7}}
	if got, ok := readHint(h.encodeHint()); !ok || got != h {
		t.Errorf("%+v", got)
	}
	for name, b := range map[string][]byte{"nothing": nil, "short": make([]byte, 9), "more": append(h.encodeHint(), 1), "a number too large": Hint{1, record.Version{Epoch: 1 << 53, Seq: 1}}.encodeHint()} {
		if _, ok := readHint(b); ok {
			t.Errorf("%s is a hint", name)
		}
	}
}

func TestZone(t *testing.T) {
	for _, c := range []struct{ size, now, want int }{{1, 0, 0}, {1500, 0, 0}, {1501, 0, 1}, {1000, 1, 1}, {999, 1, 0}, {100_000, 0, 7}, {100_000, 7, 7}, {10, 7, 0}} {
		if got := zoneBits(c.size, c.now); got != c.want {
			t.Errorf("%d portals, %d bits: %d, want %d", c.size, c.now, got, c.want)
		}
	}
	a, b := me.ID, honest.ID
	bits := 0
	for sameZone(a, b, bits) {
		bits++
	}
	if bits == 0 || (leadingBits(a)^leadingBits(b))>>(64-bits) != 1 {
		t.Errorf("%s and %s part at bit %d", a, b, bits)
	}
}

func FuzzPacket(f *testing.F) {
	f.Add(withCRC(compound(alive(honest, honest, nil), user(serfEvent, &eventBody{LTime: 5, Name: headEvent, Payload: Hint{}.encodeHint()}))))
	f.Add(message(indirectPingMsg, &pingBody{Node: string(honest.ID), SourceNode: string(liar.ID)}))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, m := range testGuard().splitPacket(t.Context(), string(liar.ID), b) {
			switch m[0] {
			case pingMsg, indirectPingMsg, ackMsg, nackMsg, suspectMsg, aliveMsg, deadMsg, userMsg:
			default:
				t.Errorf("a message of kind %d", m[0])
			}
		}
	})
}

func FuzzStream(f *testing.F) {
	f.Add(state([]nodeState{nodeOf(honest, honest)}, &serfState{LTime: 4, StatusLTimes: map[string]uint64{string(honest.ID): 3}}))
	f.Add(message(errMsg, &struct{ Error string }{"no"}))
	known := func(string, mark) bool { return true }
	f.Add(brief(state([]nodeState{nodeOf(honest, honest), nodeOf(me, me)}, &serfState{LTime: 4, StatusLTimes: map[string]uint64{string(honest.ID): 3}}), known, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		g := testGuard()
		g.checkContact(t.Context(), string(honest.ID), string(honest.ID), "signed by "+string(honest.ID))
		out, _, err := g.take(t.Context(), string(liar.ID), b)
		if err != nil || b[0] != pushPullMsg && b[0] != briefMsg {
			return
		}
		// What was fit is fit as it stands.
		again, _, err := g.take(t.Context(), string(liar.ID), out)
		if err != nil || len(again) != len(out) {
			t.Errorf("%v: %d bytes, then %d", err, len(out), len(again))
		}
	})
}
