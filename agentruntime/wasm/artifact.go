package wasm

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"strings"

	"agentsite/internal/plaintext"
	"agentsite/internal/task"
)

// Bounds of the artifacts of one run of a program.
const (
	maxArtifacts     = 8
	maxArtifactBytes = 512 << 10 // of one
	maxAllArtifacts  = 2 << 20
	maxArtifactName  = 120
	maxMediaType     = 100
)

// addArtifact returns a file with the task, or replaces the one with the same name. The argument is {"name": n,
// "text": t} or {"name": n, "base64": bytes}, both with an optional media_type. An error is a refusal that the program
// sees.
func (r *run) addArtifact(arg []byte) error {
	var in struct {
		Name      string `json:"name"`
		MediaType string `json:"media_type"`
		Text      string `json:"text"`
		Bytes     []byte `json:"base64"`
	}
	if err := json.Unmarshal(arg, &in); err != nil || (in.Text == "") == (len(in.Bytes) == 0) {
		return errors.New("give a name, and text or base64")
	}
	name := plaintext.OneLine(cleanText(in.Name))
	switch {
	case name == "" || name != in.Name || name == "." || name == ".." || strings.ContainsAny(name, `/\`):
		return errors.New("give the name of a file, such as report.csv, without folders")
	case len(name) > maxArtifactName:
		return fmt.Errorf("the name is longer than %d bytes", maxArtifactName)
	}
	mediaType, err := artifactType(in.MediaType)
	if err != nil {
		return err
	}
	b := in.Bytes
	if in.Text != "" {
		b = []byte(cleanText(in.Text))
	}
	total := len(b)
	for other, size := range r.meter.files {
		if other != name {
			total += size
		}
	}
	_, again := r.meter.files[name]
	switch {
	case len(b) > maxArtifactBytes:
		return fmt.Errorf("the file is larger than %d KiB", maxArtifactBytes>>10)
	case total > maxAllArtifacts:
		return fmt.Errorf("the files of one run are larger than %d MiB", maxAllArtifacts>>20)
	case !again && len(r.meter.files) == maxArtifacts:
		return fmt.Errorf("one run may return at most %d files", maxArtifacts)
	}
	if r.meter.files == nil {
		r.meter.files = make(map[string]int)
	}
	r.meter.files[name] = len(b)
	r.keeper.Artifact(task.Artifact{ID: name, Name: name,
		Parts: []task.Part{{Raw: b, MediaType: mediaType, Filename: name}}})
	return nil
}

// artifactType returns a media type in its usual form, "" for none: then the file's name and content show it.
func artifactType(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	t, params, err := mime.ParseMediaType(s)
	if err != nil || len(s) > maxMediaType || strings.Count(t, "/") != 1 {
		return "", fmt.Errorf("%.40q is no media type, such as text/csv", s)
	}
	return mime.FormatMediaType(t, params), nil
}
