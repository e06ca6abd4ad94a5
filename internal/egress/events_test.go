package egress

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

func readEvents(in string) ([]string, error) {
	r := NewEventReader(strings.NewReader(in))
	var out []string
	for {
		b, err := r.Next()
		if err != nil {
			return out, err
		}
		out = append(out, string(b))
	}
}

func TestEventReader_ReadsTheFormat(t *testing.T) {
	for in, want := range map[string][]string{
		"data: a\n\ndata:b\n\n":              {"a", "b"},
		"data: a\r\ndata: b\r\n\r\n":         {"a\nb"},
		": hi\nid: 1\nevent: x\ndata: a\n\n": {"a"},
		"data: a\rdata: b\r\r\ndata: c\r\r":  {"a\nb", "c"},
		"data: cut":                          {"cut"},
		"data: a\n":                          {"a"},
		"data\n\n":                           {""},
		"datafoo: x\n\n\n\n":                 nil,
		"":                                   nil,
		"<html>\n\n":                         nil,
		"data: " + strings.Repeat("x", 100_000) + "\n\n": {strings.Repeat("x", 100_000)},
	} {
		got, err := readEvents(in)
		if !slices.Equal(got, want) || !errors.Is(err, io.EOF) {
			t.Errorf("%.40q: %.60q %v", in, got, err)
		}
	}
}

func TestEventReader_KeepsNamesAndProblems(t *testing.T) {
	in := "\xef\xbb\xbfevent: error\ndata: {}\n\nerror: {\"code\":400}\n\nevent: x\n\ndata: a\nerror: b\n\nerror\n\n"
	r := NewEventReader(strings.NewReader(in))
	for i, want := range []string{"error|{}|", `||{"code":400}`, "|a|b"} {
		ev, err := r.NextEvent()
		if got := ev.Name + "|" + string(ev.Data) + "|" + string(ev.Problem); got != want || err != nil {
			t.Errorf("%d: %q %v", i, got, err)
		}
	}
	if _, err := r.NextEvent(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	if got, err := readEvents("error: x\n\ndata: a\n\n"); !slices.Equal(got, []string{"a"}) || !errors.Is(err, io.EOF) {
		t.Errorf("data alone: %q %v", got, err)
	}
}

func TestLooseEventReader_ReadsWhatBreaksTheFormat(t *testing.T) {
	for in, want := range map[string]string{
		"data: {}\ndata: [1]\ndata: [DONE]\n":                  "|{}| |[1]| |[DONE]|",
		"data: {\ndata: }\ndata: {}\n\n":                       "|{\n}| |{}|",
		"event: a\ndata: {}\nevent: b\ndata: {}\n":             "a|{}| b|{}|",
		"data: {}\nevent: b\n\n":                               "b|{}|",
		"data: {}\n\n{\"a\":1}\nwhy\nnot\n":                    "|{}| |{\"a\":1}| ||why\nnot\n",
		"data: {}\n\n" + strings.Repeat("x", 10_000) + "\ny\n": "|{}| ||" + strings.Repeat("x", 4<<10) + "\n",
		"why\n": "",
	} {
		r := NewLooseEventReader(strings.NewReader(in))
		var got []string
		ev, err := r.NextEvent()
		for ; err == nil; ev, err = r.NextEvent() {
			got = append(got, ev.Name+"|"+string(ev.Data)+"|"+string(ev.Problem))
		}
		if strings.Join(got, " ") != want || !errors.Is(err, io.EOF) {
			t.Errorf("%.40q: %.90q %v", in, got, err)
		}
	}
	if got, _ := readEvents("data: {}\ndata: {}\nwhy\n\n"); !slices.Equal(got, []string{"{}\n{}"}) {
		t.Errorf("strict: %q", got)
	}
}

func TestEventReader_IsBounded(t *testing.T) {
	for _, in := range []string{
		"data: " + strings.Repeat("x", MaxEvent+1<<17) + "\n\n",
		strings.Repeat("x", 4*MaxEvent),
		strings.Repeat("data: "+strings.Repeat("x", 1000)+"\n", 2000),
	} {
		if got, err := readEvents(in); CodeOf(err) != TooLarge || len(got) != 0 {
			t.Errorf("%d events, %v", len(got), err)
		}
	}
}
