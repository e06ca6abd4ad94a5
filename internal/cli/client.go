package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"time"

	"agentsite/internal/control"
	"agentsite/internal/weborigin"
)

// client calls the API of one portal. Without a token it acts as a guest, whose session is in the
// cookies.
type client struct {
	base   string
	token  string
	advice string // appended to the error of a portal that does not answer
	http   *http.Client
}

// usualPortal is the address of a portal that was started without settings.
const usualPortal = "http://127.0.0.1:8080"

// choosePortal returns the address of the portal that a command calls: the given one, else that of the portal that runs
// on the data folder, else usualPortal. The advice says what to do if nothing answers at an address that was not given.
func (fs *flags) choosePortal(ctx context.Context) (address, advice string) {
	if fs.portal != "" {
		return fs.portal, ""
	}
	dir := cmp.Or(fs.e.getenv("AGENTSITE_DATA"), fs.cfg.Data)
	if address, ok := control.RunningAddress(ctx, dir); ok {
		return address, ""
	}
	return usualPortal, fmt.Sprintf("; no portal of yours runs on %s either: start one with `agentsite serve`, or name "+
		"another with --portal", dir)
}

func newClient(ctx context.Context, fs *flags) (*client, error) {
	portal, advice := fs.choosePortal(ctx)
	u, err := url.Parse(weborigin.ASCIIAddress(strings.TrimRight(portal, "/")))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, usagef("--portal %q: write the portal's address, for example "+usualPortal, portal)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	return &client{base: u.String(), token: fs.token, advice: advice, http: &http.Client{Jar: jar}}, nil
}

// newOwnerClient is newClient for commands about the agents of an account, which need its token.
func newOwnerClient(ctx context.Context, fs *flags) (*client, error) {
	c, err := newClient(ctx, fs)
	if err == nil && fs.token == "" {
		return nil, missingToken(c.base)
	}
	return c, err
}

// missingToken returns the error for a command about agents without a token of their owner.
func missingToken(portal string) error {
	return usagef("--token: an agent needs an API token of the account that owns it; make one at %s/account, "+
		"or on the portal's machine by `agentsite token add --scope agents:write`, and put it into AGENTSITE_TOKEN",
		portal)
}

// apiError is an error object of the API.
type apiError struct {
	Kind    string            `json:"kind"`
	Message string            `json:"message"`
	Fields  map[string]string `json:"fields"`
}

func (e apiError) Error() string { return e.Message }

// maxAnswer is the maximum size of an answer in bytes.
const maxAnswer = 16 << 20

func (c *client) sendJSON(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, r)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return c.doRequest(req)
}

// doRequest sends a request. An answer with an error status is returned as apiError.
func (c *client) doRequest(req *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return nil, fmt.Errorf("the portal %s does not answer: %w%s", c.base, err, c.advice)
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	var e struct {
		Error apiError `json:"error"`
	}
	if json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&e) != nil || e.Error.Message == "" {
		return nil, fmt.Errorf("%s answered %s; is it a portal?", c.base, resp.Status)
	}
	return nil, e.Error
}

// callJSON sends a request with a JSON body, nil for none, and decodes the JSON answer into out unless
// out is nil.
func (c *client) callJSON(ctx context.Context, method, path string, body, out any) error {
	resp, err := c.sendJSON(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(out); err != nil {
		return fmt.Errorf("read the answer of %s: %w", c.base, err)
	}
	return nil
}

// update is one event of a conversation's live stream, with the fields that the terminal uses.
type update struct {
	Type   string `json:"type"`
	Seq    int64  `json:"seq"`
	Sender struct {
		Kind   string `json:"kind"`
		Handle string `json:"handle"`
	} `json:"sender"`
	Kind  string `json:"kind"`
	Parts []struct {
		Text     string          `json:"text"`
		URL      string          `json:"url"`
		Filename string          `json:"filename"`
		Data     json.RawMessage `json:"data"`
	} `json:"parts"`
	Unsaid json.RawMessage `json:"unsaid"`
	TaskID string          `json:"task_id"`
	Offset int             `json:"offset"`
	Text   string          `json:"text"`
	Task   json.RawMessage `json:"task"`

	raw string // the event as received, for --json
}

func (u update) plainText() string {
	var parts []string
	for _, p := range u.Parts {
		switch {
		case p.Text != "":
			parts = append(parts, p.Text)
		case p.URL != "":
			parts = append(parts, strings.TrimSpace(p.Filename+" "+p.URL))
		case len(p.Data) > 0:
			parts = append(parts, string(p.Data))
		}
	}
	return strings.Join(parts, "\n\n")
}

// followEvents calls each with the events of a conversation after seq after, until each returns false.
// After a broken connection it continues at the next event.
func (c *client) followEvents(ctx context.Context, id string, after int64, each func(update) bool) error {
	wait := 200 * time.Millisecond
	for tries := 0; ; tries++ {
		done, progress, err := c.readStream(ctx, id, &after, each)
		switch {
		case done:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
		if e, ok := errors.AsType[apiError](err); ok && e.Kind != "unavailable" && e.Kind != "rate_limited" {
			return err
		}
		if progress {
			wait, tries = 200*time.Millisecond, 0
		}
		if tries > 8 {
			return fmt.Errorf("the portal %s went away: %w", c.base, err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
		wait = min(wait*2, 5*time.Second)
	}
}

func (c *client) readStream(ctx context.Context, id string, after *int64, each func(update) bool) (done, progress bool,
	err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		fmt.Sprintf("%s/api/v1/conversations/%s/live?after=%d", c.base, id, *after), nil)
	if err != nil {
		return false, false, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.doRequest(req)
	if err != nil {
		return false, false, err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(make([]byte, 64<<10), maxAnswer)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var u update
		if err := json.Unmarshal([]byte(data), &u); err != nil {
			return false, progress, fmt.Errorf("read the stream: %w", err)
		}
		u.raw = data
		if u.Type == "message" {
			if u.Seq <= *after {
				continue
			}
			*after = u.Seq
		}
		progress = true
		if !each(u) {
			return true, true, nil
		}
	}
	return false, progress, errors.Join(lines.Err(), io.ErrUnexpectedEOF)
}
