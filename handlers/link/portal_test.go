package link_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentsite/internal/linkwire"
	"agentsite/internal/testing/apptest"
)

// knock connects to a real portal and says hello; it returns the connection
// that was welcomed, or what the portal said instead.
func knock(t *testing.T, p *apptest.Portal, token string, h linkwire.Hello) (*linkwire.Socket, *linkwire.Error, error) {
	t.Helper()
	s, err := linkwire.Dial(t.Context(), p.Base, token, nil)
	if err != nil {
		return nil, nil, err
	}
	t.Cleanup(func() { s.Close("bye"); s.Wait() })
	h.Protocol = linkwire.Version
	if err := s.Send(t.Context(), linkwire.EncodeRequest(1, linkwire.MethodHello, h)); err != nil {
		return nil, nil, err
	}
	b, err := s.Receive(t.Context())
	if err != nil {
		return nil, nil, err
	}
	m, err := linkwire.DecodeMessage(b)
	return s, m.Error, err
}

// profile is what the API says of an agent.
type profile struct {
	Title, Description, Kind, Visibility string
	Skills                               []struct{ Name string }
	Liveness                             struct{ State, Reason string }
	Version                              int
}

func TestClaim_RegistersOrAttachesOrRefuses(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada, bob := p.User(t, "ada"), p.User(t, "bob")
	adas, bobs := ada.NewToken("agents:write"), bob.NewToken()
	s, e, err := knock(t, p, adas.Token, linkwire.Hello{Name: "worker", Title: "The Worker", Description: "Works.", Skills: []linkwire.Skill{{Name: "Work", Tags: []string{"hard"}}}})
	if e != nil || err != nil {
		t.Fatal(e, err)
	}
	var a profile
	ada.Get(http.MethodGet, "/api/v1/agents/worker", nil, http.StatusOK, &a)
	if a.Title != "The Worker" || a.Description != "Works." || a.Kind != "link" || len(a.Skills) != 1 || a.Version != 1 {
		t.Errorf("registered as %+v", a)
	}
	// It attaches to what is there, and leaves it as its owner has it.
	s.Close("bye")
	if _, e, err := knock(t, p, adas.Token, linkwire.Hello{Name: "worker", Title: "Another"}); e != nil || err != nil {
		t.Fatal(e, err)
	}
	ada.Get(http.MethodGet, "/api/v1/agents/worker", nil, http.StatusOK, &a)
	if a.Title != "The Worker" || a.Version != 1 {
		t.Errorf("attaching made of it %+v", a)
	}
	if _, e, err := knock(t, p, adas.Token, linkwire.Hello{Name: "plain"}); e != nil || err != nil {
		t.Fatal(e, err)
	}
	ada.Get(http.MethodGet, "/api/v1/agents/plain", nil, http.StatusOK, &a)
	if a.Description == "" {
		t.Error("no description was made up")
	}
	ada.Must(http.MethodPatch, "/api/v1/agents/plain", map[string]any{"visibility": "private"}, http.StatusOK)
	ada.Must(http.MethodPost, "/api/v1/agents", map[string]any{"name": "model", "kind": "openai", "endpoint": p.Base + "/v1", "description": "x", "config": map[string]any{"model": "m"}}, http.StatusCreated)
	ada.Must(http.MethodPatch, "/api/v1/agents/worker", map[string]any{"status": map[string]any{"state": "withdrawn"}}, http.StatusOK)
	for name, c := range map[string]struct{ token, name, kind, says string }{
		"of somebody else":         {bobs.Token, "worker", "conflict", "taken"},
		"private of somebody else": {bobs.Token, "plain", "conflict", "taken"},
		"of another kind":          {adas.Token, "model", "conflict", "kind openai"},
		"built in":                 {adas.Token, "calc", "conflict", "taken"},
		"withdrawn":                {adas.Token, "worker", "forbidden", "withdrawn"},
		"no name":                  {adas.Token, "", "invalid", "name"},
		"a person":                 {adas.Token, "bob", "conflict", "taken"},
		"a reserved word":          {adas.Token, "admin", "invalid", "name"},
		"lacking the scope":        {bob.NewToken("chat:write").Token, "fresh", "forbidden", "agents:write"},
	} {
		_, e, err := knock(t, p, c.token, linkwire.Hello{Name: c.name})
		if err != nil || e == nil || e.Data == nil || e.Data.Kind != c.kind || !strings.Contains(e.Message, c.says) {
			t.Errorf("%s: %+v %v", name, e, err)
		}
	}
	if _, _, err := knock(t, p, "", linkwire.Hello{Name: "fresh", Token: bobs.Token}); err != nil {
		t.Error("a token in hello:", err)
	}
}

// within bounds the time to end a connection after its right was revoked. It is
// less than the minute after which all rights are checked again.
const within = 30 * time.Second

func TestRights_EndTheConnection(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	oper := p.Operator(t, "boss")
	for name, act := range map[string]func(t *testing.T, user *apptest.Client){
		"token revoked": func(t *testing.T, user *apptest.Client) {
			var out struct{ Tokens []struct{ ID string } }
			user.Get(http.MethodGet, "/api/v1/tokens", nil, http.StatusOK, &out)
			user.Must(http.MethodDelete, "/api/v1/tokens/"+out.Tokens[0].ID, nil, http.StatusNoContent)
		},
		"account disabled": func(t *testing.T, user *apptest.Client) {
			oper.With(t).Must(http.MethodPost, "/admin/people/"+user.Name+"/disable", map[string][]string{}, http.StatusSeeOther)
		},
	} {
		t.Run(name, func(t *testing.T) {
			user := p.User(t, apptest.Fresh("user"))
			for _, inHello := range []bool{false, true} {
				token := user.NewToken().Token
				header, h := token, linkwire.Hello{Name: apptest.Fresh("agent")}
				if inHello {
					header, h.Token = "", token
				}
				s, e, err := knock(t, p, header, h)
				if e != nil || err != nil {
					t.Fatal(e, err)
				}
				ended := make(chan error, 1)
				go func() {
					_, err := s.Receive(context.Background())
					ended <- err
				}()
				if act(t, user); name == "account disabled" && !inHello {
					inHello = true // there is only one account to disable
				}
				select {
				case err := <-ended:
					if code, _ := linkwire.CloseReason(err); code != linkwire.CodeRevoked {
						t.Errorf("it ended with %v", err)
					}
				case <-time.After(within):
					t.Error("it goes on")
				}
				if _, _, err := knock(t, p, token, h); err == nil {
					t.Error("it was let in again")
				}
				if name == "account disabled" {
					break
				}
			}
		})
	}
}

// upgrade is a handshake written by hand, with what may follow it at once.
func upgrade(t *testing.T, p *apptest.Portal, headers, after string) (status string, in *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "GET /link HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n%s\r\n%s", p.Host, headers, after)
	conn.SetReadDeadline(time.Now().Add(time.Minute))
	in = bufio.NewReader(conn)
	status, err = in.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(status), in
}

func TestHandshake_IsAnsweredInWords(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	token := ada.NewToken().Token
	proto := "Sec-WebSocket-Protocol: agentsite.link.v1\r\n"
	bearer := "Authorization: Bearer " + token + "\r\n"
	for name, c := range map[string]struct{ headers, status string }{
		"fine":              {proto + bearer, "HTTP/1.1 101"},
		"later":             {proto, "HTTP/1.1 101"},
		"own origin":        {proto + bearer + "Origin: " + p.Base + "\r\n", "HTTP/1.1 101"},
		"foreign origin":    {proto + bearer + "Origin: https://evil.example\r\n", "HTTP/1.1 403"},
		"no subprotocol":    {bearer, "HTTP/1.1 400"},
		"other subprotocol": {bearer + "Sec-WebSocket-Protocol: chat, graphql-ws\r\n", "HTTP/1.1 400"},
		"wrong token":       {proto + "Authorization: Bearer ags_wrong\r\n", "HTTP/1.1 401"},
		"no bearer":         {proto + "Authorization: Basic YTpi\r\n", "HTTP/1.1 401"},
	} {
		if status, _ := upgrade(t, p, c.headers, ""); !strings.HasPrefix(status, c.status) {
			t.Errorf("%s: %s", name, status)
		}
	}
	if a := ada.Do(http.MethodGet, "/link", nil); a.Status != http.StatusUpgradeRequired || !strings.Contains(a.Body, "/docs/link") {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	// A client may send its hello together with the handshake.
	hello, err := json.Marshal(linkwire.Hello{Protocol: 1, Name: "hasty"})
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"hello","params":%s}`, hello)
	for _, pad := range []int{0, 3000} { // one that fills the buffers, too
		text := text + strings.Repeat(" ", pad)
		frame := append([]byte{0x81, 0x80 | 126, byte(len(text) >> 8), byte(len(text)), 0, 0, 0, 0}, text...)
		status, in := upgrade(t, p, proto+bearer, string(frame))
		for line := ""; line != "\r\n"; {
			if line, err = in.ReadString('\n'); err != nil {
				t.Fatal(status, err)
			}
		}
		head := make([]byte, 4)
		if _, err := io.ReadFull(in, head); err != nil || head[0] != 0x81 {
			t.Errorf("%x %v", head, err)
		}
		answer := make([]byte, int(head[2])<<8|int(head[3]))
		if _, err := io.ReadFull(in, answer); err != nil || !strings.Contains(string(answer), `"agent":"hasty@`) {
			t.Errorf("%s %v", answer, err)
		}
	}
}
