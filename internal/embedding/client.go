package embedding

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"

	"agentsite/internal/egress"
	"agentsite/internal/lenientjson"
	"agentsite/internal/plaintext"
	"agentsite/internal/reason"
)

// Bounds of one request and its answer.
const (
	maxTexts  = 64
	maxAnswer = 8 << 20
	maxRefuse = 64 << 10
	maxReason = 200
	// maxDims bounds the dimensions of a vector: eight agents of four vectors then take 256 KiB.
	maxDims = 8192
	// minCut is the size in bytes from which a text that the server refuses is not cut any more.
	minCut = 100
)

// Server is a server with a model, OpenAI-compatible.
type Server struct {
	URL   string // base of its API, usually ending in /v1
	Key   string // "" for none
	Model string
}

// client asks a server for vectors.
type client struct {
	server Server
	http   *http.Client
}

func newClient(s Server, rt http.RoundTripper) *client {
	return &client{s, &http.Client{Transport: rt}}
}

// errRefused is wrapped by errors for requests that the server will not accept at another time either, such as one
// with a text that is too long for the model.
var errRefused = errors.New("refused")

// askServer returns the vectors of texts, of length 1 and equal dimensions, in their order. There are at most maxTexts.
func (c *client) askServer(ctx context.Context, texts []string) ([][]float32, error) {
	body, err := json.Marshal(map[string]any{"model": c.server.Model, "input": texts, "encoding_format": "float"})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.server.URL+"/embeddings", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if c.server.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.server.Key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, errors.New(egress.Reason(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, c.refusalError(resp)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, errors.New(egress.Reason(err))
	}
	return readVectors(b, len(texts))
}

// refusalError returns the error for an answer other than 200.
func (c *client) refusalError(resp *http.Response) error {
	b, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefuse))
	if c.server.Key != "" { // some servers repeat a refused key
		b = bytes.ReplaceAll(b, []byte(c.server.Key), []byte("[key]"))
	}
	err := fmt.Errorf("HTTP %d: %s", resp.StatusCode, plaintext.Cut(plaintext.OneLine(reason.Find(b)), maxReason))
	switch resp.StatusCode {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity,
		http.StatusInternalServerError: // some servers fail at a text that is too long
		err = fmt.Errorf("%w: %w", errRefused, err)
	}
	return err
}

// readVectors returns the count vectors of an answer.
func readVectors(b []byte, count int) ([][]float32, error) {
	var answer struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := lenientjson.Decode(b, &answer); err != nil {
		return nil, errors.New("the answer is not JSON")
	}
	if len(answer.Data) != count {
		return nil, fmt.Errorf("the answer has %d vectors for %d texts", len(answer.Data), count)
	}
	list := make([][]float32, count)
	for _, d := range answer.Data {
		switch {
		case d.Index < 0 || d.Index >= count || list[d.Index] != nil:
			return nil, fmt.Errorf("the answer has no vector for each text, or two for one")
		case len(d.Embedding) == 0 || len(d.Embedding) > maxDims:
			return nil, fmt.Errorf("a vector has %d dimensions; there may be 1 to %d", len(d.Embedding), maxDims)
		case len(d.Embedding) != len(answer.Data[0].Embedding):
			return nil, fmt.Errorf("vectors have %d and %d dimensions", len(answer.Data[0].Embedding),
				len(d.Embedding))
		}
		if list[d.Index] = unitVector(d.Embedding); list[d.Index] == nil {
			return nil, errors.New("a vector has no direction")
		}
	}
	return list, nil
}

// unitVector returns the vector of length 1 in the direction of v; nil if v has none.
func unitVector(v []float32) []float32 {
	sum := 0.0
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	length := math.Sqrt(sum)
	if !(length > 1e-12) || math.IsInf(length, 0) { // written so that NaN has none either
		return nil
	}
	out := make([]float32, len(v))
	for i, f := range v {
		out[i] = float32(float64(f) / length)
	}
	return out
}

// askEach is askServer for any number of texts. A text that the server refuses is cut until it is taken; one that it
// never takes has no vector.
func (c *client) askEach(ctx context.Context, texts []string) ([][]float32, error) {
	var list [][]float32
	for len(texts) > 0 {
		n := min(len(texts), maxTexts)
		part, err := c.askPart(ctx, texts[:n])
		if err != nil {
			return nil, err
		}
		list, texts = append(list, part...), texts[n:]
	}
	return list, nil
}

func (c *client) askPart(ctx context.Context, texts []string) ([][]float32, error) {
	list, err := c.askServer(ctx, texts)
	switch {
	case !errors.Is(err, errRefused):
		return list, err
	case len(texts) > 1:
		middle := len(texts) / 2
		if list, err = c.askPart(ctx, texts[:middle]); err != nil {
			return nil, err
		}
		more, err := c.askPart(ctx, texts[middle:])
		return append(list, more...), err
	case len(texts[0]) > minCut:
		return c.askPart(ctx, []string{cutHalf(texts[0])})
	}
	return [][]float32{nil}, nil
}
