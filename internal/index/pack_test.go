package index

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"
	"time"

	"agentsite/internal/hub"

	"pgregory.net/rapid"
)

// fillIn gives every field of v some value, so that a field that is added to
// hub.Agent and forgotten by the packer fails the test.
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
		t.Fatalf("%s: fields of kind %v are not packed", name, v.Kind())
	}
}

func TestPack_KeepsEveryField(t *testing.T) {
	var p packer
	for range firstLesson + 10 { // some are packed before the first lesson
		p.note([]byte("Translates documents between forty languages."))
	}
	var before packer
	rapid.Check(t, func(t *rapid.T) {
		a := new(hub.Agent)
		if rapid.Bool().Draw(t, "full") {
			fillIn(t, reflect.ValueOf(a).Elem(), "agent")
		}
		a.ID = "01J"
		for _, p := range []*packer{&before, &p} {
			var w writer
			w.write(a)
			var buf []byte
			var got hub.Agent
			p.unpack(&got, key(a), string(p.pack(nil, &w)), &buf)
			got.CreatedAt, got.UpdatedAt = fromNanos(nanos(a.CreatedAt)), fromNanos(nanos(a.UpdatedAt))
			if !reflect.DeepEqual(got, *a) {
				t.Fatalf("got  %+v\nwant %+v", got, *a)
			}
		}
	})
}

func TestPacker_LearnsAndReadsWhatItWroteBefore(t *testing.T) {
	x, c := New(), newCorpus()
	put := func(i int) { x.Put(c.agent(i)) }
	for i := range firstLesson + 50 {
		put(i)
	}
	for x.packer.seen < firstLesson*lessonEvery {
		x.packer.note([]byte("Other texts than before."))
	}
	const late = firstLesson + 50
	put(late)
	if list := x.packer.codecs.Load(); list == nil || len(*list) != 2 {
		t.Fatal("two lessons were due")
	}
	for _, i := range []int{0, firstLesson - 2, firstLesson, late - 1, late} {
		want := c.agent(i)
		doc, _ := x.byID.Find(want.ID)
		if got := x.agent(doc); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%d:\n got %+v\nwant %+v", i, got, want)
		}
	}
	doc, _ := x.byID.Find(c.agent(late - 1).ID)
	var w writer
	a := x.agent(doc)
	w.write(&a)
	if packed := len(x.entries[doc].rec); packed*10 > len(w.text)*8 {
		t.Errorf("%d bytes of text take %d", len(w.text), packed)
	}
}

func FuzzCodec(f *testing.F) {
	f.Add([]byte("translate translates"), []byte("translating"))
	f.Add([]byte{0, 255, 0, 255}, []byte{255, 255, 0})
	f.Fuzz(func(t *testing.T, sample, text []byte) {
		if len(sample) > sampleBytes {
			return
		}
		c := learn(sample)
		if got := c.decode(nil, string(c.encode(nil, text))); !bytes.Equal(got, text) {
			t.Fatalf("%q became %q", text, got)
		}
	})
}
