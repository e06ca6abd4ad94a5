package egress

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestDo_PreparesEachRequestLast(t *testing.T) {
	type heard struct{ note, body string }
	came := make(chan heard, 2)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		came <- heard{r.Header.Get("X-Note"), string(b)}
	})
	refused := errors.New("not like this")
	c := client(t, Config{AllowCIDR: loopback(t), Signer: signerFunc(func(r *http.Request) error {
		if r.URL.Path == "/no" {
			return refused
		}
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		r.Header.Set("X-Note", r.UserAgent()+" "+strings.ToUpper(string(b)))
		r.Body = io.NopCloser(bytes.NewReader(b))
		return nil
	})})
	req, err := http.NewRequest("POST", url, io.MultiReader(strings.NewReader("hello")))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := <-came; got != (heard{"agentsite HELLO", "hello"}) {
		t.Error(got)
	}
	if req.Header.Get("X-Note") != "" {
		t.Error("the caller's own request was changed")
	}
	_, err = get(t, c, url+"/no")
	if CodeOf(err) != Unprepared || !errors.Is(err, refused) || !NeverSent(err) || len(came) != 0 {
		t.Error(err, len(came))
	}
	// The place of a request that was not sent is free again.
	for range 20 {
		get(t, c, url+"/no")
	}
}

// signerFunc is a Signer by a function.
type signerFunc func(*http.Request) error

func (f signerFunc) SignRequest(r *http.Request) error { return f(r) }
