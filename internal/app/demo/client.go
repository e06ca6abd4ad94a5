package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// maxAnswer bounds the part of a portal's answer that is read, in bytes.
const maxAnswer = 1 << 20

// client calls the public API of one portal with the token of one person.
type client struct {
	base, token string
	http        *http.Client
}

// callAPI sends in as JSON and decodes the answer into out; nil sends no body or ignores the
// answer. A status of 300 or more is an error with the portal's message.
func (c client) callAPI(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+"/api/v1"+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+c.token)
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		var e struct {
			Error struct{ Message string }
		}
		_ = json.Unmarshal(b, &e) // without an error object the message stays empty
		return fmt.Errorf("%s %s: %s %s", method, path, resp.Status, e.Error.Message)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(b, out)
}
