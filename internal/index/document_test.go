package index

import (
	"reflect"
	"testing"
	"time"
	"unsafe"

	"agentsite/internal/hub"

	"pgregory.net/rapid"
)

// fillIn gives every field of v some value, so that a field that is added to
// hub.Agent and not kept fails the test.
func fillIn(t *rapid.T, v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(0, rapid.Int64Range(-1e18, 1e18).Draw(t, name)).UTC()))
			return
		}
		for i := range v.NumField() {
			fillIn(t, v.Field(i), name+"."+v.Type().Field(i).Name)
		}
	case reflect.String:
		v.SetString(rapid.String().Draw(t, name))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, name))
	case reflect.Uint8:
		v.SetUint(uint64(rapid.Byte().Draw(t, name)))
	case reflect.Slice:
		n := rapid.IntRange(0, 3).Draw(t, name)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fillIn(t, v.Index(i), name)
		}
	default:
		t.Fatalf("%s: fields of kind %v are not kept", name, v.Kind())
	}
}

func TestDocument_KeepsEveryField(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a hub.Agent
		if rapid.Bool().Draw(t, "full") {
			fillIn(t, reflect.ValueOf(&a).Elem(), "agent")
		}
		a.ID, a.Name, a.Portal = "01J", "name", "portal.example"
		if a.Visibility == "" {
			a.Visibility = hub.Public // no other agent is listed
		}
		if len(a.CoOwnerIDs) == 0 {
			a.CoOwnerIDs = nil
		}
		x := New()
		x.docs, x.times = []document{newDocument(&a)}, []docTimes{timesOf(&a)}
		x.words.Put(0, keyOf(&a), x.words.Analyze(textsOf(&a)...))
		a.CreatedAt, a.UpdatedAt, a.Liveness.CheckedAt = timeOf(timeNumber(a.CreatedAt)), timeOf(timeNumber(a.UpdatedAt)), timeOf(timeNumber(a.Liveness.CheckedAt))
		if got := x.agentOf(0); !reflect.DeepEqual(got, a) {
			t.Fatalf("got  %+v\nwant %+v", got, a)
		}
	})
}

// TestDocument_OfAPlainAgentIsSmall fails if an agent as most are, read from the
// store, needs the memory for all fields.
func TestDocument_OfAPlainAgentIsSmall(t *testing.T) {
	a := agent("plain", describe("An agent."), skill("s", "t"))
	a.OwnerID, a.OwnerName, a.CoOwnerIDs, a.Version, a.Endpoint = "1", "ann", []string{}, 1, "https://agent.example"
	a.CreatedAt, a.UpdatedAt, a.Liveness.CheckedAt, a.Liveness.Latency = time.Unix(1, 0), time.Unix(2, 0), time.Unix(3, 0), 4
	if d := newDocument(&a); d.more != nil {
		t.Errorf("%+v", *d.more)
	}
}

// TestDocument_SharesNoMemory fails if a text of a document is a part of the
// memory that the agent came in: one field would keep a whole page of agents.
func TestDocument_SharesNoMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a hub.Agent
		fillIn(t, reflect.ValueOf(&a).Elem(), "agent")
		theirs := make(map[*byte]bool)
		eachPointer(reflect.ValueOf(a), func(p *byte) { theirs[p] = true })
		d := newDocument(&a)
		var got hub.Agent
		d.readAgent(&got, "name\x00portal\x00id")
		eachPointer(reflect.ValueOf(got), func(p *byte) {
			if theirs[p] {
				t.Fatal("the document shares memory with the agent")
			}
		})
	})
}

// eachPointer calls yield with the beginning of each text and list in v.
func eachPointer(v reflect.Value, yield func(p *byte)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			eachPointer(v.Field(i), yield)
		}
	case reflect.String:
		if v.Len() > 0 {
			yield(unsafe.StringData(v.String()))
		}
	case reflect.Slice:
		if v.Len() > 0 {
			yield((*byte)(v.UnsafePointer()))
		}
		for i := range v.Len() {
			eachPointer(v.Index(i), yield)
		}
	}
}
