package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"agentsite/bench/report"
)

// notes opens a conversation with p as the only member, where a message is a write without an answer.
func (s *site) notes(p *person) (*ordinary, error) {
	room, err := s.room(p)
	return &ordinary{p, s, "", room}, err
}

// write measures n writes, one after the other.
func (o *ordinary) write(n int) (times []time.Duration, err error) {
	for range n {
		began := time.Now()
		if err := o.site.say(o.person, o.room, "a note"); err != nil {
			return times, err
		}
		times = append(times, time.Since(began))
		time.Sleep(20 * time.Millisecond) // below the rate at which one account may write
	}
	return times, nil
}

// writeSlack is added to each bar of a write's time: a flush of the disk on a shared machine.
const writeSlack = 10 * time.Millisecond

// slowReaders lets one account read 80 exports and 100 pages of a long conversation at 1 kB/s.
func (b *bench) slowReaders() error {
	s, people, err := b.open(1)
	if err != nil {
		return err
	}
	defer s.stop()
	reader := people[3]
	long, err := s.room(reader)
	if err != nil {
		return err
	}
	text := strings.Repeat("A long text, as people paste it. ", 900)
	for range b.Pick(20, 700) {
		if err := s.say(reader, long, text); err != nil {
			return err
		}
		time.Sleep(25 * time.Millisecond)
	}
	notes, err := s.notes(people[2])
	if err != nil {
		return err
	}
	alone, err := notes.write(b.Pick(10, 150))
	if err != nil {
		return err
	}
	before, _, err := s.Memory()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	var served atomic.Int64
	read := func(path string) {
		wg.Go(func() { s.readSlowly(ctx, reader, path, &served) })
	}
	for range b.Pick(8, 80) {
		read("/api/v1/conversations/" + long + "/export")
	}
	for range b.Pick(10, 100) {
		read("/api/v1/conversations/" + long + "/messages?limit=200")
	}
	busy, err := notes.write(b.Pick(10, 150))
	if err != nil {
		return err
	}
	most := before
	for range 10 {
		now, _, err := s.Memory()
		if err != nil {
			return err
		}
		most = max(most, now)
		time.Sleep(200 * time.Millisecond)
	}
	fmt.Fprintf(b.Out, "slow readers: %d were served\n", served.Load())
	grown := float64(most-before) / (1 << 20)
	b.Add(report.Line{What: "80 exports and 100 pages at 1 kB/s: memory", Floor: fmt.Sprintf("%d MiB", before>>20), Portal: fmt.Sprintf("+%.0f MiB", grown),
		Bar: "≤ +128 MiB", Judged: true, Met: grown <= 128})
	b.compare("80 exports and 100 pages at 1 kB/s: others' p99", report.Percentile(alone, 0.99), report.Percentile(busy, 0.99), 2, writeSlack)
	return nil
}

// readSlowly reads an answer at 1 kB/s until ctx ends, through a small receive buffer. It counts the answer
// in served unless the portal refuses it.
func (s *site) readSlowly(ctx context.Context, p *person, path string, served *atomic.Int64) {
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
	}}
	conn, err := d.DialContext(ctx, "tcp", s.Addr)
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n", path, s.Addr, p.token)
	block := make([]byte, 1024)
	n, err := conn.Read(block)
	if err == nil && strings.HasPrefix(string(block[:n]), "HTTP/1.1 200") {
		served.Add(1)
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for err == nil {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_, err = conn.Read(block)
		}
	}
}

// folderSize returns the bytes of all files below dir.
func folderSize(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if i, err := e.Info(); err == nil { // a file may be gone by now
			n += i.Size()
		}
		return nil
	})
	return n, err
}

// fastWriter lets one token write as fast as it can for a minute.
func (b *bench) fastWriter() error {
	s, people, err := b.open(1)
	if err != nil {
		return err
	}
	defer s.stop()
	notes, err := s.notes(people[2])
	if err != nil {
		return err
	}
	alone, err := notes.write(b.Pick(10, 150))
	if err != nil {
		return err
	}
	writer := people[3]
	room, err := s.room(writer)
	if err != nil {
		return err
	}
	before, err := folderSize(s.dir)
	if err != nil {
		return err
	}
	length := time.Minute
	if b.Quick {
		length = 5 * time.Second
	}
	stop := time.Now().Add(length)
	text := strings.Repeat("Words that fill the disk. ", 1200)
	done := make(chan error, 1)
	var accepted int
	go func() {
		var err error
		accepted, err = flood(1<<30, func(int) error {
			if time.Now().After(stop) {
				return errOver
			}
			return s.say(writer, room, text)
		})
		done <- err
	}()
	var busy []time.Duration
	for time.Now().Before(stop) {
		times, err := notes.write(10)
		if err != nil {
			return fmt.Errorf("a write beside the writer: %w", err)
		}
		busy = append(busy, times...)
	}
	<-done
	after, err := folderSize(s.dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(b.Out, "writer: %d messages accepted\n", accepted)
	b.Add(report.Line{What: "one token writes for a minute: disk", Portal: fmt.Sprintf("+%d MiB", (after-before)>>20),
		Bar: "≤ 512 MiB", Judged: true, Met: after-before <= 512<<20})
	b.compare("one token writes for a minute: others' p99", report.Percentile(alone, 0.99), report.Percentile(busy, 0.99), 2, writeSlack)
	return nil
}

// manySockets lets one account open 10,000 sockets and 5,000 event streams at a portal with 1,024
// descriptors.
func (b *bench) manySockets() error {
	s, people, err := b.open(1)
	if err != nil {
		return err
	}
	defer s.stop()
	s.Kill()
	s.files = 1024
	if err := s.start(); err != nil {
		return err
	}
	bad := people[3]
	room, err := s.room(bad)
	if err != nil {
		return err
	}
	before, _, err := s.Memory()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	var open atomic.Int64
	slots := make(chan bool, 256)
	connect := func(upgrade string) {
		slots <- true
		wg.Go(func() {
			conn, err := net.DialTimeout("tcp", s.Addr, 5*time.Second)
			if err != nil {
				<-slots
				return
			}
			defer conn.Close()
			fmt.Fprintf(conn, "GET /api/v1/conversations/%s/live HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n%s\r\n", room, s.Addr, bad.token, upgrade)
			conn.SetReadDeadline(time.Now().Add(10 * time.Second))
			head := make([]byte, 12)
			n, _ := conn.Read(head)
			<-slots
			if status := string(head[:n]); status != "HTTP/1.1 101" && status != "HTTP/1.1 200" {
				return
			}
			open.Add(1)
			defer open.Add(-1)
			conn.SetReadDeadline(time.Time{})
			go func() { <-ctx.Done(); conn.Close() }()
			for block := make([]byte, 512); ; {
				if _, err := conn.Read(block); err != nil {
					return
				}
			}
		})
	}
	const socket = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
	for range b.Pick(1000, 10_000) {
		connect(socket)
	}
	for range b.Pick(500, 5000) {
		connect("Accept: text/event-stream\r\n")
	}
	most, _, err := s.Memory()
	if err != nil {
		return err
	}
	fmt.Fprintf(b.Out, "sockets: %d stay open\n", open.Load())
	other, err := s.ordinary(people[2], builtinAgent)
	var took time.Duration
	if err == nil {
		took, err = other.ask()
	}
	result := report.Millis(took)
	if err != nil {
		result = err.Error()
	}
	b.Add(report.Line{What: "10,000 sockets and 5,000 streams: another account", Portal: result, Bar: "connects within 2 s", Judged: true, Met: err == nil && took <= 2*time.Second})
	grown := float64(most-before) / (1 << 20)
	b.Add(report.Line{What: "10,000 sockets and 5,000 streams: memory", Portal: fmt.Sprintf("+%.0f MiB", grown), Bar: "≤ +64 MiB", Judged: true, Met: grown <= 64})
	took, err = s.command("", "user", "disable", bad.name)
	if err != nil {
		return err
	}
	gone := time.Now()
	for open.Load() > 0 && time.Since(gone) < 5*time.Second {
		time.Sleep(10 * time.Millisecond)
	}
	took += time.Since(gone)
	b.Add(report.Line{What: "10,000 sockets and 5,000 streams: the operator disables the account", Portal: report.Millis(took), Bar: "≤ 2 s, nothing stays open",
		Judged: true, Met: took <= 2*time.Second && open.Load() == 0})
	return nil
}

// guessPasswords lets 150 addresses guess the password of one account while its owner signs in.
func (b *bench) guessPasswords() error {
	s, _, err := b.open(0)
	if err != nil {
		return err
	}
	defer s.stop()
	const name, password = "victim", "a long enough password"
	if _, err := s.command(password+"\n", "user", "add", name, "--password-stdin"); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	var tried atomic.Int64
	for i := range 150 {
		wg.Go(func() {
			for ctx.Err() == nil {
				s.signIn(ctx, fmt.Sprintf("198.51.%d.%d", i, i+1), name, "a wrong password")
				tried.Add(1)
			}
		})
	}
	for tried.Load() < 150 { // every address has failed before
		time.Sleep(10 * time.Millisecond)
	}
	var times []time.Duration
	failures := 0
	for i := range b.Pick(2, 10) {
		began := time.Now()
		ok := s.signIn(ctx, fmt.Sprintf("192.0.2.%d", i+1), name, password)
		times = append(times, time.Since(began))
		if !ok {
			failures++
		}
	}
	longest := report.Percentile(times, 1)
	b.Add(report.Line{What: "150 addresses guess a password: the right one", Portal: fmt.Sprintf("%s, %d refused", report.Millis(longest), failures),
		Bar: "≤ 2 s each", Judged: true, Met: failures == 0 && longest <= 2*time.Second})
	fmt.Fprintf(b.Out, "passwords: %d guesses\n", tried.Load())
	return nil
}

// signIn posts the form of the page /login from an address and reports whether it gave a session.
func (s *site) signIn(ctx context.Context, from, name, password string) bool {
	form := url.Values{"name": {name}, "password": {password}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.Addr+"/login", strings.NewReader(form.Encode()))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("X-Forwarded-For", from)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusSeeOther
}

// fullDisk fills the file system of the data folder, tries the operations that must still work, restarts the
// portal, frees the space and tries them again. It needs the right to mount.
func (b *bench) fullDisk() error {
	dir := filepath.Join(b.Dir, "small-disk")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64m"); err != nil {
		fmt.Fprintf(b.Out, "disk: left out, as mounting is not allowed: %v\n", err)
		return nil
	}
	defer syscall.Unmount(dir, syscall.MNT_DETACH)
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	s, people, err := b.openIn(data, 1, "--limits", "disk-free=4M,disk-reserve=8M")
	if err != nil {
		return err
	}
	defer func() { s.stop() }()
	notes, err := s.notes(people[2])
	if err != nil {
		return err
	}
	acknowledged, err := notes.write(20)
	if err != nil {
		return err
	}
	junk := filepath.Join(dir, "junk")
	if err := fill(junk); err != nil {
		return err
	}
	var steps []string
	step := func(name string, err error) {
		if err != nil {
			steps = append(steps, name+": "+err.Error())
		}
	}
	count := func() error {
		var page struct {
			Messages []struct{ Seq int64 }
		}
		if err := s.call(people[2], http.MethodGet, "/api/v1/conversations/"+notes.room+"/messages?limit=200", nil, &page); err != nil {
			return err
		}
		if len(page.Messages) < len(acknowledged) {
			return fmt.Errorf("%d of %d acknowledged messages", len(page.Messages), len(acknowledged))
		}
		return nil
	}
	time.Sleep(1500 * time.Millisecond) // the portal asks for the free space once a second
	if s.say(people[2], notes.room, strings.Repeat("a long note ", 2500)) == nil {
		step("a long message", errors.New("was accepted on a full disk"))
	}
	step("reading", count())
	_, err = s.command("", "user", "disable", people[3].name)
	step("disabling an account", err)
	s.Kill()
	step("starting on a full disk", s.start())
	if len(steps) == 0 {
		step("reading after the start", count())
		if err := s.call(people[2], http.MethodGet, "/readyz", nil, nil); err == nil {
			step("/readyz", errors.New("says ready on a full disk"))
		}
	}
	os.Remove(junk)
	deadline := time.Now().Add(10 * time.Second)
	for err = s.say(people[2], notes.room, "after"); err != nil && time.Now().Before(deadline); err = s.say(people[2], notes.room, "after") {
		time.Sleep(100 * time.Millisecond)
	}
	step("a message after space was freed", err)
	result := "all work"
	if len(steps) > 0 {
		result = strings.Join(steps, "; ")
	}
	b.Add(report.Line{What: "full disk: reading, disabling, starting, recovering", Portal: result, Bar: "as SAFETY F4", Judged: true, Met: len(steps) == 0})
	return nil
}

// fill writes a file until its file system has no space left.
func fill(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	block := make([]byte, 64<<10)
	for len(block) > 0 {
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			block = block[:len(block)/2]
		} else if err != nil {
			return err
		}
	}
	return nil
}
