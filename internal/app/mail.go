package app

import (
	"context"
	"fmt"
	"mime"
	"net"
	"net/mail"
	"net/smtp"
	"net/url"
	"strings"
	"time"

	"agentsite/internal/clock"
)

// mailer sends mail through the operator's own server.
type mailer struct {
	host string
	addr string
	auth smtp.Auth
	from string
}

// mailTimeout bounds how long somebody waits for a mail to be taken.
const mailTimeout = 15 * time.Second

// parseMail reads smtp://user:password@host:587.
func parseMail(server, from string) (*mailer, error) {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "smtp" || u.Hostname() == "" {
		return nil, fmt.Errorf("--smtp: write it like smtp://user:password@mail.example.org:587")
	}
	if _, err := mail.ParseAddress(from); err != nil {
		return nil, fmt.Errorf("--mail-from %q: give the address mails come from", from)
	}
	port := u.Port()
	if port == "" {
		port = "587"
	}
	m := &mailer{host: u.Hostname(), addr: net.JoinHostPort(u.Hostname(), port), from: from}
	if u.User != nil {
		password, _ := u.User.Password()
		m.auth = smtp.PlainAuth("", u.User.Username(), password, m.host)
	}
	return m, nil
}

// Send implements account.Mailer. net/smtp uses STARTTLS where the server
// offers it and sends no password without.
func (m *mailer) Send(ctx context.Context, to, subject, text string) error {
	if strings.ContainsAny(to+subject, "\r\n") {
		return fmt.Errorf("send mail: line break in a header")
	}
	body := fmt.Sprintf("From: %s\r\nTo: %s\r\nSubject: %s\r\nDate: %s\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n%s",
		m.from, to, mime.QEncoding.Encode("utf-8", subject), clock.Now().Format(time.RFC1123Z), strings.ReplaceAll(text, "\n", "\r\n"))
	ctx, cancel := context.WithTimeout(ctx, mailTimeout)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- smtp.SendMail(m.addr, m.auth, m.from, []string{to}, []byte(body)) }()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("send mail: %w", err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("send mail: %w", ctx.Err())
	}
}
