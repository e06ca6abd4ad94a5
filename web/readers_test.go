package web

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
)

const stall = time.Minute

// readers is a server whose clients name their account in a header.
type readers struct {
	memory *limit.Memory
	*respond.Readers
}

func newReaders() readers {
	m := limit.NewMemory(limit.MemoryConfig{Total: 64 << 20, Share: 8 << 20, Reserve: 8 << 20})
	return readers{m, respond.NewReaders(m, limit.NewConcurrent(4), stall)}
}

func (d readers) handler(answer func(http.ResponseWriter, *http.Request, ident.Actor) error) http.Handler {
	return d.Handler(func(*http.Request) string { return "192.0.2.1" },
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			actor := ident.Actor{Kind: ident.ActorKind(r.Header.Get("Kind")), ID: r.Header.Get("Account")}
			if err := answer(w, r, actor); err != nil {
				f := fault.As(err)
				respond.RetryAfter(w.Header(), f.RetryAfter)
				w.WriteHeader(respond.Status(f.Kind))
			}
		}))
}

// servePage answers with 600 KiB in one piece at /page, and in parts at /export.
func servePage(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if r.URL.Path == "/export" {
		if err := respond.BeginDownload(r.Context(), w, actor); err != nil {
			return err
		}
		for range 40 {
			if _, err := w.Write(make([]byte, 15<<10)); err != nil {
				return nil
			}
		}
		return nil
	}
	if err := respond.Reserve(r.Context(), w, actor); err != nil {
		return err
	}
	w.Header().Set("Content-Length", strconv.Itoa(600<<10))
	w.Write(make([]byte, 600<<10))
	return nil
}

func getPage(t *testing.T, c net.Conn, path, kind, account string) (*http.Response, *bufio.Reader) {
	t.Helper()
	if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: portal.test\r\nKind: "+kind+"\r\nAccount: "+account+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	b := bufio.NewReaderSize(c, 1024)
	resp, err := http.ReadResponse(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	return resp, b
}

// A reader who takes a kilobyte a second receives all of a long answer, also one that takes longer than
// the server's write timeout; a reader who stands still is cut off.
func TestReaders_AreCutByProgress(t *testing.T) {
	d := newReaders()
	servingWith(t, d.handler(servePage), func(dial func() net.Conn) {
		for _, path := range []string{"/page", "/export"} {
			c := dial()
			resp, _ := getPage(t, c, path, "person", "ada")
			began, got := time.Now(), 0
			for part := make([]byte, 1024); ; {
				time.Sleep(time.Second)
				n, err := io.ReadFull(resp.Body, part)
				got += n
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatalf("%s: %v after %d bytes and %s", path, err, got, time.Since(began))
				}
			}
			if got != 600<<10 || time.Since(began) < 2*writeTimeout {
				t.Errorf("%s: %d bytes in %s", path, got, time.Since(began))
			}
			c.Close()

			c = dial()
			resp, _ = getPage(t, c, path, "person", "ada")
			if _, err := io.ReadFull(resp.Body, make([]byte, 100<<10)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(stall + time.Second)
			if n, err := io.Copy(io.Discard, resp.Body); err == nil || n > 64<<10 {
				t.Errorf("%s: a reader who stood still got %d bytes more, %v", path, n, err)
			}
			c.Close()
			synctest.Wait()
			if all, _ := d.memory.Used("ada"); all != 0 {
				t.Errorf("%s: %d bytes are counted after the end", path, all)
			}
		}
	})
}

// 80 exports and 100 pages that one account reads slowly hold no more than its share. Others and
// operators are served at once.
func TestReaders_ManySlowOnesOfOneAccountHoldItsShare(t *testing.T) {
	d := newReaders()
	servingWith(t, d.handler(servePage), func(dial func() net.Conn) {
		codes, retry := make(map[string]int), true
		var conns []net.Conn
		for i := range 180 {
			path := "/page"
			if i < 80 {
				path = "/export"
			}
			c := dial()
			conns = append(conns, c)
			resp, _ := getPage(t, c, path, "person", "mallory")
			codes[path+" "+strconv.Itoa(resp.StatusCode)]++
			retry = retry && (resp.StatusCode == http.StatusOK || resp.Header.Get("Retry-After") != "")
			if all, hers := d.memory.Used("mallory"); all != hers || hers > 8<<20 {
				t.Fatalf("%d of %d bytes are hers after %d requests", hers, all, i+1)
			}
		}
		if !retry || codes["/export 200"] != 4 || codes["/export 429"] != 76 || codes["/page 200"] < 10 ||
			codes["/page 200"]+codes["/page 429"] != 100 {
			t.Errorf("answers: %v, all refusals with Retry-After: %t", codes, retry)
		}
		began := time.Now()
		for kind, account := range map[string]string{"person": "ada", "operator": "root"} {
			c := dial()
			resp, _ := getPage(t, c, "/page", kind, account)
			if b, err := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK || err != nil ||
				!bytes.Equal(b, make([]byte, 600<<10)) {
				t.Errorf("%s: %d, %d bytes, %v", account, resp.StatusCode, len(b), err)
			}
			c.Close()
		}
		if waited := time.Since(began); waited > 0 {
			t.Errorf("the others waited %s", waited)
		}
		for _, c := range conns {
			c.Close()
		}
		synctest.Wait()
		if all, _ := d.memory.Used("mallory"); all != 0 {
			t.Errorf("%d bytes are counted after the end", all)
		}
	})
}
