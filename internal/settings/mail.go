package settings

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/mail"
	"net/smtp"
	"net/url"
	"strings"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/weborigin"
)

// mailer sends mail through the operator's SMTP server. It implements account.Mailer.
type mailer struct {
	host string
	addr string
	auth smtp.Auth
	from *mail.Address
}

// mailTimeout bounds the connection and the whole SMTP dialogue of one mail.
const mailTimeout = 15 * time.Second

// ParseMail returns a mailer for a server like smtp://user:password@host:587. The port defaults to
// 587. from is the sender of the mails.
func ParseMail(server, from string) (*mailer, error) {
	u, err := url.Parse(weborigin.ReadName(server))
	if err != nil || u.Scheme != "smtp" || u.Hostname() == "" {
		return nil, fmt.Errorf("--smtp: write it like smtp://user:password@mail.example.org:587")
	}
	sender, err := mail.ParseAddress(from)
	if err != nil {
		return nil, fmt.Errorf("--mail-from %q: give the address mails come from", from)
	}
	port := u.Port()
	if port == "" {
		port = "587"
	}
	m := &mailer{host: u.Hostname(), addr: net.JoinHostPort(u.Hostname(), port), from: sender}
	if u.User != nil {
		password, _ := u.User.Password()
		m.auth = smtp.PlainAuth("", u.User.Username(), password, m.host)
	}
	return m, nil
}

// Send implements account.Mailer. It uses STARTTLS if the server offers it; net/smtp sends no
// password without TLS, except to this machine. The connection is closed when Send returns.
func (m *mailer) Send(ctx context.Context, to, subject, text string) error {
	if strings.ContainsAny(to+subject, "\r\n") {
		return fmt.Errorf("send mail: line break in a header")
	}
	body := fmt.Sprintf("From: %s\r\nTo: %s\r\nSubject: %s\r\nDate: %s\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n%s",
		m.from.String(), to, mime.QEncoding.Encode("utf-8", subject), clock.Now().Format(time.RFC1123Z),
		strings.ReplaceAll(text, "\n", "\r\n"))
	ctx, cancel := context.WithTimeout(ctx, mailTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", m.addr)
	if err != nil {
		return fmt.Errorf("send mail: %w", err)
	}
	// net/smtp takes no context, so the end of ctx closes the connection.
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := m.deliverMail(conn, to, body); err != nil {
		return fmt.Errorf("send mail: %w", errors.Join(ctx.Err(), err))
	}
	return nil
}

// deliverMail sends one mail over conn by SMTP. It closes conn in every case.
func (m *mailer) deliverMail(conn net.Conn, to, body string) error {
	c, err := smtp.NewClient(conn, m.host)
	if err != nil {
		conn.Close()
		return err
	}
	defer c.Close()
	if ok, _ := c.Extension("STARTTLS"); ok {
		if err := c.StartTLS(&tls.Config{ServerName: m.host}); err != nil {
			return err
		}
	}
	if m.auth != nil {
		if err := c.Auth(m.auth); err != nil {
			return err
		}
	}
	if err := c.Mail(m.from.Address); err != nil {
		return err
	}
	if err := c.Rcpt(to); err != nil {
		return err
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, body); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	c.Quit() // the server has accepted the mail, so an error of QUIT does not matter
	return nil
}
