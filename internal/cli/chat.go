package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentsite/internal/record"
	"agentsite/internal/textfile"
)

// talk is a conversation of the terminal with one or more agents.
type talk struct {
	c    *client
	e    env
	json bool
	room room
	// knownRemote lists the agents on other hosts that the person was informed of; it is sent with each
	// message.
	knownRemote []string
	// parts are attached to the next message, and then cleared.
	parts []part
}

// room is the part of the API's conversation that the terminal uses.
type room struct {
	ID      string `json:"id"`
	Title   string `json:"title"`
	Members []struct {
		Kind   string `json:"kind"`
		Handle string `json:"handle"`
		Remote string `json:"remote"`
	} `json:"members"`
}

// part is a part of a message in the API's format.
type part struct {
	Text      string `json:"text,omitempty"`
	URL       string `json:"url,omitempty"`
	Filename  string `json:"filename,omitempty"`
	MediaType string `json:"mediaType,omitempty"`
}

// Maximum size of stdin, in bytes, that is sent as text; longer input is sent as a file. Guests have a
// lower limit.
const (
	maxPiped      = 60 << 10
	maxGuestPiped = 15 << 10
)

func runChat(ctx context.Context, e env, fs *flags, args []string) error {
	least := 1
	if fs.conversation != "" {
		least = 0
	}
	if err := checkArgs("chat", args, least, 1<<10); err != nil {
		return err
	}
	c, err := newClient(ctx, fs)
	if err != nil {
		return err
	}
	t := &talk{c: c, e: e, json: fs.json}
	text, err := t.openRoom(ctx, fs.conversation, args)
	if err != nil {
		return err
	}
	for _, path := range fs.files {
		if err := t.attachFile(ctx, path); err != nil {
			return err
		}
	}
	if isTerminal(e.stdin) {
		if text != "" || len(t.parts) > 0 {
			if !t.confirmRemote(true) {
				return errSilent
			}
			return t.sendMessage(ctx, text)
		}
		return t.readMessages(ctx, fs.conversation != "")
	}
	if text, err = t.addPiped(ctx, text); err != nil {
		return err
	}
	if text == "" && len(t.parts) == 0 {
		return usagef("there is no message: write it after the name of the agent, or pipe it in")
	}
	t.confirmRemote(false)
	return t.sendMessage(ctx, text)
}

// openRoom creates a conversation with the agent in args, or opens the one with an id, and returns the
// rest of args as the text of a message. In an existing conversation, the first argument may name the
// agent that shall answer.
func (t *talk) openRoom(ctx context.Context, id string, args []string) (text string, err error) {
	if id == "" {
		err = t.c.callJSON(ctx, http.MethodPost, "/api/v1/conversations", map[string]any{"members": args[:1]}, &t.room)
		args = args[1:]
	} else {
		err = t.c.callJSON(ctx, http.MethodGet, "/api/v1/conversations/"+url.PathEscape(id), nil, &t.room)
	}
	if err != nil {
		return "", err
	}
	if id != "" && len(args) > 0 {
		agents, named := 0, false
		for _, m := range t.room.Members {
			if m.Kind == "agent" {
				agents++
				named = named || m.Handle == strings.TrimPrefix(args[0], "@")
			}
		}
		if named {
			name := "@" + strings.TrimPrefix(args[0], "@")
			if args = args[1:]; agents > 1 && len(args) > 0 {
				args = slices.Insert(slices.Clone(args), 0, name)
			}
		}
	}
	if t.json {
		fmt.Fprintf(t.e.stdout, "{\"type\":\"conversation\",\"id\":%q}\n", t.room.ID)
	}
	return strings.Join(args, " "), nil
}

// confirmRemote prints which agents send the text to another host. With ask, it asks for consent and
// returns the answer. With a token it prints and asks nothing, because the caller is a program.
func (t *talk) confirmRemote(ask bool) bool {
	for _, m := range t.room.Members {
		if m.Remote != "" && t.c.token == "" {
			fmt.Fprintf(t.e.stderr, "%s sends your messages to %s.\n", cleanText(m.Handle), cleanText(m.Remote))
			t.knownRemote = append(t.knownRemote, m.Handle)
		}
	}
	if len(t.knownRemote) == 0 || !ask {
		return true
	}
	fmt.Fprint(t.e.stderr, "Send it? [y/N] ")
	answer, _ := bufio.NewReader(t.e.stdin).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// addPiped appends stdin to the text, in any encoding, or attaches it as a file if it is long or is not
// text.
func (t *talk) addPiped(ctx context.Context, text string) (string, error) {
	room := maxPiped
	if t.c.token == "" {
		room = maxGuestPiped
	}
	room -= len(text)
	head, err := io.ReadAll(io.LimitReader(t.e.stdin, int64(max(0, room))+1))
	if err != nil {
		return "", fmt.Errorf("read stdin: %w", err)
	}
	if piped, err := textfile.Decode(head, false); len(head) <= room && err == nil {
		if in := strings.TrimSpace(piped); text == "" {
			text = in
		} else if in != "" {
			text += "\n\n" + in
		}
		return text, nil
	}
	return text, t.uploadFile(ctx, "stdin.txt", io.MultiReader(bytes.NewReader(head), t.e.stdin), -1)
}

// attachFile uploads a file and attaches it to the next message.
func (t *talk) attachFile(ctx context.Context, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	size := st.Size()
	if !st.Mode().IsRegular() {
		size = -1
	}
	return t.uploadFile(ctx, filepath.Base(path), f, size)
}

// uploadFile uploads from r, without holding the file in memory, and attaches it. size is -1 if it is
// unknown.
func (t *talk) uploadFile(ctx context.Context, name string, r io.Reader, size int64) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.c.base+"/api/v1/files?name="+url.QueryEscape(name),
		io.NopCloser(r))
	if err != nil {
		return err
	}
	req.ContentLength = size
	req.Header.Set("Content-Type", "application/octet-stream")
	if t.c.token != "" {
		req.Header.Set("Authorization", "Bearer "+t.c.token)
	}
	resp, err := t.c.doRequest(req)
	if err != nil {
		return fmt.Errorf("send %s: %w", name, err)
	}
	defer resp.Body.Close()
	var f struct {
		URL       string `json:"url"`
		Filename  string `json:"filename"`
		MediaType string `json:"media_type"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&f); err != nil {
		return fmt.Errorf("read the answer of %s: %w", t.c.base, err)
	}
	t.parts = append(t.parts, part{URL: f.URL, Filename: f.Filename, MediaType: f.MediaType})
	return nil
}

// earlier is the number of messages that are printed when a conversation is continued.
const earlier = 20

// readMessages reads lines from the keyboard and sends each as a message, until Ctrl-D. If goesOn is
// true, it prints earlier messages first.
func (t *talk) readMessages(ctx context.Context, goesOn bool) error {
	if goesOn {
		if err := t.printHistory(ctx); err != nil {
			return err
		}
	}
	var who []string
	for _, m := range t.room.Members {
		if m.Kind == "agent" {
			who = append(who, m.Handle)
		}
	}
	fmt.Fprintf(t.e.stderr, "Talking to %s. Type a message; Ctrl-C stops an answer, Ctrl-D ends.\n",
		cleanText(strings.Join(who, ", ")))
	t.confirmRemote(false)
	lines := bufio.NewScanner(t.e.stdin)
	lines.Buffer(nil, 1<<20)
	for {
		fmt.Fprint(t.e.stderr, "> ")
		if !lines.Scan() {
			fmt.Fprintln(t.e.stderr)
			if t.c.token != "" && !goesOn {
				fmt.Fprintf(t.e.stderr, "Go on with: agentsite chat --conversation %s\n", t.room.ID)
			}
			return lines.Err()
		}
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		if err := t.sendMessage(ctx, text); err != nil && err != errSilent {
			if _, ours := err.(apiError); !ours {
				return err
			}
			fmt.Fprintf(t.e.stderr, "agentsite: %s\n", record.CleanLine(err.Error()))
		}
	}
}

// printHistory prints the last messages of the conversation, at most earlier, without deleted ones.
func (t *talk) printHistory(ctx context.Context) error {
	var list struct {
		Messages []update `json:"messages"`
	}
	if err := t.c.callJSON(ctx, http.MethodGet,
		fmt.Sprintf("/api/v1/conversations/%s/messages?order=newest&limit=%d", t.room.ID, earlier), nil,
		&list); err != nil {
		return err
	}
	for _, m := range list.Messages {
		if m.Kind == "text" && len(m.Unsaid) == 0 {
			fmt.Fprintf(t.e.stderr, "%s: %s\n", cleanText(m.Sender.Handle), cleanText(m.plainText()))
		}
	}
	return nil
}
