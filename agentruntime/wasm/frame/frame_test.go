package frame_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"agentsite/agentruntime/wasm/frame"
)

func TestRead_ReadsWhatWriteWrote(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	list := []frame.Frame{{frame.Setup, 0, []byte("{}")}, {frame.Done, 7, nil}, {frame.Host, 1<<32 - 1, frame.HostBody("find", []byte("x"))}}
	for _, f := range list {
		if err := frame.Write(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range list {
		got, err := frame.Read(&b)
		if err != nil || got.Kind != want.Kind || got.Call != want.Call || !bytes.Equal(got.Body, want.Body) {
			t.Errorf("%+v %v, want %+v", got, err, want)
		}
	}
	if name, arg, err := frame.SplitHost(list[2].Body); name != "find" || string(arg) != "x" || err != nil {
		t.Errorf("%q %q %v", name, arg, err)
	}
	if _, err := frame.Read(&b); !errors.Is(err, io.EOF) {
		t.Errorf("the end is %v", err)
	}
}

func TestRead_RefusesFalseLengths(t *testing.T) {
	t.Parallel()
	head := func(size uint32, kind byte) []byte {
		return append(binary.BigEndian.AppendUint32(nil, size), kind, 0, 0, 0, 1)
	}
	for name, b := range map[string][]byte{
		"a frame over the bound":   head(frame.MaxBody+1, byte(frame.Done)),
		"the longest length":       head(1<<32-1, byte(frame.Log)),
		"a module over its bound":  head(frame.MaxModule+1, byte(frame.Module)),
		"no kind":                  head(0, 0),
		"an unknown kind":          head(0, 200),
		"a body that does not end": head(frame.MaxBody, byte(frame.Done)),
		"half of a header":         head(0, byte(frame.Done))[:5],
	} {
		if f, err := frame.Read(bytes.NewReader(b)); err == nil {
			t.Errorf("%s was read as %+v", name, f)
		}
	}
	for _, b := range [][]byte{nil, {0}, {33}, {200}, {5, 'a'}} {
		if name, _, err := frame.SplitHost(b); err == nil {
			t.Errorf("%v names the function %q", b, name)
		}
	}
	if _, _, err := frame.SplitStatus([]byte{byte(frame.Expired) + 1}); err == nil {
		t.Error("an unknown status was read")
	}
	if err := frame.Write(io.Discard, frame.Frame{Kind: frame.Done, Body: make([]byte, frame.MaxBody+1)}); err == nil {
		t.Error("a frame over the bound was written")
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 9, 0, 0, 0, 1, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := frame.Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := frame.Write(&out, got); err != nil || !bytes.HasPrefix(b, out.Bytes()) {
			t.Errorf("%v: %x", err, out.Bytes())
		}
	})
}
