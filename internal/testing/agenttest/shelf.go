package agenttest

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"agentsite/internal/fault"
	"agentsite/internal/task"
)

// Shelf is a task.Files in memory: it maps the URL of a file part to its file. It is not safe for
// concurrent Put.
type Shelf map[string]Filed

// Filed is the media type and content of one file.
type Filed struct {
	MediaType string
	Body      []byte
}

// Put adds a file and returns a part that refers to it.
func (s Shelf) Put(name, mediaType string, body []byte) task.Part {
	url := fmt.Sprintf("%s%d", task.FilePath, len(s))
	s[url] = Filed{mediaType, body}
	return task.Part{URL: url, Filename: name, MediaType: mediaType}
}

func errNoFile() error { return fault.New(fault.NotFound, "There is no such file.") }

// Open implements task.Files.
func (s Shelf) Open(_ context.Context, url string) (task.File, io.ReadCloser, error) {
	f, ok := s[url]
	if !ok {
		return task.File{}, nil, errNoFile()
	}
	return task.File{MediaType: f.MediaType, Size: int64(len(f.Body))}, io.NopCloser(bytes.NewReader(f.Body)), nil
}

// Address implements task.Files.
func (s Shelf) Address(_ context.Context, url string) (string, error) {
	if _, ok := s[url]; !ok {
		return "", errNoFile()
	}
	return "https://home.example" + url + "?key=k", nil
}
