package settings

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/mail"
	"strings"
	"testing"
	"time"
)

// mailServer takes one mail and returns what its client said, with the lines
// of the mail after DATA.
func mailServer(t *testing.T, answers map[string]string) (addr string, said <-chan []string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	out := make(chan []string, 1)
	t.Cleanup(func() { l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			out <- nil
			return
		}
		defer conn.Close()
		var lines []string
		defer func() { out <- lines }()
		conn.Write([]byte("220 mail.example\r\n"))
		in := bufio.NewScanner(conn)
		data := false
		for in.Scan() {
			line := in.Text()
			lines = append(lines, line)
			verb, _, _ := strings.Cut(line, " ")
			answer := "250 fine"
			switch {
			case data && line != ".":
				continue
			case data:
				data = false
			case verb == "DATA":
				data, answer = true, "354 go on"
			}
			if a, ok := answers[verb]; ok {
				answer = a
			}
			if answer == "" {
				return
			}
			conn.Write([]byte(answer + "\r\n"))
		}
	}()
	return l.Addr().String(), out
}

func TestMail_SendsOneReadableMail(t *testing.T) {
	t.Parallel()
	addr, said := mailServer(t, nil)
	m, err := ParseMail("smtp://"+addr, `"Ägent Site" <noreply@portal.example>`)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Send(t.Context(), "ada@mail.example", "Set a new passwörd", "Hello Ädä,\n.\n..dots\nhttps://x/reset?link=agsl_1\n"); err != nil {
		t.Fatal(err)
	}
	lines := <-said
	text := strings.Join(lines, "\n")
	if !strings.Contains(text, "MAIL FROM:<noreply@portal.example>") || !strings.Contains(text, "RCPT TO:<ada@mail.example>") {
		t.Errorf("envelope: %s", text)
	}
	_, body, _ := strings.Cut(text, "DATA\n")
	body, _, _ = strings.Cut(body, "\n.\nQUIT")
	msg, err := mail.ReadMessage(strings.NewReader(body))
	if err != nil {
		t.Fatal(err, body)
	}
	from, err := msg.Header.AddressList("From")
	if err != nil || len(from) != 1 || from[0].Name != "Ägent Site" || from[0].Address != "noreply@portal.example" {
		t.Errorf("%v %v", from, err)
	}
	if d, err := msg.Header.Date(); err != nil || d.Year() < 2026 {
		t.Error(d, err)
	}
	if !strings.Contains(body, "\n..\n...dots\n") || !strings.Contains(msg.Header.Get("Subject"), "=?utf-8?q?") {
		t.Errorf("%s", body)
	}
}

func TestMail_SaysWhatWentWrong(t *testing.T) {
	t.Parallel()
	for verb, answer := range map[string]string{"RCPT": "550 nobody of that name", "DATA": "452 full", "MAIL": "", "EHLO": "", ".": "554 spam"} {
		addr, said := mailServer(t, map[string]string{verb: answer, "HELO": ""})
		m, err := ParseMail("smtp://"+addr, "noreply@portal.example")
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Send(t.Context(), "ada@mail.example", "s", "t"); err == nil || !strings.HasPrefix(err.Error(), "send mail: ") {
			t.Errorf("%s: %v", verb, err)
		}
		<-said
	}
	m := &mailer{addr: "127.0.0.1:1", from: &mail.Address{}}
	for _, to := range []string{"a@x.example\r\nBcc: b@x.example", "a@x.example\nX"} {
		if err := m.Send(t.Context(), to, "s", "t"); err == nil || !strings.Contains(err.Error(), "line break") {
			t.Error(err)
		}
	}
}

func TestMail_SendsNoPasswordInTheClear(t *testing.T) {
	t.Parallel()
	addr, said := mailServer(t, map[string]string{"EHLO": "250-mail.example\r\n250 AUTH PLAIN"})
	_, port, _ := net.SplitHostPort(addr)
	m, err := ParseMail("smtp://ada:hunter2@127.0.0.1:"+port, "noreply@portal.example")
	if err != nil {
		t.Fatal(err)
	}
	// net/smtp trusts the loopback address, so the server gets another name.
	m2, err := ParseMail("smtp://ada:hunter2@mail.example", "noreply@portal.example")
	if err != nil || m2.addr != "mail.example:587" {
		t.Fatal(m2, err)
	}
	m2.addr = m.addr
	if err := m2.Send(t.Context(), "ada@mail.example", "s", "t"); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
	if text := strings.Join(<-said, "\n"); strings.Contains(text, "AUTH PLAIN") || strings.Contains(text, "DATA") {
		t.Error(text)
	}
}

func TestMail_LetsGoOfAServerThatHangs(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	m, err := ParseMail("smtp://"+l.Addr().String(), "noreply@portal.example")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- m.Send(ctx, "ada@mail.example", "s", "t") }()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("something was said")
	} else if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		t.Error("the connection was left open")
	}
}

func TestParseMail_RefusesWithoutTellingThePassword(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{{"smtps://ada:hunter2@x.example", "a@x.example"}, {"smtp://ada:hunter2@", "a@x.example"}, {"ada:hunter2@x.example:25", "a@x.example"},
		{"smtp://ada:hunter2@x.example", ""}, {"smtp://ada:hunter2@x.example", "not an address"}, {"smtp://ada:hunter2%zz@x.example", "a@x.example"}} {
		if _, err := ParseMail(c[0], c[1]); err == nil || strings.Contains(err.Error(), "hunter2") || !strings.HasPrefix(err.Error(), "--") {
			t.Errorf("%v: %v", c, err)
		}
	}
}
