package a2a_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"agentsite/internal/testing/apptest"
)

// TestSend_CountsTheRightAtItsTime ends an account while the body of its
// request is on the way: nothing may be asked with it any more. That the
// server wants the body says that it has looked at the token.
func TestSend_CountsTheRightAtItsTime(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	u, err := url.Parse(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	for i, face := range []struct{ path, body string }{
		{"/v1/chat/completions", `{"model":"calc","messages":[{"role":"user","content":"6*7"}]}`},
		{calc, `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":` + say("m", "6*7", "") + `}`},
		{calc, `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":` + strings.TrimSuffix(say("m", "6*7", ""), "}") + `,"configuration":{"returnImmediately":true}}}`},
	} {
		name := fmt.Sprintf("late%d", i)
		auth := p.User(t, name).NewToken().Request(t.Context(), http.MethodGet, "/", nil).Header.Get("Authorization")
		conn, err := net.Dial("tcp", u.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", face.path, u.Host, auth, len(face.body))
		in := bufio.NewReader(conn)
		if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != http.StatusContinue {
			t.Fatalf("%s: %+v %v", face.path, resp, err)
		}
		if err := p.Control().SetUserDisabled(t.Context(), name, true); err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, face.body)
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %s", face.path, resp.Status)
		}
	}
}
